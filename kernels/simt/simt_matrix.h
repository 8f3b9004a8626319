/* stmatrix and products of doubles, as kernels/device/store_matrix.h and mma_f64.h see them. C and C++.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SIMT_MATRIX_H
#define AT_SIMT_SIMT_MATRIX_H

#include "kernels/simt/simt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* stmatrix: `count` (1, 2, 4) matrices of 8 x 8 elements of 16 bits from a register each to shared memory, all 32 lanes
 * together, as at_simt_load_matrix takes them. */
void at_simt_store_matrix(int count, int transposed, void *row, const uint32_t *from, struct at_simt_place place);

/* d = a b + c by mma.sync m16n8k4 of doubles, all 32 lanes together; fragments as kernels/device/mma_f64.h has them. d may be c. */
void at_simt_mma_f64(const double *a, double b, const double *c, double *d, struct at_simt_place place);

#ifdef __cplusplus
}
#endif
#endif
