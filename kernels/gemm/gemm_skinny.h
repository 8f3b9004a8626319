/* d = scale * (a b^T) for few rows: a warp's ring of copied steps, its products, and the block's sums of ranges.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rows past m or n are copies of the last one, whose products are not stored; products past k are zeros in shared memory. */
#ifndef AT_GEMM_SKINNY_H
#define AT_GEMM_SKINNY_H

#include "kernels/device/mma.h"
#include "kernels/gemm/gemm_tile.h"

/* Products that one warp sums on the tensor cores before f32 adds them to the others'. */
constexpr int AT_SKINNY_RANGE = 256;

/* 16 M rows of a and 8 N rows of b. */
template <class T, int M, int N> struct at_skinny_tile {
    static constexpr int WARPS = AT_GEMM_THREADS / 32, STEP = 64, STEPS = AT_SKINNY_RANGE / STEP;
    static constexpr int STAGES = M == 4 ? 3 : 4, ROWS = 16 * M + 8 * N, STRIDE = STEP + 8;
    static constexpr int STAGE = ROWS * STRIDE, SUMS = 16 * M * 8 * N;
    static constexpr int64_t BYTES = (int64_t)WARPS * (STAGES * STAGE * (int)sizeof(T) + SUMS * (int)sizeof(float));

    const at_gemm_view<T> &v;
    T *memory;

    __device__ static int warp() { return (int)threadIdx.x / 32; }
    __device__ int column() const { return (int)blockIdx.x * 8 * N; }
    __device__ T *stage(int step) const { return memory + (warp() * STAGES + step % STAGES) * STAGE; }
    __device__ float *sums(int of_warp) const {
        return reinterpret_cast<float *>(memory + WARPS * STAGES * STAGE) + of_warp * SUMS;
    }
    /* The same for all warps: the last ranges of some may be past k. */
    __device__ int steps() const {
        constexpr int ROUND = WARPS * AT_SKINNY_RANGE;
        return (v.k + ROUND - 1) / ROUND * STEPS;
    }
    /* The first product of this warp's step. */
    __device__ int begin(int step) const {
        return (step / STEPS * WARPS + warp()) * AT_SKINNY_RANGE + step % STEPS * STEP;
    }

    /* Issues this warp's copies of a step, as one group; none of a step past k. */
    __device__ void copy(int step) const {
        constexpr int PARTS = STEP / 8;
        const int from = begin(step);
        T *to = stage(step);
        for (int i = at_lane(); i < ROWS * PARTS && from < v.k; i += 32) {
            const int row = i / PARTS, l = from + i % PARTS * 8;
            const int of_a = row < v.m ? row : v.m - 1, wanted = column() + row - 16 * M;
            const T *at =
                row < 16 * M ? v.a + (int64_t)of_a * v.k : v.b + (int64_t)(wanted < v.n ? wanted : v.n - 1) * v.k;
            T *piece = to + row * STRIDE + i % PARTS * 8;
            if (l < v.k)
                at_copy_async<16>(piece, at + l);
            for (int e = 0; l >= v.k && e < 8; e += 2)
                at_store32(piece + e, 0);
        }
        at_copy_commit();
    }

    /* Adds a step's products to the warp's sums, 16 of them an instruction. */
    __device__ __forceinline__ void multiply(int step, at_sum_f32 (&sums)[M][N]) const {
        const T *a = stage(step), *b = a + 16 * M * STRIDE;
        const int row = at_lane() % 8, matrix = at_lane() / 8;
        if (begin(step) >= v.k)
            return;
        AT_UNROLL
        for (int l = 0; l < STEP; l += 32) {
            uint32_t columns[N][4]; /* 8 columns of 32 products: two b operands */
            AT_UNROLL
            for (int i = 0; i < N; i++)
                at_ldmatrix_x4(columns[i], b + (8 * i + row) * STRIDE + l + 8 * matrix);
            AT_UNROLL
            for (int half = 0; half < 2; half++) {
                AT_UNROLL
                for (int j = 0; j < M; j++) {
                    uint32_t rows[4];
                    at_ldmatrix_x4(rows, a + (16 * j + matrix % 2 * 8 + row) * STRIDE + l + 16 * half + matrix / 2 * 8);
                    AT_UNROLL
                    for (int i = 0; i < N; i++) {
                        const uint32_t pair[2] = { columns[i][2 * half], columns[i][2 * half + 1] };
                        sums[j][i].template add<T>(rows, pair);
                    }
                }
            }
        }
    }

    /* The warp's sums of a range, where all threads find them. */
    __device__ void put(const at_sum_f32 (&of)[M][N]) const {
        float *to = sums(warp());
        AT_UNROLL
        for (int j = 0; j < M; j++) {
            AT_UNROLL
            for (int i = 0; i < N; i++) {
                AT_UNROLL
                for (int e = 0; e < 4; e++)
                    to[(16 * j + at_lane() / 4 + e / 2 * 8) * 8 * N + 8 * i + at_lane() % 4 * 2 + e % 2] = of[j][i][e];
            }
        }
    }

    /* Adds the ranges that begin before k to this thread's elements, in their order. */
    __device__ void add(int first, float (&totals)[M * N]) const {
        AT_UNROLL
        for (int i = 0; i < M * N; i++)
            for (int w = 0; w < WARPS; w++)
                if ((first / STEPS * WARPS + w) * AT_SKINNY_RANGE < v.k) {
                    const float sum = sums(w)[(int)threadIdx.x + i * AT_GEMM_THREADS];
                    totals[i] = first + w ? totals[i] + sum : sum;
                }
    }

    __device__ void store(const float (&totals)[M * N]) const {
        const float factor = v.factor();
        uint32_t most = 0;
        AT_UNROLL
        for (int i = 0; i < M * N; i++) {
            const int at = (int)threadIdx.x + i * AT_GEMM_THREADS;
            const uint32_t size = v.put(at / (8 * N), column() + at % (8 * N), factor, totals[i]);
            most = size > most ? size : most;
        }
        v.raise(most);
    }
};

#endif
