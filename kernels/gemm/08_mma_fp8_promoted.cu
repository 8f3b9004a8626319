/* A product on tensor cores: mma.sync m16n8k32 of 8-bit factors, promoted to f32 every 128 products.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 08_mma_fp8_f32_sum within 128 products (a step: four instructions); unlike there, the sum of a step is
 * added in f32, to nearest, and the next step starts from 0. On sm_89, whose accumulator keeps 13 fraction bits, that is
 * what bounds the loss; on sm_90 the sum within a step is f32 already.
 * Launch: grid (columns / 64, rows / 64), 4 warps of 16 rows and 64 columns each; 18 KiB of dynamic shared memory for the
 * tiles of a step of 128 products; two barriers of the block a step. One thread before it, where amax is asked for.
 * Limits: sm_89 and newer, before that a launch traps; e4m3 or e5m2; any m, n, k.
 * Source: 004: staged accumulation, by the instruction that it has. */
#include "kernels/gemm/gemm_mma_fp8.h"

namespace {

/* Moves the sums of a step on to f32 and begins the next step from 0. */
template <int N> __device__ void promote(float (&sums)[N][4], float (&d)[N][4]) {
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        AT_UNROLL
        for (int j = 0; j < 4; j++) {
            sums[i][j] += d[i][j];
            d[i][j] = 0.0f;
        }
    }
}

template <class T> __global__ void __launch_bounds__(AT_GEMM_THREADS, 1) multiply(at_gemm_view<T> v) {
    AT_SHARED_DYNAMIC(T, a);
    T *b = a + AT_GEMM_MMA_TILE<T>;
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    float sums[AT_GEMM_TILE / 8][4] = {}, d[AT_GEMM_TILE / 8][4] = {}; /* of all steps, of this one */
    for (int begin = 0; begin < v.k; begin += AT_GEMM_STEP<T>) {
        at_gemm_mma_stage(v.a, v.m, v.k, row, begin, a);
        at_gemm_mma_stage(v.b, v.n, v.k, column, begin, b);
        at_sync();
        at_gemm_fp8_multiply(a, b, d);
        promote(sums, d);
        at_sync(); /* before the next step overwrites the tiles */
    }
    at_gemm_store(v, row, column, sums);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_E4M3 ? at_gemm_launch(launch, multiply<at_e4m3>, AT_GEMM_MMA_SHARED)
                                             : at_gemm_launch(launch, multiply<at_e5m2>, AT_GEMM_MMA_SHARED);
}

} // namespace

AT_KERNEL(gemm, 08_mma_fp8_promoted) = {
    .summary = "as 08_mma_fp8_f32_sum with the sums of 128 products added in f32",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_FP8_BY_F16, 128, AT_GUARD_NONE),
    .supports = at_gemm_fp8_declines,
    .workspace = nullptr,
    .launch = launch,
};
