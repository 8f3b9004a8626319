/* kernels/device/mma_f64.h for the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_MMA_F64_SIMT_H
#define AT_MMA_F64_SIMT_H

#include "kernels/simt/simt_matrix.h"

__attribute__((always_inline)) static inline void at_mma_1684(double (&d)[4], const double (&a)[2], double b,
                                                              const double (&c)[4], AT_PLACE) {
    at_simt_mma_f64(a, b, c, d, { file, line });
}

#endif
