/* A product with weights by rows: tiles of 128 columns and 256 products, whose sums are added by atomics.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 01_plain, a column has a block for every 256 products, so that 4096 by 4096 is work for 512 blocks; x is in shared
 * memory. The f32 sums that atomics add to must be 0 before: a kernel of its own clears them.
 *
 * Numerically: one chain of fma for each 256 products; their sums are added in f32 in the order in which blocks come, which
 * changes from launch to launch. One rounding for the scale, one for the format of y.
 * Launch: grid (elements / 256), 256 threads, to clear; grid (columns / 128 * products / 256), 128 threads, 1 KiB of shared
 * memory a row, one barrier of the block; grid (elements / 256), 256 threads, to scale and round. Scratch: 4 bytes an
 * element of y.
 * Limits: f16 or bf16; at most eight rows; any n, k.
 * Source: 002. */
#include "kernels/gemv/gemv_tile.h"

namespace {

__global__ void __launch_bounds__(AT_GEMV_ELEMENTS) clear(float *sums, int64_t n) {
    const int64_t i = (int64_t)blockIdx.x * AT_GEMV_ELEMENTS + (int)threadIdx.x;
    if (i < n)
        sums[i] = 0;
}

template <class T, int M>
__global__ void __launch_bounds__(AT_GEMV_TILE_COLUMNS) multiply(at_gemv_view<T> v, float *sums) {
    at_gemv_tile<T, M>(
        v, [&](int, int row, int column, float sum) { at_atomic_add(sums + (int64_t)row * v.n + column, sum); });
}

template <class T> __global__ void __launch_bounds__(AT_GEMV_ELEMENTS) finish(at_gemv_view<T> v, const float *sums) {
    const int64_t i = (int64_t)blockIdx.x * AT_GEMV_ELEMENTS + (int)threadIdx.x;
    if (i < (int64_t)v.m * v.n)
        v.put((int)(i / v.n), (int)(i % v.n), sums[i]);
}

int64_t workspace(const struct at_problem *p) {
    return at_gemm_own_of(p).m * at_gemm_own_of(p).n * (int64_t)sizeof(float);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_gemv_launch(p, [=]<class T, int M>() {
        const at_gemv_view<T> v = at_gemv_view<T>::of(p);
        const dim3 tiles = at_gemv_tiles(p), elements = at_gemv_elements(p), threads{ AT_GEMV_ELEMENTS, 1, 1 };
        float *sums = static_cast<float *>(launch->workspace);
        int code = at_launch(clear, elements, threads, 0, launch->stream, sums, (int64_t)v.m * v.n);
        if (code == 0 && tiles.x > 0)
            code = at_launch(multiply<T, M>, tiles, dim3{ AT_GEMV_TILE_COLUMNS, 1, 1 }, 0, launch->stream, v, sums);
        return code == 0 ? at_launch(finish<T>, elements, threads, 0, launch->stream, v, sums) : code;
    });
}

} // namespace

AT_KERNEL(gemv, 03_split_atomic) = {
    .summary = "tiles of 128 x 256, added by atomics in f32",
    .source = "002",
    .numerics = {
        .free_order = 1,
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .split = AT_GEMV_TILE_PRODUCTS,
    },
    .supports = at_gemv_declines,
    .workspace = workspace,
    .launch = launch,
};
