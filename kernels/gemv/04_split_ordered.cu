/* A product with weights by rows: tiles of 128 columns and 256 products, whose sums a second kernel adds in order.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 03_split_atomic, each tile has a place of its own in the workspace: nothing needs clearing, and the same launch
 * gives the same bits.
 *
 * Numerically: one chain of fma for each 256 products; their sums are added in f32 in ascending order. One rounding for the
 * scale, one for the format of y.
 * Launch: grid (columns / 128 * products / 256), 128 threads, 1 KiB of shared memory a row, one barrier of the block; then
 * grid (elements / 256), 256 threads. Scratch: 4 bytes an element of y for each 256 products.
 * Limits: f16 or bf16; at most eight rows; any n, k.
 * Source: 002 for the tiles, ours for the order. */
#include "kernels/gemv/gemv_tile.h"

namespace {

template <class T, int M>
__global__ void __launch_bounds__(AT_GEMV_TILE_COLUMNS) multiply(at_gemv_view<T> v, float *partials) {
    at_gemv_tile<T, M>(v, [&](int part, int row, int column, float sum) {
        partials[((int64_t)part * v.m + row) * v.n + column] = sum;
    });
}

template <class T>
__global__ void __launch_bounds__(AT_GEMV_ELEMENTS) add(at_gemv_view<T> v, const float *partials, int parts) {
    const int64_t n = (int64_t)v.m * v.n, i = (int64_t)blockIdx.x * AT_GEMV_ELEMENTS + (int)threadIdx.x;
    if (i >= n)
        return;
    float sum = parts > 0 ? partials[i] : 0.0f;
    for (int part = 1; part < parts; part++)
        sum += partials[part * n + i];
    v.put((int)(i / v.n), (int)(i % v.n), sum);
}

int64_t workspace(const struct at_problem *p) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    return z.m * z.n * at_gemv_parts(p) * (int64_t)sizeof(float);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_gemv_launch(p, [=]<class T, int M>() {
        const at_gemv_view<T> v = at_gemv_view<T>::of(p);
        const dim3 tiles = at_gemv_tiles(p);
        float *partials = static_cast<float *>(launch->workspace);
        const int code = tiles.x == 0 ? 0
                                      : at_launch(multiply<T, M>, tiles, dim3{ AT_GEMV_TILE_COLUMNS, 1, 1 }, 0,
                                                  launch->stream, v, partials);
        if (code != 0)
            return code;
        return at_launch(add<T>, at_gemv_elements(p), dim3{ AT_GEMV_ELEMENTS, 1, 1 }, 0, launch->stream, v, partials,
                         at_gemv_parts(p));
    });
}

} // namespace

AT_KERNEL(gemv, 04_split_ordered) = {
    .summary = "tiles of 128 x 256, added in ascending order by a second kernel",
    .source = "002",
    .numerics = AT_GEMV_NUMERICS(1, 0, AT_TREE_SEQUENTIAL, AT_GEMV_TILE_PRODUCTS),
    .supports = at_gemv_declines,
    .workspace = workspace,
    .launch = launch,
};
