/* One element of lightning decode, exact but for 600 bits of its exponentials.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_LIGHTNING_MPFR_H
#define AT_LIGHTNING_MPFR_H

#include "attest/problem.h"

/* Element i of the output `tensor` (kv or o), correctly rounded to double; *off (may be NULL): how far `value` is from it,
 * rounded up, NaN where one of them is not finite. Slopes are finite. */
double at_lightning_mpfr(const struct at_problem *problem, int tensor, int64_t i, double value, double *off);

#endif
