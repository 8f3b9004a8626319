/* Products of matrices a second time: no rounding at all before the last.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A format is (width, p, exponent of the last place at 0, has it infinities): its numbers are decoded from sign,
 * exponent and fraction. Products of f32 span 2^-298 to 2^256, and 2^30 of them add up inside 600 bits. */
#include "tests/oracle/gemm_mpfr.h"

#include <math.h>
#include <string.h>

#include <mpfr.h>

#include "gemm/gemm.h"

enum { BITS = 1400 }; /* three scales of f32 beside */

struct layout {
    int bytes, precision, least, infinities;
};

static struct layout layout_of(enum at_format format) {
    switch (format) {
    case AT_E4M3:
        return (struct layout){ 1, 4, -9, 0 };
    case AT_E5M2:
        return (struct layout){ 1, 3, -16, 1 };
    case AT_F16:
        return (struct layout){ 2, 11, -24, 1 };
    case AT_BF16:
        return (struct layout){ 2, 8, -133, 1 };
    default:
        return (struct layout){ 4, 24, -149, 1 };
    }
}

static double decoded(const struct at_tensor *t, int64_t i) {
    const struct layout l = layout_of(t->format);
    uint32_t code = 0;
    memcpy(&code, (const char *)t->data + l.bytes * i, (size_t)l.bytes); /* little-endian, as the machine */
    const uint32_t hidden = 1u << (l.precision - 1), fraction = code & (hidden - 1);
    const uint32_t largest = (1u << (8 * l.bytes - l.precision)) - 1, exponent = code >> (l.precision - 1) & largest;
    double size = exponent ? ldexp(fraction + hidden, l.least + (int)exponent - 1) : ldexp(fraction, l.least);
    if (exponent == largest && l.infinities)
        size = fraction ? (double)NAN : (double)INFINITY;
    if (exponent == largest && !l.infinities && fraction == hidden - 1)
        size = (double)NAN;
    return code >> (8 * l.bytes - 1) ? -size : size;
}

/* The second factor of product l of a column. */
static double second(const struct at_problem *p, int64_t column, int64_t l) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    return z.layout == AT_GEMM_KN ? decoded(&p->tensors[AT_GEMM_W], l * z.n + column)
                                  : decoded(&p->tensors[AT_GEMM_B], column * z.k + l);
}

double at_gemm_mpfr(const struct at_problem *p, int64_t i, double value, double *off) {
    const int64_t row = i / at_gemm_own_of(p).n, column = i % at_gemm_own_of(p).n, k = at_gemm_own_of(p).k;
    mpfr_t sum, product;
    mpfr_inits2(BITS, sum, product, (mpfr_ptr)NULL);
    mpfr_set_zero(sum, 1);
    for (int64_t l = k - 1; l >= 0; l--) { /* the other way round: nothing is rounded, so it is the same */
        mpfr_set_d(product, decoded(&p->tensors[AT_GEMM_A], row * k + l), MPFR_RNDN);
        mpfr_mul_d(product, product, second(p, column, l), MPFR_RNDN);
        mpfr_add(sum, sum, product, MPFR_RNDN);
    }
    mpfr_mul_d(sum, sum, (double)p->params.scale, MPFR_RNDN);
    for (int t = AT_GEMM_SCALE_A; at_gemm_own_of(p).scales && t <= AT_GEMM_SCALE_B; t++)
        mpfr_mul_d(sum, sum, decoded(&p->tensors[t], 0), MPFR_RNDN);
    if (at_gemm_own_of(p).bias != AT_GEMM_BIAS_NONE)
        mpfr_add_d(sum, sum, decoded(&p->tensors[AT_GEMM_BIAS], column), MPFR_RNDN);
    const double want = mpfr_get_d(sum, MPFR_RNDN);
    if (off) {
        mpfr_sub_d(sum, sum, value, MPFR_RNDA);
        *off = isfinite(want) && isfinite(value) ? fabs(mpfr_get_d(sum, MPFR_RNDA)) : (double)NAN;
    }
    mpfr_clears(sum, product, (mpfr_ptr)NULL);
    return want;
}
