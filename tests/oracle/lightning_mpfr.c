/* Lightning decode a second time, without steps: a state after n of them is the sum of what it was and of what each step
 * added, each decayed as often as it was met: exp(-n s) kv + sum exp(-(n - 1 - t) s) k_t v_t.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/oracle/lightning_mpfr.h"

#include <math.h>
#include <string.h>

#include <mpfr.h>

#include "lightning_decode/lightning_decode.h"

enum { BITS = 1200 };

struct layout {
    int bytes, precision, least;
};

static struct layout layout_of(enum at_format format) {
    if (format == AT_F16)
        return (struct layout){ 2, 11, -24 };
    return format == AT_BF16 ? (struct layout){ 2, 8, -133 } : (struct layout){ 4, 24, -149 };
}

static double decoded(const struct at_tensor *t, int64_t i) {
    const struct layout l = layout_of(t->format);
    uint32_t code = 0;
    memcpy(&code, (const char *)t->data + l.bytes * i, (size_t)l.bytes); /* little-endian, as the machine */
    const uint32_t hidden = 1u << (l.precision - 1), fraction = code & (hidden - 1);
    const uint32_t largest = (1u << (8 * l.bytes - l.precision)) - 1, exponent = code >> (l.precision - 1) & largest;
    double size = exponent ? ldexp(fraction + hidden, l.least + (int)exponent - 1) : ldexp(fraction, l.least);
    if (exponent == largest)
        size = fraction ? (double)NAN : (double)INFINITY;
    return code >> (8 * l.bytes - 1) ? -size : size;
}

/* To the nearest multiple of the last place that a number of that size has; ties to even. */
static void narrow(mpfr_t x, enum at_format format) {
    const struct layout l = layout_of(format);
    if (!mpfr_regular_p(x))
        return;
    const long top = (long)mpfr_get_exp(x), last = top - l.precision > l.least ? top - l.precision : l.least;
    mpfr_mul_2si(x, x, -last, MPFR_RNDN);
    mpfr_rint(x, x, MPFR_RNDN);
    mpfr_mul_2si(x, x, last, MPFR_RNDN);
    if (mpfr_regular_p(x) && mpfr_get_exp(x) > (format == AT_F16 ? 16 : 128))
        mpfr_set_inf(x, mpfr_sgn(x));
}

/* exp(-times slope) x is added to the sum. */
static void add_decayed(mpfr_t sum, const mpfr_t x, double slope, int64_t times) {
    mpfr_t decay;
    mpfr_init2(decay, BITS);
    mpfr_set_d(decay, -slope, MPFR_RNDN);
    mpfr_mul_si(decay, decay, (long)times, MPFR_RNDN);
    mpfr_exp(decay, decay, MPFR_RNDN);
    mpfr_mul(decay, decay, x, MPFR_RNDN);
    mpfr_add(sum, sum, decay, MPFR_RNDN);
    mpfr_clear(decay);
}

/* Element (i, j) of a head's state behind n steps. */
static void state_of(const struct at_problem *p, int64_t head, int64_t i, int64_t j, int64_t n, mpfr_t out) {
    const struct at_lightning_own z = at_lightning_own_of(p);
    const struct at_tensor *t = p->tensors;
    const double slope = decoded(&t[AT_LIGHTNING_SLOPE], head % p->sizes.h);
    mpfr_t term;
    mpfr_init2(term, BITS);
    mpfr_set_zero(out, 1);
    for (int64_t step = n - 1; step >= 0; step--) {
        mpfr_set_d(term, decoded(&t[AT_LIGHTNING_K], (head * z.steps + step) * p->sizes.d + i), MPFR_RNDN);
        mpfr_mul_d(term, term, decoded(&t[AT_LIGHTNING_V], (head * z.steps + step) * z.e + j), MPFR_RNDN);
        if (z.outer == AT_LIGHTNING_ROUNDED) {
            narrow(term, AT_F32);
            narrow(term, p->dtype);
        }
        add_decayed(out, term, slope, n - 1 - step);
    }
    mpfr_set_d(term, decoded(&t[AT_LIGHTNING_KV], (head * p->sizes.d + i) * z.e + j), MPFR_RNDN);
    add_decayed(out, term, slope, n);
    mpfr_clear(term);
}

double at_lightning_mpfr(const struct at_problem *p, int tensor, int64_t at, double value, double *off) {
    const struct at_lightning_own z = at_lightning_own_of(p);
    const int64_t d = p->sizes.d, j = at % z.e;
    mpfr_t x, sum;
    mpfr_inits2(BITS, x, sum, (mpfr_ptr)NULL);
    mpfr_set_zero(sum, 1);
    if (tensor == AT_LIGHTNING_KV)
        state_of(p, at / z.e / d, at / z.e % d, j, z.steps, sum);
    for (int64_t i = d - 1; tensor == AT_LIGHTNING_O && i >= 0; i--) {
        state_of(p, at / z.e / z.steps, i, j, at / z.e % z.steps + 1, x);
        mpfr_mul_d(x, x, decoded(&p->tensors[AT_LIGHTNING_Q], at / z.e * d + i), MPFR_RNDN);
        mpfr_add(sum, sum, x, MPFR_RNDN);
    }
    const double want = mpfr_get_d(sum, MPFR_RNDN);
    if (off) {
        mpfr_sub_d(sum, sum, value, MPFR_RNDA);
        *off = isfinite(want) && isfinite(value) ? fabs(mpfr_get_d(sum, MPFR_RNDA)) : (double)NAN;
    }
    mpfr_clears(x, sum, (mpfr_ptr)NULL);
    return want;
}
