#!/bin/bash
# A loose claim is tested by its own cases or fails a strict run, whatever else its variant claims: in the run itself, in its reports, of its
# archive, of its shards.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
"$python" -c 'import numpy' 2> /dev/null || { echo "no numpy for $python"; exit 77; }
cases='softmax_prefill b=1 h=2 hk=1 sq=4 sk=8,70,80 d=64 causal=0 dtype=f16'
cheat() { # options
    "$attest" verify '*/*' --runner "$python tests/cheats/55_tight_on_one_case.py" --case "$cases" "$@"
}
blind='1 claims are so loose that nothing was tested'
wants 1 "$blind" cheat --strict --out "$scratch/run.h5" --junit "$scratch/run.xml" --github
tr -s ' \n' ' ' < "$scratch/out" | grep -q 'loose claim: softmax_prefill/01_scaled, 4 of 6 results, declared free_order=1 p=f16 pv_unit=f16_fma: ' ||
    { cat "$scratch/out"; fail "the claim is not named"; }
grep -q '^::error file=.*55_tight_on_one_case.py,title=UNTESTED 01_scaled::' "$scratch/out" || fail "no annotation"
grep -q '<failure type="UNTESTED" message="loose claim, 4 of 6 results' "$scratch/run.xml" || fail "JUnit has no failure"
wants 0 'no result fails the run' cheat --junit "$scratch/run.xml"
! grep -q '<failure' "$scratch/run.xml" || fail "JUnit has a failure without --strict"
wants 1 "$blind" "$attest" show "$scratch/run.h5" --strict
wants 0 'no result fails the run' "$attest" show "$scratch/run.h5"

# A shard may lack the case that tests a claim; the whole does not.
for i in 1 2; do
    wants 0 'no result fails the run' cheat --strict --shard $i/2 --out "$scratch/s$i.h5" --junit "$scratch/run.xml"
    ! grep -q '<failure' "$scratch/run.xml" || fail "JUnit has a failure of a shard"
done
wants 0 'shards' "$attest" merge "$scratch/s1.h5" "$scratch/s2.h5" --out "$scratch/merged.h5"
same "$scratch/run.h5" "$scratch/merged.h5"
wants 1 "$blind" "$attest" show "$scratch/merged.h5" --strict

# With one more case, which shows it, and honest values: nothing is held against a loose claim.
wants 0 'no result fails the run' "$attest" verify '*/*' --runner "$python tests/cheats/68_honest_by_problem.py" --case "${cases/sk=8/sk=8,20}" --strict
grep -q '^loose claim: softmax_prefill/01_right, 6 of 8 results' "$scratch/out" || fail "the claim is not loose"
wants 1 "$blind" "$attest" verify '*/*' --runner "$python tests/cheats/68_honest_by_problem.py" --case "$cases" --strict
# Words that mean nothing make a claim of each problem; then each is by itself.
sed 's/else F16_SUMS/else F16_SUMS + " qk_lanes=%d" % job.tensors["seq_lens"].max()/' tests/cheats/68_honest_by_problem.py > "$scratch/words.py"
PYTHONPATH=$PWD/tests/cheats wants 1 "${blind/1/2}" "$attest" verify '*/*' --runner "$python $scratch/words.py" --case "${cases/sk=8/sk=8,20}" --strict
# Dispatchers declare what the chosen kernel does.
wants 0 'no result fails the run' "$attest" verify 'softmax_prefill/39_dispatch' --cases 'smoke:*' --strict
