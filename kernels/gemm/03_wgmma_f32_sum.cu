/* A product on tensor cores: wgmma m64n64k16 straight from swizzled shared memory, the next step loaded meanwhile; sums
 * in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01_mma_f32_sum, since wgmma sums as mma.sync does: 16 products an instruction, aligned and truncated,
 * their sum truncated to f32; one rounding for the scale, one to the format of d.
 * Launch: grid (columns / 64, rows / 64), one warpgroup; 32 KiB of shared memory for two stages of 128 bytes of k; one
 * barrier of the block a step.
 * Limits: sm_90a, elsewhere a launch traps; f16 or bf16; any m, n, k.
 * Source: ours. */
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
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "factors are f16 or bf16";
    return at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_F16 ? at_gemm_launch(launch, multiply<at_f16>, 0)
                                            : at_gemm_launch(launch, multiply<at_bf16>, 0);
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
