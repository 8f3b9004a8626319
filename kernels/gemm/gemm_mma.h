/* d = scale * (a b^T) on mma.sync: stage a tile of each factor in shared memory, multiply it by four warps.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A warp has 16 rows and all 64 columns of the block's tile. Its operands come from shared memory by ldmatrix; the rows
 * of b are columns of the product, which is the order that the b operand wants. */
#ifndef AT_GEMM_MMA_H
#define AT_GEMM_MMA_H

#include "kernels/device/mma.h"
#include "kernels/gemm/gemm_tile.h"

/* Elements of 16 bytes. */
template <class T> constexpr int AT_GEMM_MMA_VECTOR = 16 / (int)sizeof(T);
/* Elements from one row of a tile to the next: padded, so that eight rows of 16 bytes lie in different banks. */
template <class T> constexpr int AT_GEMM_MMA_STRIDE = AT_GEMM_STEP<T> + AT_GEMM_MMA_VECTOR<T>;
/* Elements of a tile, and bytes of shared memory for one of a and one of b, whatever the elements. */
template <class T> constexpr int AT_GEMM_MMA_TILE = AT_GEMM_TILE *AT_GEMM_MMA_STRIDE<T>;
constexpr int AT_GEMM_MMA_SHARED = 2 * AT_GEMM_MMA_TILE<at_f16> * 2;

/* Loads a tile of a factor: 64 rows from `first` on, 128 bytes of each from element `begin` on. */
template <class T> __device__ void at_gemm_mma_stage(const T *factor, int rows, int k, int first, int begin, T *tile) {
    at_gemm_each_16_bytes(factor, rows, k, first, begin, [=](int row, int byte, const T(&x)[AT_GEMM_MMA_VECTOR<T>]) {
        at_store16(tile + row * AT_GEMM_MMA_STRIDE<T> + byte / (int)sizeof(T), x);
    });
}

/* Four matrices of 8 rows of 16 bytes from (row, column) of a tile on, in the order of one a operand (down the rows first)
 * or of two b operands (along the columns first). */
template <class T>
__device__ void at_gemm_mma_operands(const T *tile, int row, int column, bool of_a, uint32_t (&r)[4]) {
    const int matrix = at_lane() / 8, down = of_a ? matrix % 2 : matrix / 2, along = of_a ? matrix / 2 : matrix % 2;
    at_ldmatrix_x4(r, tile + (row + 8 * down + at_lane() % 8) * AT_GEMM_MMA_STRIDE<T> + column +
                          AT_GEMM_MMA_VECTOR<T> * along);
}

/* The products of a step, as many an instruction as two 16-byte pieces of a row hold (16 of 16 bits, 32 of 8, 8 of 32):
 * add(sum, rows, columns) for each of a warp's sums, rows and columns being operands as registers. */
template <class T, class Sum, class F>
__device__ __forceinline__ void at_gemm_mma_each(const T *a, const T *b, Sum (&sums)[AT_GEMM_TILE / 8], F add) {
    AT_UNROLL
    for (int l = 0; l < AT_GEMM_STEP<T>; l += 2 * AT_GEMM_MMA_VECTOR<T>) {
        uint32_t rows[4];
        at_gemm_mma_operands(a, (int)threadIdx.x / 32 * 16, l, true, rows);
        AT_UNROLL
        for (int i = 0; i < AT_GEMM_TILE / 8; i += 2) {
            uint32_t r[4];
            at_gemm_mma_operands(b, 8 * i, l, false, r);
            const uint32_t low[2] = { r[0], r[1] }, high[2] = { r[2], r[3] };
            add(sums[i], rows, low);
            add(sums[i + 1], rows, high);
        }
    }
}

/* Adds the products of a step to a warp's sums, 16 of them an instruction. */
template <class T, class Sum>
__device__ __forceinline__ void at_gemm_mma_multiply(const T *a, const T *b, Sum (&sums)[AT_GEMM_TILE / 8]) {
    at_gemm_mma_each(a, b, sums, [](Sum &sum, const uint32_t(&rows)[4], const uint32_t(&columns)[2]) {
        sum.template add<T>(rows, columns);
    });
}

#endif
