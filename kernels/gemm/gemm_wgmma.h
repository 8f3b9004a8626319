/* d = scale * (a b^T) on wgmma: stage swizzled tiles of both factors, multiply them by a warpgroup.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block is one warpgroup, which has the tile of 64 x 64 elements. Shared memory has two stages, each a tile of both
 * factors: while wgmma multiplies one stage, the threads write the other. Kernels wait for their products before the
 * barrier that follows the writes, so behind that barrier the stage that those products read is free. No product is in
 * flight across the back edge of the loop: ptxas would serialise the wgmma. */
#ifndef AT_GEMM_WGMMA_H
#define AT_GEMM_WGMMA_H

#include "kernels/device/wgmma.h"
#include "kernels/gemm/gemm_tile.h"

/* A tile of a factor: 64 rows of 128 bytes, swizzled in groups of eight rows (1024 bytes). */
struct alignas(1024) at_gemm_tile {
    uint8_t bytes[AT_GEMM_TILE * AT_GEMM_BYTES];

    __device__ at_matrix matrix() const { return at_matrix::swizzled<AT_GEMM_BYTES>(bytes, 8 * AT_GEMM_BYTES); }
};

/* Loads a tile of a factor: 64 rows from `first` on, 128 bytes of each from element `begin` on. */
template <class T>
__device__ void at_gemm_wgmma_load(const T *factor, int rows, int k, int first, int begin, at_gemm_tile &tile) {
    at_gemm_each_16_bytes(factor, rows, k, first, begin, [&](int row, int byte, const T(&x)[16 / sizeof(T)]) {
        at_store16(reinterpret_cast<T *>(tile.bytes + at_swizzle<AT_GEMM_BYTES>(row * AT_GEMM_BYTES + byte)), x);
    });
}

/* Loads both tiles of the step from product `begin` on, for wgmma to read behind the next barrier of the block. */
template <class T>
__device__ void at_gemm_wgmma_stage(const at_gemm_view<T> &v, int row, int column, int begin, at_gemm_tile &a,
                                    at_gemm_tile &b) {
    at_gemm_wgmma_load(v.a, v.m, v.k, row, begin, a);
    at_gemm_wgmma_load(v.b, v.n, v.k, column, begin, b);
    at_proxy_fence();
}

/* Issues the products of a step, 32 bytes of k an instruction. D: sums of 8 columns as kernels/device/wgmma.h has them,
 * float[8][4] in f32 or uint32_t[8][2] in f16. */
template <class T, class D>
__device__ __forceinline__ void at_gemm_wgmma_multiply(const at_gemm_tile &a, const at_gemm_tile &b, D &sums) {
    AT_UNROLL
    for (int byte = 0; byte < AT_GEMM_BYTES; byte += 32)
        at_wgmma(sums, a.matrix().moved(byte), b.matrix().moved(byte), T{}, T{});
}

#endif
