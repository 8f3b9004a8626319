/* A product on tensor cores, wgmma m64n64k32, factors of 8 bits, promoted to f32 every 128 products.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04 for 128 products, four steps of the tensor core; their sum is added in f32, to nearest.
 * Launch: grid (columns / 64, rows / 64), a warpgroup; 32 KiB of shared memory for two steps of 128 bytes of k. One
 * barrier of the block a step.
 * Limits: sm_90a, elsewhere a launch traps; e4m3 or e5m2; any m, n, k.
 * Source: 004: staged accumulation. */
#include "kernels/gemm/gemm_wgmma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_E4M3 && problem->dtype != AT_E5M2)
        return "factors are e4m3 or e5m2";
    return at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_E4M3 ? at_gemm_wgmma_launch<at_e4m3, float, 4, true>(launch)
                                             : at_gemm_wgmma_launch<at_e5m2, float, 4, true>(launch);
}

} // namespace

AT_KERNEL(gemm, 05_wgmma_fp8_promoted) = {
    .summary = "as 04 with the sums of 128 products added in f32",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_FP8, 128, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
