/* A product with f16 accumulation by the tensor-core rule.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: 16 products a step, one rounding to nearest a step, as mma.sync f16 -> f16 of sm_90 does; no guard
 * against overflow. One rounding in f32 for the scale, one for the product.
 * Launch: one thread; scratch for both factors, decoded.
 * Limits: f16.
 * Source: ours; the body is kernels/host/gemm.c, the arithmetic kernels/host/tensor_f16.c. */
#include "kernels/host/gemm.h"

#include <stddef.h>

#include "gemm/gemm.h"

static const char *supports(const struct at_problem *problem) {
    if (at_gemm_own_of(problem).layout != AT_GEMM_NK)
        return "the second factor is stored by columns";
    return problem->dtype != AT_F16 ? "f16 accumulators take f16 operands only" : NULL;
}

AT_KERNEL(gemm, 00_tc_f16) = {
    .summary = "f16 accumulation in fused steps of 16, by the tensor-core rule",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_TC_F16,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = supports,
    .workspace = at_host_gemm_tc_f16_workspace,
    .launch = at_host_gemm_tc_f16,
};
