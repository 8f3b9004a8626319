/* A product on tensor cores, wgmma m64n64k16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01; wgmma sums as mma.sync does.
 * Launch: grid (columns / 64, rows / 64), a warpgroup; 32 KiB of shared memory for two steps of 128 bytes of k. One
 * barrier of the block a step.
 * Limits: sm_90a, elsewhere a launch traps; f16 or bf16; any m, n, k.
 * Source: ours. */
#include "kernels/gemm/gemm_wgmma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "factors are f16 or bf16";
    return at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_F16 ? at_gemm_wgmma_launch<at_f16, float, 4>(launch)
                                            : at_gemm_wgmma_launch<at_bf16, float, 4>(launch);
}

} // namespace

AT_KERNEL(gemm, 03_wgmma_f32_sum) = {
    .summary = "wgmma, 64 x 64 elements a warpgroup; sums in f32",
    .source = "ours",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_F32, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
