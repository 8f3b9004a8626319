/* A product on tensor cores: mma.sync m16n8k16 on tiles in shared memory, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: 16 products an instruction, each aligned and truncated by the tensor core, their sum truncated to f32;
 * one rounding for the scale, one to the format of d.
 * Launch: grid (columns / 64, rows / 64), 4 warps of 16 rows and 64 columns each; 18 KiB of dynamic shared memory for
 * the tiles of a step of 64 products; two barriers of the block a step.
 * Limits: f16 or bf16; any m, n, k.
 * Source: 004. */
#include "kernels/gemm/gemm_mma.h"

namespace {

template <class T> __global__ void __launch_bounds__(AT_GEMM_THREADS, 1) multiply(at_gemm_view<T> v) {
    AT_SHARED_DYNAMIC(T, a);
    T *b = a + AT_GEMM_MMA_TILE<T>;
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    at_sum_f32 sums[AT_GEMM_TILE / 8] = {};
    for (int begin = 0; begin < v.k; begin += AT_GEMM_STEP<T>) {
        at_gemm_mma_stage(v.a, v.m, v.k, row, begin, a);
        at_gemm_mma_stage(v.b, v.n, v.k, column, begin, b);
        at_sync();
        at_gemm_mma_multiply(a, b, sums);
        at_sync(); /* before the next step overwrites the tiles */
    }
    at_gemm_store(v, row, column, sums);
}

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "factors are f16 or bf16";
    return at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_F16 ? at_gemm_launch(launch, multiply<at_f16>, AT_GEMM_MMA_SHARED)
                                            : at_gemm_launch(launch, multiply<at_bf16>, AT_GEMM_MMA_SHARED);
}

} // namespace

AT_KERNEL(gemm, 01_mma_f32_sum) = {
    .summary = "mma.sync, 64 x 64 elements a block; sums in f32",
    .source = "004",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_F32, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
