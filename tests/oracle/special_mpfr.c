/* The special-function unit's functions a second time: 200 bits, one argument at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/oracle/special_mpfr.h"

#include <math.h>

#include <mpfr.h>

static int reciprocal(mpfr_t y, const mpfr_t x, mpfr_rnd_t rounding) { return mpfr_ui_div(y, 1, x, rounding); }

/* MPFR has +inf for both zeros. y may be x. */
static int reciprocal_root(mpfr_t y, const mpfr_t x, mpfr_rnd_t rounding) {
    const int negative_zero = mpfr_zero_p(x) && mpfr_signbit(x);
    const int inexact = mpfr_rec_sqrt(y, x, rounding);
    if (negative_zero)
        mpfr_set_inf(y, -1);
    return inexact;
}

double at_special_mpfr(enum at_special_function function, double x, double value, double *off) {
    static int (*const functions[AT_SPECIAL_FUNCTIONS])(mpfr_t, const mpfr_t, mpfr_rnd_t) = {
        [AT_SPECIAL_ex2] = mpfr_exp2,  [AT_SPECIAL_rcp] = reciprocal, [AT_SPECIAL_rsqrt] = reciprocal_root,
        [AT_SPECIAL_sqrt] = mpfr_sqrt, [AT_SPECIAL_lg2] = mpfr_log2,  [AT_SPECIAL_sin] = mpfr_sin,
        [AT_SPECIAL_cos] = mpfr_cos,   [AT_SPECIAL_tanh] = mpfr_tanh,
    };
    mpfr_t y;
    mpfr_init2(y, 200);
    mpfr_set_d(y, x, MPFR_RNDN);
    functions[function](y, y, MPFR_RNDN);
    const double want = mpfr_get_d(y, MPFR_RNDN);
    mpfr_sub_d(y, y, value, MPFR_RNDA);
    *off = isfinite(want) && isfinite(value) ? fabs(mpfr_get_d(y, MPFR_RNDA)) : (double)NAN;
    mpfr_clear(y);
    return want;
}
