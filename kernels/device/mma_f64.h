/* Tensor-core products of doubles: mma.sync of sm_90, before which it traps.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   at_mma_1684(d, a, b, c)   d = a b + c, 16 x 4 times 4 x 8, by all 32 lanes of a warp
 *
 * Lane 4 g + t has a[0] and a[1]: rows g and g + 8 of column t; b: row t of column g; c and d as kernels/device/mma.h has
 * them: 0 and 1 in row g, 2 and 3 in row g + 8, columns 2 t and 2 t + 1 of each.
 *
 * Each element of d is a chain of four fma from c on, in ascending order, each correctly rounded: so said an H200 of all
 * 38,400 elements that were tried, of exponents up to 40 apart (datasets/measurements/h200_mma_f64.txt). NaNs were not. */
#ifndef AT_MMA_F64_H
#define AT_MMA_F64_H

#include "kernels/device/device.h"

#ifdef __CUDACC__
__device__ inline void at_mma_1684(double (&d)[4], const double (&a)[2], double b, const double (&c)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    __trap();
#else
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
                 : "=d"(d[0]), "=d"(d[1]), "=d"(d[2]), "=d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(b), "d"(c[0]), "d"(c[1]), "d"(c[2]), "d"(c[3]));
#endif
}
#else
#include "kernels/simt/mma_f64_simt.h"
#endif

#endif
