/* A product of 8-bit factors by the rule of sm_89's tensor cores.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: 16 products a step, aligned and cut to 13 fraction bits with the accumulator, as mma.sync m16n8k32 of sm_89
 * (an RTX 4090's) does: what 08_mma_fp8_f32_sum gives on such a card, where sm_90 has other bits. One rounding in f32 for
 * the scales, one for the bias, one for the product.
 * Launch: one thread; scratch for both factors, decoded.
 * Limits: e4m3 or e5m2.
 * Source: ours, for the device of 004; the body is kernels/host/gemm.c, the arithmetic kernels/host/tensor_fp8.c. */
#include "kernels/host/gemm.h"

#include <stddef.h>

#include "gemm/gemm.h"

static const char *supports(const struct at_problem *problem) {
    if (at_gemm_own_of(problem).layout != AT_GEMM_NK)
        return "the second factor is stored by columns";
    return problem->dtype != AT_E4M3 && problem->dtype != AT_E5M2 ? "factors are e4m3 or e5m2" : NULL;
}

AT_KERNEL(gemm, 00_tc_fp8_ada) = {
    .summary = "sums of 13 fraction bits in fused steps of 16 products of 8 bits, by the rule of sm_89",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_TC_FP8_ADA,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = supports,
    .workspace = at_host_gemm_tc_fp8_workspace,
    .launch = at_host_gemm_tc_fp8,
};
