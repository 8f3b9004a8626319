#!/bin/bash
# The SIMT machine accuses no right kernel, in whatever order warps and blocks take their turns; and the seed reaches it.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
seeds=20 cases='@(smoke|edge):*'
[[ "${AT_EFFORT:-full}" == fast ]] && seeds=3 cases='smoke:*'
n=$(find kernels -path '*/asynct_decode/0[127]_*.cu' | wc -l)
[[ $n -ge 3 ]] || fail "only $n variants"
for ((seed = 1; seed <= seeds; seed++)); do
    AT_SIMT_SEED=$seed wants 0 "exit 0: no result fails the run" \
        "$attest" verify 'asynct_decode/0[127]*' --cases "$cases" --strict --quiet
done
# A wrong one is accused under every seed.
for ((seed = 1; seed <= seeds; seed++)); do
    AT_SIMT_SEED=$seed wants 1 " RACY" "$attest" verify --runner mutants 'asynct_decode/12_no_barrier_before_pv' \
        --case 'asynct_decode b=2 h=2 hk=1 sk=200 d=64 dtype=bf16 data=normal' --quiet
done
