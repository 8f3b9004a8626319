/* Gated products a second time, in 300-bit arithmetic, sharing nothing with the reference but the problem.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_GATED_MPFR_H
#define AT_GATED_MPFR_H

#include "attest/problem.h"

/* Element i of y of a silu_mul or reglu problem, rounded once to double; *off (NULL: not wanted) becomes the distance of
 * `value` from it, rounded up; NaN where either is not finite. */
double at_gated_mpfr(const struct at_problem *problem, int64_t i, double value, double *off);

#endif
