/* A product on tensor cores, wgmma m64n64k32, factors of 8 bits, one accumulator.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: 32 products a step of the tensor core, cut where they are aligned and cut again to 13 fraction bits: a
 * sum that is 2^14 times a product no longer sees it. Launch: grid (columns / 64, rows / 64), a warpgroup; 32 KiB of
 * shared memory for two steps of 128 bytes of k. One barrier of the block a step. Limits: sm_90a, elsewhere a launch
 * traps; e4m3 or e5m2; any m, n, k. Source: 004: fast accumulation. */
#include "kernels/gemm/gemm_wgmma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_E4M3 && problem->dtype != AT_E5M2)
        return "factors are e4m3 or e5m2";
    return at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_E4M3 ? at_gemm_wgmma_launch<at_e4m3, float, 4>(launch)
                                             : at_gemm_wgmma_launch<at_e5m2, float, 4>(launch);
}

} // namespace

AT_KERNEL(gemm, 04_wgmma_fp8) = {
    .summary = "wgmma, 64 x 64 elements a warpgroup; e4m3 or e5m2, sums of 13 fraction bits",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_FP8, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
