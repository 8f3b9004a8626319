/* Rotary position embedding a second time, in MPFR.
 * SPDX-License-Identifier: Apache-2.0
 *
 * From the output's side: a channel finds its partner and which of the two it is, and MPFR joins both products in one
 * operation. Angles come from pow, not from powers of two. */
#include "tests/oracle/rope_mpfr.h"

#include <math.h>
#include <string.h>

#include <mpfr.h>

#include "rope/rope.h"

enum { BITS = 300 };

static const struct at_tensor *named(const struct at_problem *p, const char *name) {
    for (int t = 0; t < p->op->n_tensors; t++)
        if (strcmp(p->op->tensors[t].name, name) == 0)
            return &p->tensors[t];
    return NULL;
}

/* A channel's partner; *second says which of the pair the channel is. */
static int64_t partner(const struct at_rope_own *own, int64_t channel, int *second) {
    if (own->style == AT_ROPE_INTERLEAVED) {
        *second = (int)(channel & 1);
        return channel ^ 1;
    }
    *second = channel >= own->rot / 2;
    return (channel + own->rot / 2) % own->rot;
}

double at_rope_mpfr(const struct at_problem *p, const char *output, int64_t i, double value, double *off) {
    const struct at_rope_own own = at_rope_own_of(p);
    const struct at_tensor *x = named(p, output[0] == 'q' ? "q" : "k"), *table = named(p, "cos_sin");
    const int64_t d = p->sizes.d, heads = output[0] == 'q' ? p->sizes.h : p->sizes.hk, channel = i % d;
    const int64_t row = own.rot * at_tensor_i32(named(p, "positions"), i / (d * heads));
    mpfr_t a, b, c, s;
    mpfr_inits2(BITS, a, b, c, s, (mpfr_ptr)NULL);
    mpfr_set_d(a, at_tensor_get(x, i), MPFR_RNDN);
    if (channel < own.rot) {
        int second;
        const int64_t other = partner(&own, channel, &second);
        const int64_t pair = own.style == AT_ROPE_INTERLEAVED ? channel / 2 : channel % (own.rot / 2);
        mpfr_set_d(b, at_tensor_get(x, i - channel + other), MPFR_RNDN);
        mpfr_set_d(c, at_tensor_get(table, row + pair), MPFR_RNDN);
        mpfr_set_d(s, at_tensor_get(table, row + own.rot / 2 + pair), MPFR_RNDN);
        if (second)
            mpfr_fmma(a, a, c, b, s, MPFR_RNDN);
        else
            mpfr_fmms(a, a, c, b, s, MPFR_RNDN);
    }
    const double want = mpfr_get_d(a, MPFR_RNDN);
    mpfr_sub_d(a, a, value, MPFR_RNDA);
    *off = isfinite(want) && isfinite(value) ? fabs(mpfr_get_d(a, MPFR_RNDA)) : (double)NAN;
    mpfr_clears(a, b, c, s, (mpfr_ptr)NULL);
    return want;
}

double at_rope_mpfr_entry(double base, int64_t rot, int64_t position, int64_t column, double value) {
    mpfr_t angle, exponent;
    mpfr_inits2(BITS, angle, exponent, (mpfr_ptr)NULL);
    mpfr_set_si(exponent, (long)(-2 * (column % (rot / 2))), MPFR_RNDN);
    mpfr_div_si(exponent, exponent, (long)rot, MPFR_RNDN);
    mpfr_set_d(angle, base, MPFR_RNDN);
    mpfr_pow(angle, angle, exponent, MPFR_RNDN);
    mpfr_mul_si(angle, angle, (long)position, MPFR_RNDN);
    if (column < rot / 2)
        mpfr_cos(angle, angle, MPFR_RNDN);
    else
        mpfr_sin(angle, angle, MPFR_RNDN);
    mpfr_sub_d(angle, angle, value, MPFR_RNDA);
    const double off = fabs(mpfr_get_d(angle, MPFR_RNDA));
    mpfr_clears(angle, exponent, (mpfr_ptr)NULL);
    return off;
}
