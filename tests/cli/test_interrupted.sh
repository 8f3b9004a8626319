#!/bin/bash
# Ctrl-C and SIGTERM: what was judged is shown, the exit code says which signal, and --resume is named where it works.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
# Six cases, each for two variants. While the first of them runs the case of three keys, the signal comes: five jobs.
line='asynct_decode b=1 h=1 hk=1 sk=1..6 d=8 dtype=f32'
signalled() { # KIND options
    local kind=$1; shift
    "$attest" verify 'asynct_decode/99_*' --case "$line" --jobs 1 "$@" \
        --runner "exec /usr/bin/python3 tests/python/runner_client.py --misbehave $kind"
}
half='interrupted: 5 of 12 jobs judged, 0 results fail the run'
wants 130 "exit 130: $half" signalled sigint
[[ $(grep -c '^PASS' "$scratch/out") == 5 ]] || { cat "$scratch/out"; fail "not five rows"; }
grep -q 'nothing was kept' "$scratch/out" || fail "does not say that nothing was kept"
grep -q -- --resume "$scratch/out" && fail "speaks of --resume, which needs --out"
wants 143 "exit 143: $half" signalled sigterm

run=$scratch/run.h5
wants 130 "exit 130: $half" signalled sigint --out "$run" --junit "$scratch/run.xml" --strict
grep -qF -- "--junit $scratch/run.xml: not written" "$scratch/out" || { cat "$scratch/out"; fail "does not say that the report is not written"; }
[[ ! -e "$run" && ! -e "$scratch/run.xml" ]] || fail "a part of a run was written as if it were the whole"
[[ $(grep -c '"event":"results"' "$run.jsonl") == 5 ]] || fail "the journal does not have the five jobs"
again=$(sed -n 's/^attest: .* to go on: attest //p' "$scratch/out")
[[ "$again" == *"--out $run "*--resume ]] || { cat "$scratch/out"; fail "no command to go on with"; }
eval "wants 0 '12 results: 12 PASS' '$attest' $again" # as printed, quotes and all
[[ -s "$run" && -s "$scratch/run.xml" ]] || fail "the run that went on has written nothing"
wants 0 '12 results: 12 PASS' "$attest" show "$run"
# A run that goes on and is cut short again: --resume once, not twice.
head -n 3 "$run.jsonl" > "$scratch/twice.jsonl"; rm "$run"; mv "$scratch/twice.jsonl" "$run.jsonl"
eval "wants 130 '5 of 12 jobs judged' '$attest' $again"
[[ $(grep -o -- --resume "$scratch/out" | wc -l) == 1 ]] || { cat "$scratch/out"; fail "--resume twice"; }

# The score of the mutants: what was tried stands there, and no sum that looks like a result. The first mutant of two has a
# case of one key and survives, a right kernel as it is; the signal comes while the second runs.
copy_programs attest # looks for the list and the runner beside itself
printf '#!/bin/sh\nexec /usr/bin/python3 %q --misbehave sigint\n' "$PWD/tests/python/runner_client.py" > "$scratch/attest-mutants"
chmod +x "$scratch/attest-mutants"
for keys in 1 3; do
    printf 'asynct_decode/99_misbehaves\tasynct_decode/00\tWRONG\tshapes:asynct_decode * sk=%d * page=0 * data=normal *\tkeys %d\n' $keys $keys
done > "$scratch/mutants.tsv"
wants 130 'attest: interrupted: the lines above are what was tried' "$scratch/attest" selftest --jobs 1 --mutants '*'
[[ $(grep -c '^SURVIVED .* keys 1$' "$scratch/out") == 1 ]] || { cat "$scratch/out"; fail "what was tried is not shown"; }
if grep -qE 'keys 3|mutants killed' "$scratch/out"; then cat "$scratch/out"; fail "an interrupted mutant has a result, or the run a sum"; fi
