/* What kernels of d = scale * (a b^T) share: the view, tiles of the factors, stores of the product.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block has a tile of 64 x 64 elements and walks k 128 bytes at a time. Rows past m or n and products past k are
 * zeros in shared memory: they add nothing, and nothing of them is stored. */
#ifndef AT_DEVICE_GEMM_H
#define AT_DEVICE_GEMM_H

#include "attest/kernel.h"
#include "gemm/gemm.h"
#include "kernels/device/device.h"

constexpr int AT_GEMM_TILE = 64, AT_GEMM_BYTES = 128, AT_GEMM_THREADS = 128;
/* Products of a step along k. */
template <class T> constexpr int AT_GEMM_STEP = AT_GEMM_BYTES / (int)sizeof(T);

template <class T> struct at_gemm_view {
    int m, n, k, out; /* out: enum at_format of d */
    float scale;
    const T *a, *b;
    void *d;

    static at_gemm_view of(const struct at_problem *p) {
        const struct at_gemm_own z = at_gemm_own_of(p);
        return { (int)z.m,
                 (int)z.n,
                 (int)z.k,
                 z.out,
                 p->params.scale,
                 static_cast<const T *>(p->tensors[AT_GEMM_A].data),
                 static_cast<const T *>(p->tensors[AT_GEMM_B].data),
                 p->tensors[AT_GEMM_D].data };
    }
    /* A finished sum becomes an element, if there is such a one. */
    __device__ void put(int row, int column, float sum) const {
        const int64_t i = (int64_t)row * n + column;
        const float x = scale * sum;
        if (row >= m || column >= n)
            return;
        if (out == AT_F32)
            static_cast<float *>(d)[i] = x;
        else if (out == AT_F16)
            static_cast<at_f16 *>(d)[i] = at_round_to<at_f16>(x);
        else
            static_cast<at_bf16 *>(d)[i] = at_round_to<at_bf16>(x);
    }
};

/* 16 bytes of row `row` of a factor from its element l on, zeros past `rows` rows and k elements. */
template <class T>
__device__ void at_gemm_load(const T *factor, int rows, int k, int row, int l, T (&x)[16 / sizeof(T)]) {
    constexpr int EACH = 16 / (int)sizeof(T);
    const T *from = factor + (int64_t)row * k + l;
    for (int i = 0; i < EACH; i++)
        x[i] = T{};
    if (row >= rows)
        return;
    if (k % EACH == 0) { /* every row begins on 16 bytes, and ends so */
        if (l < k)
            at_load16(from, x);
        return;
    }
    for (int i = 0; i < EACH; i++)
        if (l + i < k)
            x[i] = from[i];
}

/* A tile of a factor, 64 rows from `first` and 128 bytes of each from element `begin` on, by all threads of the block:
 * put(row, byte, x) for every 16 bytes x. */
template <class T, class F>
__device__ void at_gemm_each_16_bytes(const T *factor, int rows, int k, int first, int begin, F put) {
    constexpr int PARTS = AT_GEMM_BYTES / 16, EACH = 16 / (int)sizeof(T);
    for (int i = (int)threadIdx.x; i < AT_GEMM_TILE * PARTS; i += AT_GEMM_THREADS) {
        T x[EACH];
        at_gemm_load(factor, rows, k, first + i / PARTS, begin + i % PARTS * EACH, x);
        put(i / PARTS, i % PARTS * 16, x);
    }
}

/* Element j of the four that a lane has of 16 x 8. */
template <class Sum> __device__ float at_gemm_sum(const Sum &sum, int j) { return sum[j]; }
__device__ inline float at_gemm_sum(const uint32_t (&halves)[2], int j) {
    return at_float(at_f16{ (uint16_t)(halves[j / 2] >> 16 * (j % 2)) });
}

/* The 16 rows of a warp, as sums of 16 x 8 elements lie in its lanes; `first` and `begin`: the tile's row and column.
 */
template <class T, class Sum, int N>
__device__ void at_gemm_store(const at_gemm_view<T> &v, int first, int begin, const Sum (&sums)[N]) {
    const int row = first + (int)threadIdx.x / 32 * 16 + at_lane() / 4, column = begin + at_lane() % 4 * 2;
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        AT_UNROLL
        for (int j = 0; j < 4; j++)
            v.put(row + j / 2 * 8, column + 8 * i + j % 2, at_gemm_sum(sums[i], j));
    }
}

/* A block for every tile. */
template <class T> int at_gemm_launch(const struct at_launch *launch, void (*kernel)(at_gemm_view<T>), int64_t shared) {
    const at_gemm_view<T> v = at_gemm_view<T>::of(launch->problem);
    const dim3 grid{ (unsigned)((v.n + AT_GEMM_TILE - 1) / AT_GEMM_TILE),
                     (unsigned)((v.m + AT_GEMM_TILE - 1) / AT_GEMM_TILE), 1 };
    if (v.m == 0)
        return 0;
    return at_launch(kernel, grid, dim3{ AT_GEMM_THREADS, 1, 1 }, shared, launch->stream, v);
}

/* What every kernel here declares but for how it sums. */
#define AT_GEMM_NUMERICS(UNIT, SPLIT, GUARD) \
    { \
        .qk_unit = UNIT, .qk_lanes = 1, .p = AT_F32, .pv_unit = AT_UNIT_F32, .pv_chunk = 1, .split = SPLIT, \
        .guard = GUARD, .repeats = 1, .batch_invariant = 1, \
    }

/* Reasons to decline but the format: CUDA takes 65535 blocks along y. */
static inline const char *at_gemm_declines(const struct at_problem *p) {
    return at_gemm_own_of(p).m > 65535 * (int64_t)AT_GEMM_TILE ? "more rows than a grid has" : nullptr;
}

#endif
