/* The norms a second time, in 300-bit arithmetic, sharing nothing with the reference but the problem.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_NORM_MPFR_H
#define AT_NORM_MPFR_H

#include "attest/problem.h"

/* Element i of the output tensor called `output`, rounded once to double; *off (NULL: not wanted) becomes the distance
 * of `value` from it before that rounding, NaN unless both are finite. Finds tensors by name, decodes and rounds
 * to f32, f16 and bf16 in its own way, and computes everything again for every element. */
double at_norm_mpfr(const struct at_problem *problem, const char *output, int64_t i, double value, double *off);

#endif
