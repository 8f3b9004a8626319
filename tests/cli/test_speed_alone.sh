#!/bin/bash
# How fast the SIMT machine and the tensor-core model are. These limits are of seconds on the clock: by itself, after the others.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
# With every check, a decode of 2 x 8 x 1024 keys in less than a second on one core.
wants 0 'MODEL-EXACT' "$attest" bench simt --rounds 3
cat "$scratch/out"
seconds=$(sed -n 's/^checks on *\([0-9.]*\) s.*/\1/p' "$scratch/out")
awk -v s="$seconds" 'BEGIN { exit !(s > 0) }' || fail "no time of the SIMT machine"
[[ -n "${AT_SLOW_BUILD:-}" ]] || awk -v s="$seconds" 'BEGIN { exit !(s < 1) }' || fail "$seconds s, wanted under 1"
# 60 million products a second.
head -n 6 datasets/measurements/h200_tensor_core.txt > "$scratch/golden"
[[ -n "${AT_SLOW_BUILD:-}" ]] || wants 0 'as on the device' "$attest" bench tensor-core --golden "$scratch/golden" --min-rate 60
