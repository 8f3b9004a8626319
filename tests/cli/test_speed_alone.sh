#!/bin/bash
# How fast the SIMT machine and the tensor-core model are, in processor time: other work on the machine does not count, though it
# takes its share of the caches. So by itself, after the others.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
# A decode of 2 x 8 x 1024 keys, eight times: once to verify it, once to count, three times each with the checks and without.
processor_seconds "$scratch/time" "$attest" bench simt --rounds 3 > "$scratch/out" || fail "bench simt: exit $?"
cat "$scratch/out" "$scratch/time"
grep -q MODEL-EXACT "$scratch/out" || fail "the variant is not MODEL-EXACT"
[[ -n "${AT_SLOW_BUILD:-}" ]] || under 4 "$scratch/time"
# 60 million products a second.
head -n 6 datasets/measurements/h200_tensor_core.txt > "$scratch/golden"
[[ -n "${AT_SLOW_BUILD:-}" ]] || wants 0 'as on the device' "$attest" bench tensor-core --golden "$scratch/golden" --min-rate 60
