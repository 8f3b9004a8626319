/* A product with weights by rows, one chain of fmaf an element.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the products of an element are added in ascending order, one rounding to f32 a product; one rounding for
 * the scale, one for the format of y. What 01_plain and 02_vector_loads compute, of any format.
 * Launch: one thread; no scratch.
 * Limits: weights by rows.
 * Source: ours; the body is kernels/host/gemm.c. */
#include <stddef.h>

#include "gemm/gemm.h"
#include "kernels/host/gemm.h"

static const char *supports(const struct at_problem *problem) {
    return at_gemm_own_of(problem).layout != AT_GEMM_KN ? "the second factor is stored by rows" : NULL;
}

AT_KERNEL(gemv, 00_one_chain) = {
    .summary = "one chain of fmaf an element",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = supports,
    .workspace = NULL,
    .launch = at_host_gemm_one_chain,
};
