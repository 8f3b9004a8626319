/* A product on tensor cores, mma.sync m16n8k16, sums in f16, infinities written as 65504.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_mma_f16_sum, but an infinity that a step of 16 products leaves is written as 65504; a NaN passes.
 * Launch: grid (columns / 64, rows / 64), 4 warps of 16 rows and 64 columns each; 18 KiB of shared memory for 64
 * products of a step. Two barriers of the block a step.
 * Limits: f16; any m, n, k.
 * Source: 004, whose guard writes 65500. */
#include "kernels/gemm/gemm_mma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "factors are f16" : at_gemm_declines(problem);
}

} // namespace

AT_KERNEL(gemm, 02_mma_f16_sum_guarded) = {
    .summary = "mma.sync, 64 x 64 elements a block; sums in f16, infinities written as 65504",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_F16, 0, AT_GUARD_ISINF),
    .supports = supports,
    .workspace = nullptr,
    .launch = at_gemm_mma_launch<at_f16, at_sum_f16<AT_GUARD_ISINF>>,
};
