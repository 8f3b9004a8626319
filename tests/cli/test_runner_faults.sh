#!/bin/bash
# What a foreign runner does wrong costs the job at hand, and the reason reaches the user: a declaration that does not fit
# one case, an exception's message, a reason for declining.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
mkdir -p "$scratch/cases"
cat > "$scratch/cases/few.cases" << 'EOF'
asynct_decode b=1 h=1 hk=1 sk=5 d=8 dtype=f32
asynct_decode b=1 h=1 hk=1 sk=5 d=8 dtype=f32 taps=0.5:-0.25:-0.25
asynct_decode b=1 h=1 hk=1 sk=7 d=8 dtype=f32
EOF
misbehaving() { # KIND options
    local kind=$1; shift
    AT_DATASETS=$scratch "$attest" verify 'asynct_decode/*' --cases 'few:*' --jobs 1 "$@" \
        --runner "/usr/bin/python3 tests/python/runner_client.py --misbehave $kind"
}
state() { grep -F "\"variant\":\"$1\"" "$scratch/r.jsonl" | grep -F "$2" | sed 's/.*"state":"\([A-Z]*\)".*/\1/'; }

wants 1 'cause the declared numerics do not fit this case: fir_order=pooled' misbehaving misfit --json "$scratch/r.jsonl"
[[ $(state 99_misbehaves taps=0.5) == ERROR ]] || fail "the case that the declaration does not fit: $(state 99_misbehaves taps=0.5)"
[[ $(state 99_misbehaves sk=7) == PASS && $(state 99_misbehaves 'sk=5' | head -n 1) == PASS ]] || fail "the other cases are lost"
[[ $(state 70_python taps=0.5) == PASS ]] || fail "the other variant is lost"

# In the results, whose lines are not wrapped: where depends on how long this folder's name is.
wants 1 'CRASHED' misbehaving raises --json "$scratch/r.jsonl"
grep -qF 'ValueError: the last line says why' "$scratch/r.jsonl" || { cat "$scratch/out"; fail "the exception's message is lost"; }
wants 0 'not on a Friday' misbehaving unsupported # in the row, where the numbers would stand
grep -qE '^UNSUPPORTED 99_misbehaves +.* not on a Friday$' "$scratch/out" || { cat "$scratch/out"; fail "no reason in the row"; }
# A selected variant that is never judged fails a strict run, unless this is but a shard of it.
wants 1 'never judged, which --strict does not let pass: asynct_decode/99_misbehaves: not on a Friday' misbehaving unsupported --strict
grep -q 'exit 1: 0 of 6 results fail the run, 1 variants were never judged' "$scratch/out" || fail "the exit line"
wants 0 'exit 0' misbehaving unsupported --strict --shard 1/2
