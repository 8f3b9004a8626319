/* A product on tensor cores: mma.sync m16n8k16, sums in f16, half the registers of f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 01, each sum of 16 products is rounded to nearest in f16, whose range ends at 65504: an overflow
 * stays infinite or becomes a NaN. One rounding for the scale, one to the format of d.
 * Launch: grid (columns / 64, rows / 64), 4 warps of 16 rows and 64 columns each; 18 KiB of dynamic shared memory for
 * the tiles of a step of 64 products; two barriers of the block a step.
 * Limits: f16; any m, n, k.
 * Source: 004: twice the speed of sums in f32 on a GPU for consumers. */
#include "kernels/gemm/gemm_mma.h"

namespace {

__global__ void __launch_bounds__(AT_GEMM_THREADS, 1) multiply(at_gemm_view<at_f16> v) {
    AT_SHARED_DYNAMIC(at_f16, a);
    at_f16 *b = a + AT_GEMM_MMA_TILE<at_f16>;
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    at_sum_f16<AT_GUARD_NONE> sums[AT_GEMM_TILE / 8] = {};
    for (int begin = 0; begin < v.k; begin += AT_GEMM_STEP<at_f16>) {
        at_gemm_mma_stage(v.a, v.m, v.k, row, begin, a);
        at_gemm_mma_stage(v.b, v.n, v.k, column, begin, b);
        at_sync();
        at_gemm_mma_multiply(a, b, sums);
        at_sync(); /* before the next step overwrites the tiles */
    }
    at_gemm_store(v, row, column, sums);
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "factors are f16" : at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) { return at_gemm_launch(launch, multiply, AT_GEMM_MMA_SHARED); }

} // namespace

AT_KERNEL(gemm, 02_mma_f16_sum) = {
    .summary = "mma.sync, 64 x 64 elements a block; sums in f16",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_F16, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
