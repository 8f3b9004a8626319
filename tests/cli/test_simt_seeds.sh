#!/bin/bash
# The SIMT machine accuses no right kernel, in whatever order warps and blocks take their turns; and the seed reaches it.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
seeds=20
[[ "${AT_EFFORT:-full}" == fast ]] && seeds=2
# Every CUDA variant meets an order of each of its cases' own in test_check_cases.sh (AT_SIMT_SEED=own): here that two seeds by
# number are taken, and that `own` is another order than the usual one, and the same one each time.
for seed in 1 2; do
    AT_SIMT_SEED=$seed wants 0 "exit 0: no result fails the run" \
        "$attest" verify 'asynct_decode/0[127]_*' --cases 'smoke:*' --again 1000000 --strict --quiet
done
sums() { # SEED: errors of sums that are added in whatever order blocks take their turns
    AT_SIMT_SEED=$1 wants 0 "exit 0: no result fails the run" "$attest" verify gemv/03_split_atomic --again 1000000 --quiet \
        --case 'gemv m=3 n=17,33,65 k=700 layout=kn dtype=bf16 out=f32 data=normal' --json "$scratch/sums.jsonl"
    grep -o '"err_rms":[^,]*' "$scratch/sums.jsonl" | paste -sd' '
}
usual=$(sums 0) own=$(sums own)
[[ $(wc -w <<< "$own") == 3 && "$own" == "$(sums own)" && "$own" != "$usual" ]] || fail "seed own: $own; the usual order: $usual"
# A wrong one is accused under every seed.
for ((seed = 1; seed <= seeds; seed++)); do
    AT_SIMT_SEED=$seed wants 1 " RACY" "$attest" verify --runner mutants 'asynct_decode/12_no_barrier_before_pv' \
        --case 'asynct_decode b=2 h=2 hk=1 sk=200 d=64 dtype=bf16 data=normal' --quiet
done
