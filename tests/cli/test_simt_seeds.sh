#!/bin/bash
# The SIMT machine accuses no right kernel, in whatever order warps and blocks take their turns; and the seed reaches it.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
seeds=20 parts=20 variants=('*/0[1-9]_*' '*/[123][0-9]_*') # every CUDA variant
[[ "${AT_EFFORT:-full}" == fast ]] && seeds=2 parts=1 variants=('asynct_decode/0[127]_*')
n=$("$attest" list kernels | grep -cE '^[a-z_]+/(0[1-9]|[123][0-9])_')
[[ $n -ge 150 ]] || fail "only $n variants"
# At full effort each seed takes a twentieth of the cases: every case meets a seed that is not the usual one, and a variant as many
# as it has cases for. A seed is of every launch, so one of each job is enough.
for ((seed = 1; seed <= seeds; seed++)); do
    AT_SIMT_SEED=$seed wants 0 "exit 0: no result fails the run" \
        "$attest" verify "${variants[@]}" --cases 'smoke:*' --again 1000000 --strict --quiet --shard $((seed % parts + 1))/$parts
done
# A wrong one is accused under every seed.
for ((seed = 1; seed <= seeds; seed++)); do
    AT_SIMT_SEED=$seed wants 1 " RACY" "$attest" verify --runner mutants 'asynct_decode/12_no_barrier_before_pv' \
        --case 'asynct_decode b=2 h=2 hk=1 sk=200 d=64 dtype=bf16 data=normal' --quiet
done
