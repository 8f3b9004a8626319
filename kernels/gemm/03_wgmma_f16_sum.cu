/* A product on tensor cores, wgmma m64n64k16, sums in f16.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_mma_f16_sum; wgmma sums as mma.sync does.
 * Launch: grid (columns / 64, rows / 64), a warpgroup; 32 KiB of shared memory for two steps of 128 bytes of k. One
 * barrier of the block a step.
 * Limits: sm_90a, elsewhere a launch traps; f16; any m, n, k.
 * Source: 004 for sums in f16. */
#include "kernels/gemm/gemm_wgmma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "factors are f16" : at_gemm_declines(problem);
}

} // namespace

AT_KERNEL(gemm, 03_wgmma_f16_sum) = {
    .summary = "wgmma, 64 x 64 elements a warpgroup; sums in f16",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_F16, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = at_gemm_wgmma_launch<at_f16, uint32_t, 2>,
};
