/* A product by cuBLAS, where it is installed: what others are timed against.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: cublasGemmEx on tensor cores with sums in f32, in an order that cuBLAS picks by sizes and device; partial
 * sums are not stored in 16 bits (its math mode forbids that). The scale multiplies in f32; one rounding to the format of d.
 * Launch: what cuBLAS launches, on the given stream, with 32 MiB of workspace.
 * Limits: attest-cuda alone has it, and declines it where libcublas cannot be opened; f16 or bf16; d of the same format or
 * f32; some products.
 * Source: ours. */
#include "kernels/host/cublas.h"

static const char *supports(const struct at_problem *problem) {
    if (at_gemm_own_of(problem).layout != AT_GEMM_NK)
        return "the second factor is stored by columns";
    return at_cublas_declines(problem);
}

AT_KERNEL(gemm, 90_cublas) = {
    .summary = "cublasGemmEx with sums in f32, where libcublas is installed",
    .source = "ours",
    .numerics = AT_CUBLAS_NUMERICS,
    .supports = supports,
    .workspace = at_cublas_workspace,
    .launch = at_cublas_launch,
};
