/* d = f * (a b^T) + bias on mma.sync of 8-bit factors: tiles as gemm_mma.h has them, multiplied 32 products an instruction.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A warp has 16 rows and all 64 columns of the block's tile. ldmatrix moves 16 bits at a time: two neighbours along k are one
 * of its elements, and a fragment of 32 products of 8 bits lies in registers as one of 16 pairs does. */
#ifndef AT_GEMM_MMA_FP8_H
#define AT_GEMM_MMA_FP8_H

#include "kernels/gemm/gemm_mma.h"

/* Adds the products of a step to a warp's sums, 32 of them an instruction. Sum: float[4], or uint32_t[2] of f16. */
template <class T, class Sum>
__device__ __forceinline__ void at_gemm_fp8_multiply(const T *a, const T *b, Sum (&sums)[AT_GEMM_TILE / 8]) {
    at_gemm_mma_each(a, b, sums, [](Sum &sum, const uint32_t(&rows)[4], const uint32_t(&columns)[2]) {
        at_mma_16832(sum, rows, columns, sum, T{});
    });
}

/* Why a problem is declined. */
static inline const char *at_gemm_fp8_declines(const struct at_problem *p) {
    return p->dtype != AT_E4M3 && p->dtype != AT_E5M2 ? "factors are e4m3 or e5m2" : at_gemm_declines(p);
}

#endif
