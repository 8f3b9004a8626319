/* One element of a product of matrices, exact.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_GEMM_MPFR_H
#define AT_GEMM_MPFR_H

#include "attest/problem.h"

/* Element i of d, without the rounding to its format, correctly rounded to double; *off (may be NULL): how far `value` is from the exact one, rounded up,
 * NaN where one of them is not finite. */
double at_gemm_mpfr(const struct at_problem *problem, int64_t i, double value, double *off);

#endif
