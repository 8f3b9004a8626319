/* A product on tensor cores: mma.sync m16n8k32 of 8-bit factors, sums in f16, half the registers of f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as sm_90 and sm_100 have the instruction: unlike 08_mma_fp8_f32_sum, both steps of 16 products are rounded
 * to nearest in f16, and so is what is added to the accumulator, whose range ends at 65504: an overflow stays infinite or
 * becomes a NaN. One rounding for the scales, one for the bias, one to the format of d.
 * Launch: grid (columns / 64, rows / 64), 4 warps of 16 rows and 64 columns each; 18 KiB of dynamic shared memory for the
 * tiles of a step of 128 products; two barriers of the block a step. One thread before it, where amax is asked for.
 * Limits: sm_89 and newer, before that a launch traps; e4m3 or e5m2; any m, n, k.
 * Source: 004, which names twice the rate for it on an RTX 4090. */
#include "kernels/gemm/gemm_mma_fp8.h"

namespace {

template <class T> __global__ void __launch_bounds__(AT_GEMM_THREADS, 1) multiply(at_gemm_view<T> v) {
    AT_SHARED_DYNAMIC(T, a);
    T *b = a + AT_GEMM_MMA_TILE<T>;
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    uint32_t sums[AT_GEMM_TILE / 8][2] = {}; /* pairs of f16 */
    for (int begin = 0; begin < v.k; begin += AT_GEMM_STEP<T>) {
        at_gemm_mma_stage(v.a, v.m, v.k, row, begin, a);
        at_gemm_mma_stage(v.b, v.n, v.k, column, begin, b);
        at_sync();
        at_gemm_fp8_multiply(a, b, sums);
        at_sync(); /* before the next step overwrites the tiles */
    }
    at_gemm_store(v, row, column, sums);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_E4M3 ? at_gemm_launch(launch, multiply<at_e4m3>, AT_GEMM_MMA_SHARED)
                                             : at_gemm_launch(launch, multiply<at_e5m2>, AT_GEMM_MMA_SHARED);
}

} // namespace

AT_KERNEL(gemm, 08_mma_fp8_f16_sum) = {
    .summary = "mma.sync, 64 x 64 elements a block; e4m3 or e5m2, sums in f16 as sm_90 has them",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_FP8_BY_F16_F16, 0, AT_GUARD_NONE),
    .supports = at_gemm_fp8_declines,
    .workspace = nullptr,
    .launch = launch,
};
