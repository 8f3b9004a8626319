#!/bin/bash
# The committed cases by design: each file is what its own first line makes, and lacks no (variant, pair of classes) that a
# search finds. A line that is deleted is missed.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases=datasets/cases
operators=$(grep -v '^#' kernels/families.txt | awk '{print $2}' | sort -u)
slow=' asynct_attention softmax_attention score_counts '
for op in $operators; do
    [[ -f "$cases/pairs_$op.cases" ]] || fail "no $cases/pairs_$op.cases"
    [[ "${AT_EFFORT:-full}" == fast && "$slow" == *" $op "* ]] && continue
    "$attest" cases --design "$op" > "$scratch/made" || fail "no design of $op"
    cmp "$scratch/made" "$cases/pairs_$op.cases" || fail "pairs_$op.cases is not what attest cases --design $op makes"
done
for op in uclip_norm gemm; do
    "$attest" cases --design "$op" --count "$cases/pairs_$op.cases" > "$scratch/count" || fail "pairs_$op.cases lacks: $(cat "$scratch/count")"
    # Not every line is the only one with a pair: of the later ones, which were added for what was left, each is.
    line=$(grep -v '^#' "$cases/pairs_$op.cases" | tail -n 1)
    grep -vF -- "$line" "$cases/pairs_$op.cases" > "$scratch/less"
    "$attest" cases --design "$op" --count "$scratch/less" > "$scratch/count" && fail "did not miss '$line'"
    grep -q '^missing: ' "$scratch/count" || fail "does not say what is missing"
done
echo "$(grep -ch . $cases/pairs_*.cases | paste -sd+ | bc) lines by design are what makes them"
