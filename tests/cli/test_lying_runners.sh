#!/bin/bash
# Runners that lie in ways that a seed draws: none is called right, none keeps attest longer than its limit, none makes it fail.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
"$python" -c 'import numpy' 2> /dev/null || { echo "no numpy for $python"; exit 77; }
seeds=60
[[ ${AT_EFFORT:-full} == fast ]] && seeds=26 # one of each kind
case='uclip_norm tokens=5 channels=40 dtype=bf16'
judge() { # SEED
    timeout 300 "$attest" verify 'uclip_norm/*' --case "$case" --jobs 1 --timeout 0.3 --quiet --json "$scratch/r.jsonl" \
        --runner "exec $python tests/cheats/liar.py $1"
}
kinds=$("$python" tests/cheats/liar.py count)
[[ $seeds -ge $kinds ]] || fail "$seeds seeds for $kinds kinds"
wants 0 'exit 0' judge honest
grep -q '"state":"PASS"' "$scratch/r.jsonl" || fail "the same runner without a lie is not right"
for ((seed = 0; seed < seeds; seed++)); do
    rm -f "$scratch/r.jsonl"
    judge $seed > "$scratch/out" 2>&1 < /dev/null
    code=$? # 1: judged and wrong. 3: no runner at all, by its greeting or before it is asked what it takes
    [[ $code == 1 || $code == 3 ]] || { head -n 20 "$scratch/out"; fail "seed $seed: exit $code, wanted 1 or 3"; }
    if [[ -e "$scratch/r.jsonl" ]] && grep -q '"state":"\(PASS\|VACUOUS\)"' "$scratch/r.jsonl"; then fail "seed $seed is called right"; fi
    if [[ $code == 1 ]] && ! grep -q '"state":"[A-Z]*"' "$scratch/r.jsonl"; then fail "seed $seed: no result"; fi
done
