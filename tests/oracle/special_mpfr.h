/* The special-function unit's functions a second time: 200 bits, one argument at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SPECIAL_MPFR_H
#define AT_SPECIAL_MPFR_H

#include "special/special.h"

/* f(x) rounded to nearest double; *off: |value - f(x)| rounded up, NaN where either is not finite. */
double at_special_mpfr(enum at_special_function function, double x, double value, double *off);

#endif
