#!/bin/bash
# The demonstration does what the README says: real activations pass, the wrong kernel is named, the archive is there.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
start=$(date +%s)
tests/cli/demo.sh "$BUILD" "$scratch/demo" > "$scratch/demo.txt" 2>&1 || { tail -n 40 "$scratch/demo.txt"; fail "demo: exit $?"; }
seconds=$(($(date +%s) - start))
grep -q WRONG "$scratch/demo.txt" || fail "no wrong kernel was rejected"
grep -q 'looks like last_key_dropped' "$scratch/demo.txt" || fail "the likely cause is not named"
grep -qE 'got .* want' "$scratch/demo.txt" || fail "the wrong element is not named"
[[ -s "$scratch/demo/minilm.h5" ]] || fail "no archive"
for layer in 0 1 2 3 4 5; do grep -q "layer=$layer" "$scratch/demo.txt" || fail "layer $layer is not in the table"; done
[[ -n "${AT_SLOW_BUILD:-}" || $seconds -lt 60 ]] || fail "took $seconds s, wanted under 60"
