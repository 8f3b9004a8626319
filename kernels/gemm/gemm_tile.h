/* d = scale * (a b^T): what every kernel of the family shares, from the view of a problem to the epilogue.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block computes a tile of 64 x 64 elements of d and walks along k in steps of 128 bytes. Rows past m or n and
 * products past k are zeros in shared memory: they add nothing to a sum, and the epilogue does not store them. */
#ifndef AT_GEMM_TILE_H
#define AT_GEMM_TILE_H

#include "attest/kernel.h"
#include "gemm/gemm.h"
#include "kernels/device/device.h"

constexpr int AT_GEMM_TILE = 64, AT_GEMM_BYTES = 128, AT_GEMM_THREADS = 128;
/* Products of a step along k: 64 of a 16-bit format, 128 of an 8-bit one. */
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
    /* Scales a finished sum and stores it in the format of d, unless the tile reaches past d there. */
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

/* 16 bytes of row `row` of a factor from element l of the row on, zeros past `rows` rows and k elements. */
template <class T>
__device__ void at_gemm_load(const T *factor, int rows, int k, int row, int l, T (&x)[16 / sizeof(T)]) {
    constexpr int EACH = 16 / (int)sizeof(T);
    const T *from = factor + (int64_t)row * k + l;
    for (int i = 0; i < EACH; i++)
        x[i] = T{};
    if (row >= rows)
        return;
    if (k % EACH == 0) { /* every row begins and ends on a multiple of 16 bytes */
        if (l < k)
            at_load16(from, x);
        return;
    }
    for (int i = 0; i < EACH; i++)
        if (l + i < k)
            x[i] = from[i];
}

/* Loads a tile of a factor by all threads of the block: 64 rows from `first` on, 128 bytes of each from element `begin`
 * on. Calls put(row, byte, x) for every 16 bytes x. */
template <class T, class F>
__device__ void at_gemm_each_16_bytes(const T *factor, int rows, int k, int first, int begin, F put) {
    constexpr int PARTS = AT_GEMM_BYTES / 16, EACH = 16 / (int)sizeof(T);
    for (int i = (int)threadIdx.x; i < AT_GEMM_TILE * PARTS; i += AT_GEMM_THREADS) {
        T x[EACH];
        at_gemm_load(factor, rows, k, first + i / PARTS, begin + i % PARTS * EACH, x);
        put(i / PARTS, i % PARTS * 16, x);
    }
}

/* Element j of a lane's four of a 16 x 8 fragment, sums in f32 or two f16 a register. */
template <class Sum> __device__ float at_gemm_sum(const Sum &sum, int j) { return sum[j]; }
__device__ inline float at_gemm_sum(const uint32_t (&halves)[2], int j) {
    return at_float(at_f16{ (uint16_t)(halves[j / 2] >> 16 * (j % 2)) });
}

/* Epilogue: each warp stores its 16 rows of the tile at (tile_row, tile_column) from fragments of 16 x 8 sums. */
template <class T, class Sum, int N>
__device__ void at_gemm_store(const at_gemm_view<T> &v, int tile_row, int tile_column, const Sum (&sums)[N]) {
    const int row = tile_row + (int)threadIdx.x / 32 * 16 + at_lane() / 4, column = tile_column + at_lane() % 4 * 2;
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        AT_UNROLL
        for (int j = 0; j < 4; j++)
            v.put(row + j / 2 * 8, column + 8 * i + j % 2, at_gemm_sum(sums[i], j));
    }
}

/* Launches one block for each tile of d, with `shared` bytes of dynamic shared memory. */
template <class T> int at_gemm_launch(const struct at_launch *launch, void (*kernel)(at_gemm_view<T>), int64_t shared) {
    const at_gemm_view<T> v = at_gemm_view<T>::of(launch->problem);
    const dim3 grid{ (unsigned)((v.n + AT_GEMM_TILE - 1) / AT_GEMM_TILE),
                     (unsigned)((v.m + AT_GEMM_TILE - 1) / AT_GEMM_TILE), 1 };
    if (v.m == 0 || v.n == 0)
        return 0;
    return at_launch(kernel, grid, dim3{ AT_GEMM_THREADS, 1, 1 }, shared, launch->stream, v);
}

/* Declared numerics: UNIT sums the products, GUARD treats its overflow; f32 adds the sums of SPLIT products each (0:
 * UNIT sums all of k). */
#define AT_GEMM_NUMERICS(UNIT, SPLIT, GUARD) \
    { \
        .qk_unit = UNIT, .qk_lanes = 1, .p = AT_F32, .pv_unit = AT_UNIT_F32, .pv_chunk = 1, .split = SPLIT, \
        .guard = GUARD, .repeats = 1, .batch_invariant = 1, \
    }

/* Why a problem is declined whatever its format: the second factor's layout; CUDA takes at most 65535 blocks along y. */
static inline const char *at_gemm_declines(const struct at_problem *p) {
    if (at_gemm_own_of(p).layout != AT_GEMM_NK)
        return "the second factor is stored by columns";
    return at_gemm_own_of(p).m > 65535 * (int64_t)AT_GEMM_TILE ? "more rows than a grid has" : nullptr;
}

#endif
