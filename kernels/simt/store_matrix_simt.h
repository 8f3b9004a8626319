/* kernels/device/store_matrix.h for the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STORE_MATRIX_SIMT_H
#define AT_STORE_MATRIX_SIMT_H

#include "kernels/simt/simt_matrix.h"

#define AT_STMATRIX(NAME, COUNT, TRANSPOSED) \
    __attribute__((always_inline)) static inline void NAME(void *row, const uint32_t(&r)[COUNT], AT_PLACE) { \
        at_simt_store_matrix(COUNT, TRANSPOSED, row, r, { file, line }); \
    }
AT_STMATRIX(at_stmatrix_x1, 1, 0)
AT_STMATRIX(at_stmatrix_x1_trans, 1, 1)
AT_STMATRIX(at_stmatrix_x2, 2, 0)
AT_STMATRIX(at_stmatrix_x2_trans, 2, 1)
AT_STMATRIX(at_stmatrix_x4, 4, 0)
AT_STMATRIX(at_stmatrix_x4_trans, 4, 1)
#undef AT_STMATRIX

#endif
