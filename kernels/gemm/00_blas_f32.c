/* A product over OpenBLAS, in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: sgemm, in an order that OpenBLAS picks by size and processor; one rounding for the scale, one for the
 * product.
 * Launch: one thread; scratch for the second factor and 32 rows, in f32.
 * Limits: none.
 * Source: ours; the body is kernels/host/gemm.c. */
#include "kernels/host/gemm.h"

#include <stddef.h>

AT_KERNEL(gemm, 00_blas_f32) = {
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
    .supports = NULL,
    .workspace = at_host_gemm_blas_workspace,
    .launch = at_host_gemm_blas,
};
