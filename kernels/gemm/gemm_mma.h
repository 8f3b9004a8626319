/* d = scale * (a b^T) on mma.sync: four warps of 16 rows and 64 columns each.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A step: tiles of both factors to shared memory; a as operands by ldmatrix, b too, whose rows are columns of the
 * product. */
#ifndef AT_DEVICE_GEMM_MMA_H
#define AT_DEVICE_GEMM_MMA_H

#include "kernels/gemm/gemm.h"
#include "kernels/device/mma.h"

/* Elements from one row of a tile to the next: eight rows of 16 bytes lie in different banks. */
constexpr int AT_GEMM_MMA_STRIDE = AT_GEMM_BYTES / 2 + 8;

template <class T> __device__ void at_gemm_mma_stage(const T *factor, int rows, int k, int first, int begin, T *tile) {
    at_gemm_each_16_bytes(factor, rows, k, first, begin, [=](int row, int byte, const T(&x)[8]) {
        at_store16(tile + row * AT_GEMM_MMA_STRIDE + byte / 2, x);
    });
}

/* Four matrices of 8 x 8 from rows `row` and columns `column` of a tile on: of a, rows before columns; of b, the other
 * way. */
template <class T>
__device__ void at_gemm_mma_operands(const T *tile, int row, int column, bool of_a, uint32_t (&r)[4]) {
    const int matrix = at_lane() / 8, down = of_a ? matrix % 2 : matrix / 2, along = of_a ? matrix / 2 : matrix % 2;
    at_ldmatrix_x4(r, tile + (row + 8 * down + at_lane() % 8) * AT_GEMM_MMA_STRIDE + column + 8 * along);
}

/* A step of 64 products: every fourth of them one instruction. */
template <class T, class Sum>
__device__ __forceinline__ void at_gemm_mma_step(const T *a, const T *b, Sum (&sums)[AT_GEMM_TILE / 8]) {
    AT_UNROLL
    for (int l = 0; l < AT_GEMM_STEP<T>; l += 16) {
        uint32_t rows[4];
        at_gemm_mma_operands(a, (int)threadIdx.x / 32 * 16, l, true, rows);
        AT_UNROLL
        for (int i = 0; i < AT_GEMM_TILE / 8; i += 2) {
            uint32_t r[4];
            at_gemm_mma_operands(b, 8 * i, l, false, r);
            const uint32_t low[2] = { r[0], r[1] }, high[2] = { r[2], r[3] };
            sums[i].template add<T>(rows, low);
            sums[i + 1].template add<T>(rows, high);
        }
    }
}

template <class T, class Sum>
static __global__ void __launch_bounds__(AT_GEMM_THREADS, 1) at_gemm_mma(at_gemm_view<T> v) {
    AT_SHARED_DYNAMIC(T, a);
    T *b = a + AT_GEMM_TILE * AT_GEMM_MMA_STRIDE;
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    Sum sums[AT_GEMM_TILE / 8] = {};
    for (int begin = 0; begin < v.k; begin += AT_GEMM_STEP<T>) {
        at_gemm_mma_stage(v.a, v.m, v.k, row, begin, a);
        at_gemm_mma_stage(v.b, v.n, v.k, column, begin, b);
        at_sync();
        at_gemm_mma_step(a, b, sums);
        at_sync();
    }
    at_gemm_store(v, row, column, sums);
}

template <class T, class Sum> int at_gemm_mma_launch(const struct at_launch *launch) {
    return at_gemm_launch(launch, at_gemm_mma<T, Sum>, 2 * AT_GEMM_TILE * AT_GEMM_MMA_STRIDE * (int64_t)sizeof(T));
}

#endif
