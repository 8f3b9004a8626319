/* Powers of two a second time: 200 bits, one argument at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/oracle/exp2_mpfr.h"

#include <math.h>

#include <mpfr.h>

double at_exp2_mpfr(float x, double value, float *nearest, double *off) {
    mpfr_t y;
    mpfr_init2(y, 200);
    mpfr_set_flt(y, x, MPFR_RNDN);
    mpfr_exp2(y, y, MPFR_RNDN);
    const double want = mpfr_get_d(y, MPFR_RNDN);
    *nearest = mpfr_get_flt(y, MPFR_RNDN);
    if (off) {
        mpfr_sub_d(y, y, value, MPFR_RNDA);
        *off = isfinite(want) && isfinite(value) ? fabs(mpfr_get_d(y, MPFR_RNDA)) : (double)NAN;
    }
    mpfr_clear(y);
    return want;
}
