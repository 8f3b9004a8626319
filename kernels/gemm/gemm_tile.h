/* d = f * (a b^T) + bias: what every kernel of the family shares, from the view of a problem to the epilogue.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block computes a tile of 64 x 64 elements of d and walks along k in steps of 128 bytes. Rows past m or n and
 * products past k are zeros in shared memory: they add nothing to a sum, and the epilogue does not store them.
 *
 * amax, where it is asked for: a kernel of one thread clears it, then every warp raises it to the largest magnitude that it
 * stores. Magnitudes are compared as the bits of f32, whose order is that of numbers, with NaN above infinity. */
#ifndef AT_GEMM_TILE_H
#define AT_GEMM_TILE_H

#include "attest/kernel.h"
#include "gemm/gemm.h"
#include "kernels/device/device.h"

constexpr int AT_GEMM_TILE = 64, AT_GEMM_BYTES = 128, AT_GEMM_THREADS = 128;
/* Products of a step along k: 64 of a 16-bit format, 128 of an 8-bit one. */
template <class T> constexpr int AT_GEMM_STEP = AT_GEMM_BYTES / (int)sizeof(T);

/* The bits of |x|. */
__device__ inline uint32_t at_gemm_magnitude(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

template <class T> struct at_gemm_view {
    int m, n, k, out; /* out: enum at_format of d */
    float scale;
    const T *a, *b;
    void *d;
    const float *scale_a, *scale_b; /* null: there are none */
    const void *bias;               /* null: none; */
    int bias_format;                /* enum at_format */
    uint32_t *amax;                 /* null: nobody wants it */

    static at_gemm_view of(const struct at_problem *p) {
        const struct at_gemm_own z = at_gemm_own_of(p);
        return { (int)z.m,
                 (int)z.n,
                 (int)z.k,
                 z.out,
                 p->params.scale,
                 static_cast<const T *>(p->tensors[AT_GEMM_A].data),
                 static_cast<const T *>(p->tensors[AT_GEMM_B].data),
                 p->tensors[AT_GEMM_D].data,
                 static_cast<const float *>(p->tensors[AT_GEMM_SCALE_A].data),
                 static_cast<const float *>(p->tensors[AT_GEMM_SCALE_B].data),
                 p->tensors[AT_GEMM_BIAS].data,
                 (int)p->tensors[AT_GEMM_BIAS].format,
                 static_cast<uint32_t *>(p->tensors[AT_GEMM_AMAX].data) };
    }
    /* What every sum is multiplied by. */
    __device__ float factor() const { return scale_a ? scale * *scale_a * *scale_b : scale; }
    /* What is added to a column, of those that d has. */
    __device__ float addend(int column) const {
        return bias_format == AT_F32   ? static_cast<const float *>(bias)[column]
               : bias_format == AT_F16 ? at_float(static_cast<const at_f16 *>(bias)[column])
                                       : at_float(static_cast<const at_bf16 *>(bias)[column]);
    }
    /* Scales a finished sum, adds the bias and stores it in the format of d, unless the tile reaches past d there. The bits
     * of the value's magnitude before that rounding; 0 past d. */
    __device__ uint32_t put(int row, int column, float factor, float sum) const {
        const int64_t i = (int64_t)row * n + column;
        float x = factor * sum;
        if (row >= m || column >= n)
            return 0;
        if (bias)
            x = x + addend(column);
        if (out == AT_F32)
            static_cast<float *>(d)[i] = x;
        else if (out == AT_F16)
            static_cast<at_f16 *>(d)[i] = at_round_to<at_f16>(x);
        else
            static_cast<at_bf16 *>(d)[i] = at_round_to<at_bf16>(x);
        return at_gemm_magnitude(x);
    }
    /* Raises amax to the largest magnitude of a warp, all lanes together. */
    __device__ void raise(uint32_t most) const {
        if (!amax)
            return;
        for (int lanes = 16; lanes > 0; lanes /= 2) {
            const uint32_t other = at_shuffle_xor(0xffffffffu, most, lanes);
            most = other > most ? other : most;
        }
        if (at_lane() == 0)
            at_atomic_max(amax, most);
    }
};

/* One for each format, so that only files that launch it have it. */
template <class T> __global__ void __launch_bounds__(1) at_gemm_clear(uint32_t *amax) { *amax = 0; }

/* Before the kernel that raises it: amax of nothing. */
template <class T> int at_gemm_begin(const struct at_launch *launch, const at_gemm_view<T> &v) {
    return v.amax ? at_launch(at_gemm_clear<T>, dim3{ 1, 1, 1 }, dim3{ 1, 1, 1 }, 0, launch->stream, v.amax) : 0;
}

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
    const float factor = v.factor();
    uint32_t most = 0;
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        AT_UNROLL
        for (int j = 0; j < 4; j++) {
            const uint32_t size = v.put(row + j / 2 * 8, column + 8 * i + j % 2, factor, at_gemm_sum(sums[i], j));
            most = size > most ? size : most;
        }
    }
    v.raise(most);
}

/* Launches one block for each tile of d, with `shared` bytes of dynamic shared memory. */
template <class T> int at_gemm_launch(const struct at_launch *launch, void (*kernel)(at_gemm_view<T>), int64_t shared) {
    const at_gemm_view<T> v = at_gemm_view<T>::of(launch->problem);
    const dim3 grid{ (unsigned)((v.n + AT_GEMM_TILE - 1) / AT_GEMM_TILE),
                     (unsigned)((v.m + AT_GEMM_TILE - 1) / AT_GEMM_TILE), 1 };
    const int code = at_gemm_begin(launch, v);
    if (code || v.m == 0 || v.n == 0)
        return code;
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
