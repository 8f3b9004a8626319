#!/bin/bash
# The demonstration does what the README says: real activations pass, the wrong kernel is named, the archive is there.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases=() layers='0 1 2 3 4 5'
[[ "${AT_EFFORT:-full}" == fast ]] && cases=('real:*_prefill*layer=3*pad_d=0*') layers=3
code=0
processor_seconds "$scratch/time" tests/cli/demo.sh "$BUILD" "$scratch/demo" "${cases[@]}" > "$scratch/demo.txt" 2>&1 || code=$?
[[ $code == 0 ]] || { tail -n 40 "$scratch/demo.txt"; fail "demo: exit $code"; }
grep -q WRONG "$scratch/demo.txt" || fail "no wrong kernel was rejected"
grep -q 'looks like last_key_dropped' "$scratch/demo.txt" || fail "the likely cause is not named"
grep -qE 'got .* want' "$scratch/demo.txt" || fail "the wrong element is not named"
[[ -s "$scratch/demo/minilm.h5" ]] || fail "no archive"
sed '/planted wrong kernel/,$d' "$scratch/demo.txt" > "$scratch/baselines"
for layer in $layers; do grep -q "layer=$layer" "$scratch/baselines" || fail "layer $layer is not in the table"; done
rows=$(grep -c '^PASS' "$scratch/baselines")
[[ $rows -ge $((20 * $(wc -w <<< "$layers"))) ]] || fail "only $rows results passed"
[[ -n "${AT_SLOW_BUILD:-}" ]] || under 60 "$scratch/time"
