#!/bin/bash
# Ctrl-C and SIGTERM: what was judged is shown, the exit code says which signal, and --resume is named where it works.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
line='asynct_decode b=1 h=1 hk=1 sk=1..6 d=8 dtype=f32' # six cases; while that of three keys runs, the signal comes
signalled() { # KIND options
    local kind=$1; shift
    "$attest" verify 'asynct_decode/99_*' --case "$line" --jobs 1 "$@" \
        --runner "exec /usr/bin/python3 tests/python/runner_client.py --misbehave $kind"
}
half='interrupted: 3 of 6 jobs judged, 0 results fail the run'
wants 130 "exit 130: $half" signalled sigint
[[ $(grep -c '^PASS' "$scratch/out") == 3 ]] || { cat "$scratch/out"; fail "not three rows"; }
grep -q 'nothing was kept' "$scratch/out" || fail "does not say that nothing was kept"
grep -q -- --resume "$scratch/out" && fail "speaks of --resume, which needs --out"
wants 143 "exit 143: $half" signalled sigterm

run=$scratch/run.h5
wants 130 "exit 130: $half" signalled sigint --out "$run" --junit "$scratch/run.xml" --strict
grep -qF -- "--junit $scratch/run.xml: not written" "$scratch/out" || { cat "$scratch/out"; fail "does not say that the report is not written"; }
[[ ! -e "$run" && ! -e "$scratch/run.xml" ]] || fail "a part of a run was written as if it were the whole"
[[ $(grep -c '"event":"results"' "$run.jsonl") == 3 ]] || fail "the journal does not have the three jobs"
again=$(sed -n 's/^attest: .* to go on: attest //p' "$scratch/out")
[[ "$again" == *"--out $run "*--resume ]] || { cat "$scratch/out"; fail "no command to go on with"; }
eval "wants 0 '6 results: 6 PASS' '$attest' $again" # as printed, quotes and all
[[ -s "$run" && -s "$scratch/run.xml" ]] || fail "the run that went on has written nothing"
wants 0 '6 results: 6 PASS' "$attest" show "$run"
# A line that another signal has cut short again would have been: the same command with --resume once, not twice.
[[ "$again" != *--resume*--resume* ]] || fail "--resume twice"
