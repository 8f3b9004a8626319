/* The second fused dot-product-add: fields by shifts, terms as MPFR integers, codes assembled by hand.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shares nothing with reference/tensor_core: no doubles, no table, no encoder. Each term is an integer times
 * a power of two; alignment is mpfr_div_2si with rounding to an integer towards zero. */
#include "tests/oracle/fdpa_mpfr.h"

#include <mpfr.h>

enum { PRECISION = 700, MAX_TERMS = 65 };

/* (-1)^negative * significand * 2^(exponent - fraction_bits), or a special. */
struct field {
    int negative, exponent, infinite, nan;
    uint32_t significand;
};

struct term {
    int negative, exponent, quantum; /* significand * 2^quantum; exponent as the alignment counts it */
    uint64_t significand;
};

static struct field unpack(struct oracle_format format, uint32_t code) {
    int ones = (1 << format.exponent_bits) - 1, bias = ones >> 1;
    uint32_t fraction = code & ((1u << format.fraction_bits) - 1);
    int biased = (int)(code >> format.fraction_bits) & ones;
    struct field f = { 0 };
    f.negative = (int)(code >> (format.exponent_bits + format.fraction_bits)) & 1;
    f.nan = biased == ones && fraction != 0;
    f.infinite = biased == ones && fraction == 0;
    f.significand = biased ? fraction | 1u << format.fraction_bits : fraction;
    f.exponent = biased ? biased - bias : 1 - bias;
    return f;
}

static uint32_t infinity_code(struct oracle_format format) {
    return ((1u << format.exponent_bits) - 1) << format.fraction_bits;
}

static uint32_t nan_code(struct oracle_format format) {
    return (1u << (format.exponent_bits + format.fraction_bits)) - 1;
}

/* Magnitude to a code; a carry out of the significand walks into the exponent, and past it to infinity. */
static uint32_t pack(const struct oracle_fdpa *rule, mpfr_t magnitude) {
    struct oracle_format out = rule->out;
    int bias = (1 << (out.exponent_bits - 1)) - 1;
    long least = 1 - bias - out.fraction_bits;
    long quantum = (long)mpfr_get_exp(magnitude) - 1 - out.fraction_bits;
    if (quantum < least)
        quantum = least;
    mpfr_div_2si(magnitude, magnitude, quantum, MPFR_RNDN);
    unsigned long q = mpfr_get_ui(magnitude, rule->to_nearest ? MPFR_RNDN : MPFR_RNDZ);
    uint64_t code = ((uint64_t)(quantum - least) << out.fraction_bits) + q;
    uint32_t infinity = infinity_code(out);
    return code < infinity ? (uint32_t)code : infinity;
}

static uint32_t sum_terms(const struct oracle_fdpa *rule, int n, const struct term *terms) {
    int top = rule->floor;
    for (int i = 0; i < n; i++)
        if (terms[i].significand && terms[i].exponent > top)
            top = terms[i].exponent;
    mpfr_t sum, x;
    mpfr_inits2(PRECISION, sum, x, (mpfr_ptr)0);
    mpfr_set_zero(sum, 1);
    for (int i = 0; i < n; i++) {
        mpfr_set_ui_2exp(x, terms[i].significand, terms[i].quantum - (top - rule->kept), MPFR_RNDN);
        mpfr_rint(x, x, MPFR_RNDZ);
        if (terms[i].negative)
            mpfr_sub(sum, sum, x, MPFR_RNDN);
        else
            mpfr_add(sum, sum, x, MPFR_RNDN);
    }
    uint32_t code = 0;
    if (!mpfr_zero_p(sum)) {
        uint32_t sign = mpfr_sgn(sum) < 0;
        mpfr_mul_2si(sum, sum, top - rule->kept, MPFR_RNDN);
        mpfr_abs(sum, sum, MPFR_RNDN);
        code = pack(rule, sum);
        if (code) /* what rounding made zero has no sign: measured */
            code |= sign << (rule->out.exponent_bits + rule->out.fraction_bits);
    }
    mpfr_clears(sum, x, (mpfr_ptr)0);
    return code;
}

uint32_t oracle_fdpa(const struct oracle_fdpa *rule, int n, const uint32_t *a, const uint32_t *b, uint32_t c) {
    struct term terms[MAX_TERMS];
    struct field f = unpack(rule->out, c);
    int nan = f.nan, plus = f.infinite && !f.negative, minus = f.infinite && f.negative;
    terms[n] = (struct term){ f.negative, f.exponent, f.exponent - rule->out.fraction_bits, f.significand };
    for (int i = 0; i < n; i++) {
        struct field x = unpack(rule->in, a[i]), y = unpack(rule->in, b[i]);
        int negative = x.negative != y.negative, exponent = x.exponent + y.exponent;
        int infinite = x.infinite || y.infinite;
        nan |= x.nan || y.nan || (infinite && (x.significand == 0 || y.significand == 0));
        plus |= infinite && !negative;
        minus |= infinite && negative;
        terms[i] = (struct term){ negative, exponent, exponent - 2 * rule->in.fraction_bits,
                                  (uint64_t)x.significand * y.significand };
    }
    if (nan || (plus && minus))
        return nan_code(rule->out);
    uint32_t sign = 1u << (rule->out.exponent_bits + rule->out.fraction_bits);
    if (plus || minus)
        return infinity_code(rule->out) | (minus ? sign : 0);
    return sum_terms(rule, n + 1, terms);
}
