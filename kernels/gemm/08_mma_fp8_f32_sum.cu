/* A product on tensor cores: mma.sync m16n8k32 of 8-bit factors, sums in f32, one accumulator for all of k.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as sm_90 and sm_100 have the instruction, which is what is declared: they have no unit for it, 32 products
 * are two steps of 16 by the unit of f16, from 0, and their sum is added to the accumulator in f32. So nothing is lost at 13
 * fraction bits, unlike 04_wgmma_fp8. sm_89, whose own unit cuts every 16 products there, gives other bits: those of
 * 00_tc_fp8_ada. One rounding for the scales, one for the bias, one to the format of d.
 * Launch: grid (columns / 64, rows / 64), 4 warps of 16 rows and 64 columns each; 18 KiB of dynamic shared memory for the
 * tiles of a step of 128 products; two barriers of the block a step. One thread before it, where amax is asked for.
 * Limits: sm_89 and newer, before that a launch traps; e4m3 or e5m2; any m, n, k.
 * Source: 004: fast accumulation, by the instruction that it has. */
#include "kernels/gemm/gemm_mma_fp8.h"

namespace {

template <class T> __global__ void __launch_bounds__(AT_GEMM_THREADS, 1) multiply(at_gemm_view<T> v) {
    AT_SHARED_DYNAMIC(T, a);
    T *b = a + AT_GEMM_MMA_TILE<T>;
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    float sums[AT_GEMM_TILE / 8][4] = {};
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

AT_KERNEL(gemm, 08_mma_fp8_f32_sum) = {
    .summary = "mma.sync, 64 x 64 elements a block; e4m3 or e5m2, sums in f32 as sm_90 has them",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_FP8_BY_F16, 0, AT_GUARD_NONE),
    .supports = at_gemm_fp8_declines,
    .workspace = nullptr,
    .launch = launch,
};
