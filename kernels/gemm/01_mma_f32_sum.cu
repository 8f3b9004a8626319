/* A product on tensor cores, mma.sync m16n8k16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: 16 products a step of the tensor core, cut where they are aligned and cut again to f32; one rounding for
 * the scale, one for the product.
 * Launch: grid (columns / 64, rows / 64), 4 warps of 16 rows and 64 columns each; 18 KiB of shared memory for 64
 * products of a step. Two barriers of the block a step.
 * Limits: f16 or bf16; any m, n, k.
 * Source: 004. */
#include "kernels/gemm/gemm_mma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "factors are f16 or bf16";
    return at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_F16 ? at_gemm_mma_launch<at_f16, at_sum_f32>(launch)
                                            : at_gemm_mma_launch<at_bf16, at_sum_f32>(launch);
}

} // namespace

AT_KERNEL(gemm, 01_mma_f32_sum) = {
    .summary = "mma.sync, 64 x 64 elements a block; sums in f32",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_F32, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
