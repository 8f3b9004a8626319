/* A product on tensor cores: wgmma m64n64k32 of 8-bit factors, one accumulator for all of k.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: 32 products an instruction, aligned and truncated, and the sum is cut to 13 fraction bits: once it is
 * 2^14 times a product, that product no longer changes it. One rounding for the scale, one to the format of d.
 * Launch: grid (columns / 64, rows / 64), one warpgroup; 32 KiB of shared memory for two stages of 128 bytes of k; one
 * barrier of the block a step.
 * Limits: sm_90a, elsewhere a launch traps; e4m3 or e5m2; any m, n, k.
 * Source: 004: fast accumulation. */
#include "kernels/gemm/gemm_wgmma.h"

namespace {

template <class T> __global__ void __launch_bounds__(AT_GEMM_THREADS, 1) multiply(at_gemm_view<T> v) {
    AT_SHARED(at_gemm_tile[2], a);
    AT_SHARED(at_gemm_tile[2], b);
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    float sums[AT_GEMM_TILE / 8][4] = {};
    at_gemm_wgmma_stage(v, row, column, 0, a[0], b[0]);
    at_sync();
    for (int begin = 0, stage = 0; begin < v.k; begin += AT_GEMM_STEP<T>, stage = 1 - stage) {
        const int next = begin + AT_GEMM_STEP<T>;
        at_wgmma_fence(sums);
        at_gemm_wgmma_multiply<T>(a[stage], b[stage], sums);
        at_wgmma_commit();
        if (next < v.k) /* overlaps the products */
            at_gemm_wgmma_stage(v, row, column, next, a[1 - stage], b[1 - stage]);
        at_wgmma_wait<0>(sums);
        at_sync();
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

AT_KERNEL(gemm, 04_wgmma_fp8) = {
    .summary = "wgmma, 64 x 64 elements a warpgroup; e4m3 or e5m2, sums of 13 fraction bits",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_FP8, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
