/* A product on tensor cores: wgmma m64n64k16, sums in f16, two to a register.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_mma_f16_sum, since wgmma sums as mma.sync does: unlike 03_wgmma_f32_sum, each sum of 16 products
 * is rounded to nearest in f16, and an overflow stays infinite or becomes a NaN.
 * Launch: grid (columns / 64, rows / 64), one warpgroup; 32 KiB of shared memory for two stages of 128 bytes of k; one
 * barrier of the block a step.
 * Limits: sm_90a, elsewhere a launch traps; f16; any m, n, k.
 * Source: 004 for sums in f16. */
#include "kernels/gemm/gemm_wgmma.h"

namespace {

__global__ void __launch_bounds__(AT_GEMM_THREADS, 1) multiply(at_gemm_view<at_f16> v) {
    AT_SHARED(at_gemm_tile[2], a);
    AT_SHARED(at_gemm_tile[2], b);
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    uint32_t sums[AT_GEMM_TILE / 8][2] = {}; /* pairs of f16 */
    at_gemm_wgmma_stage(v, row, column, 0, a[0], b[0]);
    at_sync();
    for (int begin = 0, stage = 0; begin < v.k; begin += AT_GEMM_STEP<at_f16>, stage = 1 - stage) {
        const int next = begin + AT_GEMM_STEP<at_f16>;
        at_wgmma_fence(sums);
        at_gemm_wgmma_multiply<at_f16>(a[stage], b[stage], sums);
        at_wgmma_commit();
        if (next < v.k) /* overlaps the products */
            at_gemm_wgmma_stage(v, row, column, next, a[1 - stage], b[1 - stage]);
        at_wgmma_wait<0>(sums);
        at_sync();
    }
    at_gemm_store(v, row, column, sums);
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "factors are f16" : at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) { return at_gemm_launch(launch, multiply, 0); }

} // namespace

AT_KERNEL(gemm, 03_wgmma_f16_sum) = {
    .summary = "wgmma, 64 x 64 elements a warpgroup; sums in f16",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_F16, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
