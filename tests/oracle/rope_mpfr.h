/* Rotary position embedding a second time, in MPFR, sharing nothing with the reference but the problem.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ROPE_MPFR_H
#define AT_ROPE_MPFR_H

#include "attest/problem.h"

/* Element i of q_out or k_out from the problem's table, rounded once to double; *off becomes the distance of `value` from it
 * before that rounding, NaN unless both are finite. */
double at_rope_mpfr(const struct at_problem *problem, const char *output, int64_t i, double value, double *off);

/* The distance of `value` from the cosine (column below rot/2) or sine of position * base^(-2 pair / rot), rounded up. */
double at_rope_mpfr_entry(double base, int64_t rot, int64_t position, int64_t column, double value);

#endif
