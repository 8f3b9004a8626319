/* Tiles of 128 columns and 256 products: a partial sum of each column, one thread a column.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_GEMV_TILE_H
#define AT_GEMV_TILE_H

#include "kernels/gemv/gemv.h"

constexpr int AT_GEMV_TILE_COLUMNS = 128, AT_GEMV_TILE_PRODUCTS = 256;

/* Tile blockIdx.x, of all columns' first products, then of all their second: calls put(part, row, column, sum) for this
 * thread's column, behind one barrier of the block. */
template <class T, int M, class F> __device__ void at_gemv_tile(const at_gemv_view<T> &v, F put) {
    AT_SHARED(float[M][AT_GEMV_TILE_PRODUCTS], x);
    const int tiles = (v.n + AT_GEMV_TILE_COLUMNS - 1) / AT_GEMV_TILE_COLUMNS;
    const int part = (int)blockIdx.x / tiles, first = part * AT_GEMV_TILE_PRODUCTS, left = v.k - first;
    const int count = left < AT_GEMV_TILE_PRODUCTS ? left : AT_GEMV_TILE_PRODUCTS;
    const int column = (int)blockIdx.x % tiles * AT_GEMV_TILE_COLUMNS + (int)threadIdx.x;
    for (int i = 0; i < M && i < v.m; i++)
        for (int l = (int)threadIdx.x; l < count; l += AT_GEMV_TILE_COLUMNS)
            x[i][l] = at_float(v.x[(int64_t)i * v.k + first + l]);
    at_sync();
    if (column >= v.n)
        return;
    float sums[M] = {};
    for (int l = 0; l < count; l++) {
        const float w = at_float(*v.at(first + l, column));
        AT_UNROLL
        for (int i = 0; i < M; i++)
            if (i < v.m)
                sums[i] = fmaf(x[i][l], w, sums[i]);
    }
    AT_UNROLL
    for (int i = 0; i < M; i++)
        if (i < v.m)
            put(part, i, column, sums[i]);
}

/* Partial sums of a column; the tiles of all, none without products. */
static inline int at_gemv_parts(const struct at_problem *p) {
    return (int)at_gemv_pieces(at_gemm_own_of(p).k, AT_GEMV_TILE_PRODUCTS);
}
static inline dim3 at_gemv_tiles(const struct at_problem *p) {
    return { at_gemv_pieces(at_gemm_own_of(p).n, AT_GEMV_TILE_COLUMNS) * (unsigned)at_gemv_parts(p), 1, 1 };
}

/* Kernels that go over all of y: 256 elements a block. */
constexpr int AT_GEMV_ELEMENTS = 256;
static inline dim3 at_gemv_elements(const struct at_problem *p) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    return { at_gemv_pieces(z.n * z.m, AT_GEMV_ELEMENTS), 1, 1 };
}

#endif
