/* d = f * (a b^T) + bias on mma.sync of f32 factors as tf32: tiles as gemm_mma.h has them, multiplied 8 products an instruction.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A warp has 16 rows and all 64 columns of the block's tile. ldmatrix moves 16 bits at a time: an f32 is two of its elements,
 * and a fragment of 8 products of f32 lies in registers as one of 8 pairs does. */
#ifndef AT_GEMM_MMA_TF32_H
#define AT_GEMM_MMA_TF32_H

#include "kernels/gemm/gemm_mma.h"

/* As cvt.rna.tf32.f32: to nearest in tf32, ties away from 0; NaN is the one that the instruction gives. */
__device__ inline float at_gemm_tf32_rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = at_gemm_magnitude(x) > 0x7f800000u ? 0x7fffffffu : (bits + 0x1000u) & 0xffffe000u;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* Loads a tile of a factor: 64 rows from `first` on, 128 bytes of each from element `begin` on, rounded or as it is. */
template <bool ROUNDED>
__device__ void at_gemm_tf32_stage(const float *factor, int rows, int k, int first, int begin, float *tile) {
    at_gemm_each_16_bytes(factor, rows, k, first, begin, [=](int row, int byte, const float(&x)[4]) {
        float y[4];
        for (int i = 0; i < 4; i++)
            y[i] = ROUNDED ? at_gemm_tf32_rounded(x[i]) : x[i];
        at_store16(tile + row * AT_GEMM_MMA_STRIDE<float> + byte / 4, y);
    });
}

/* Adds the products of a step to a warp's sums. */
__device__ __forceinline__ void at_gemm_tf32_multiply(const float *a, const float *b,
                                                      float (&sums)[AT_GEMM_TILE / 8][4]) {
    at_gemm_mma_each(a, b, sums, [](float(&sum)[4], const uint32_t(&rows)[4], const uint32_t(&columns)[2]) {
        at_mma_1688(sum, rows, columns, sum, at_tf32{});
    });
}

template <bool ROUNDED> __global__ void __launch_bounds__(AT_GEMM_THREADS, 1) at_gemm_tf32(at_gemm_view<float> v) {
    AT_SHARED_DYNAMIC(float, a);
    float *b = a + AT_GEMM_MMA_TILE<float>;
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    float sums[AT_GEMM_TILE / 8][4] = {};
    for (int begin = 0; begin < v.k; begin += AT_GEMM_STEP<float>) {
        at_gemm_tf32_stage<ROUNDED>(v.a, v.m, v.k, row, begin, a);
        at_gemm_tf32_stage<ROUNDED>(v.b, v.n, v.k, column, begin, b);
        at_sync();
        at_gemm_tf32_multiply(a, b, sums);
        at_sync(); /* before the next step overwrites the tiles */
    }
    at_gemm_store(v, row, column, sums);
}

/* Why a problem is declined. */
static inline const char *at_gemm_tf32_declines(const struct at_problem *p) {
    return p->dtype != AT_F32 ? "factors are f32" : at_gemm_declines(p);
}

#endif
