/* stmatrix of sm_90: fragments in registers to rows in shared memory, the inverse of ldmatrix.
 * SPDX-License-Identifier: Apache-2.0
 *
 * at_stmatrix_x1(row, r[1]), _x2(row, r[2]), _x4(row, r[4]), each also _trans
 *   matrices of 8 x 8 elements of 16 bits, one a register; rows, lanes and elements as at_ldmatrix has them
 *   (kernels/device/device.h). Orders no memory: an element counts as written by the lane that holds it.
 * Findings: rows that are misaligned or not in shared memory, and those of any store. Before sm_90 a launch
 * traps. */
#ifndef AT_STORE_MATRIX_H
#define AT_STORE_MATRIX_H

#include "kernels/device/device.h"

#ifdef __CUDACC__
#include "kernels/device/store_matrix_cuda.h"
#else
#include "kernels/simt/store_matrix_simt.h"
#endif

#endif
