/* A product with weights by rows over OpenBLAS, in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: sgemm, in an order that OpenBLAS picks by size and processor; one rounding for the scale, one for the
 * product.
 * Launch: one thread; scratch for the weights and 32 rows, in f32.
 * Limits: weights by rows.
 * Source: ours; the body is kernels/host/gemm.c. */
#include <stddef.h>

#include "gemm/gemm.h"
#include "kernels/host/gemm.h"

static const char *supports(const struct at_problem *problem) {
    return at_gemm_own_of(problem).layout != AT_GEMM_KN ? "the second factor is stored by rows" : NULL;
}

AT_KERNEL(gemv, 00_blas_f32) = {
    .summary = "f32 sgemm",
    .source = "ours",
    .numerics = {
        .free_order = 1,
        .qk_unit = AT_UNIT_F32, /* whether the BLAS fuses depends on the core: the looser of the two */
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
    },
    .supports = supports,
    .workspace = at_host_gemm_blas_workspace,
    .launch = at_host_gemm_blas,
};
