/* A product on tensor cores: wgmma m64n64k32 of 8-bit factors, promoted to f32 every 128 products.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04_wgmma_fp8 within 128 products (a step: four instructions, sums of 13 fraction bits); unlike there,
 * the sum of a step is added in f32, to nearest, and the next step starts from 0.
 * Launch: grid (columns / 64, rows / 64), one warpgroup; 32 KiB of shared memory for two stages of 128 bytes of k; one
 * barrier of the block a step.
 * Limits: sm_90a, elsewhere a launch traps; e4m3 or e5m2; any m, n, k.
 * Source: 004: staged accumulation. */
#include "kernels/gemm/gemm_wgmma.h"

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
    AT_SHARED(at_gemm_tile[2], a);
    AT_SHARED(at_gemm_tile[2], b);
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    float sums[AT_GEMM_TILE / 8][4] = {}, d[AT_GEMM_TILE / 8][4] = {}; /* of all steps, of this one */
    at_gemm_wgmma_stage(v, row, column, 0, a[0], b[0]);
    at_sync();
    for (int begin = 0, stage = 0; begin < v.k; begin += AT_GEMM_STEP<T>, stage = 1 - stage) {
        const int next = begin + AT_GEMM_STEP<T>;
        at_wgmma_fence(d);
        at_gemm_wgmma_multiply<T>(a[stage], b[stage], d);
        at_wgmma_commit();
        if (next < v.k) /* overlaps the products */
            at_gemm_wgmma_stage(v, row, column, next, a[1 - stage], b[1 - stage]);
        at_wgmma_wait<0>(d);
        at_sync();
        promote(sums, d);
    }
    at_gemm_store(v, row, column, sums);
}

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_E4M3 && problem->dtype != AT_E5M2)
        return "factors are e4m3 or e5m2";
    return at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_E4M3 ? at_gemm_launch(launch, multiply<at_e4m3>, 0)
                                             : at_gemm_launch(launch, multiply<at_e5m2>, 0);
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
