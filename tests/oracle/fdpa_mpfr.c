/* The second fused dot-product-add: fields by shifts, terms as MPFR integers, codes assembled by hand.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shares nothing with reference/tensor_core: no doubles, no table, no encoder. Each term is an integer times
 * a power of two; alignment is mpfr_div_2si with rounding to an integer towards zero. */
#include "tests/oracle/fdpa_mpfr.h"

#include <mpfr.h>

enum { PRECISION = 700, MAX_TERMS = 65, ALL_BITS = 300, LOWEST = -10000 };

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
    if (format.finite) {
        f.nan = biased == ones && fraction == (1u << format.fraction_bits) - 1;
    } else {
        f.nan = biased == ones && fraction != 0;
        f.infinite = biased == ones && fraction == 0;
    }
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
    const struct oracle_format out = rule->out;
    const int bias = (1 << (out.exponent_bits - 1)) - 1, fraction_bits = out.fraction_bits - rule->dropped;
    const long least = 1 - bias - fraction_bits;
    if (rule->doubt == ORACLE_ROUNDED_TWICE)
        mpfr_prec_round(magnitude, rule->kept + 1, MPFR_RNDZ);
    long quantum = (long)mpfr_get_exp(magnitude) - 1 - fraction_bits;
    if (quantum < least)
        quantum = least;
    mpfr_div_2si(magnitude, magnitude, quantum, MPFR_RNDN);
    unsigned long q = mpfr_get_ui(magnitude, rule->to_nearest ? MPFR_RNDN : MPFR_RNDZ);
    uint64_t code = (((uint64_t)(quantum - least) << fraction_bits) + q) << rule->dropped;
    uint32_t infinity = infinity_code(out);
    return code < infinity ? (uint32_t)code : infinity;
}

/* How term i of n is cut; the last is c. */
static mpfr_rnd_t direction(const struct oracle_fdpa *rule, int i, int n) {
    return rule->doubt == ORACLE_CUT_DOWN || (rule->doubt == ORACLE_C_CUT_DOWN && i == n - 1) ? MPFR_RNDD : MPFR_RNDZ;
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
        if (terms[i].negative)
            mpfr_neg(x, x, MPFR_RNDN);
        mpfr_rint(x, x, direction(rule, i, n));
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

/* What the doubts about subnormals make of one. Its value stays where only its exponent is in doubt: `quantum` is that of
 * the significand's last bit. */
static struct field doubted(enum oracle_doubt doubt, enum oracle_doubt flushed, enum oracle_doubt leads,
                            struct oracle_format format, struct field f) {
    const int subnormal = f.significand != 0 && f.significand < 1u << format.fraction_bits;
    if (subnormal && doubt == flushed)
        f.significand = 0;
    if (subnormal && doubt == leads)
        for (; f.significand < 1u << format.fraction_bits; f.exponent--)
            f.significand <<= 1;
    return f;
}

/* The specials met so far; the first infinity's sign, 0 when there is none. */
struct specials {
    int nan, plus, minus, first;
};

static void meet(struct specials *s, int nan, int infinite, int negative) {
    s->nan |= nan;
    s->plus |= infinite && !negative;
    s->minus |= infinite && negative;
    if (infinite && !s->first)
        s->first = negative ? -1 : 1;
}

/* 1: the result is special, and *code is it. */
static int special(const struct oracle_fdpa *rule, const struct specials *s, uint32_t *code) {
    const uint32_t sign = 1u << (rule->out.exponent_bits + rule->out.fraction_bits);
    const int infinite = s->plus || s->minus;
    if ((s->nan && !(infinite && rule->doubt == ORACLE_NAN_LOSES)) ||
        (s->plus && s->minus && rule->doubt != ORACLE_FIRST_INFINITY))
        *code = nan_code(rule->out);
    else
        *code = infinity_code(rule->out) | (s->first < 0 ? sign : 0);
    return s->nan || infinite;
}

uint32_t oracle_add(struct oracle_format format, uint32_t x, uint32_t y) {
    const struct oracle_fdpa exact = { .out = format, .kept = ALL_BITS, .to_nearest = 1, .floor = LOWEST };
    const struct field f[] = { unpack(format, x), unpack(format, y) };
    struct term terms[2];
    struct specials specials = { 0 };
    uint32_t code;
    for (int i = 0; i < 2; i++) {
        meet(&specials, f[i].nan, f[i].infinite, f[i].negative);
        terms[i] =
            (struct term){ f[i].negative, f[i].exponent, f[i].exponent - format.fraction_bits, f[i].significand };
    }
    return special(&exact, &specials, &code) ? code : sum_terms(&exact, 2, terms);
}

uint32_t oracle_fdpa(const struct oracle_fdpa *rule, int n, const uint32_t *a, const uint32_t *b, uint32_t c) {
    struct term terms[MAX_TERMS];
    struct specials specials = { 0 };
    uint32_t code;
    const enum oracle_doubt doubt = rule->doubt;
    if (doubt == ORACLE_C_LAST) {
        struct oracle_fdpa without = *rule;
        without.doubt = ORACLE_NO_DOUBT;
        return oracle_add(rule->out, c, oracle_fdpa(&without, n, a, b, 0));
    }
    struct field f = doubted(doubt, ORACLE_C_FLUSHED, ORACLE_C_LEADS, rule->out, unpack(rule->out, c));
    meet(&specials, f.nan, f.infinite, f.negative);
    terms[n] = (struct term){ f.negative, f.exponent, f.exponent - rule->out.fraction_bits, f.significand };
    for (int i = 0; i < n; i++) {
        const enum oracle_doubt flushed = ORACLE_OPERANDS_FLUSHED, leads = ORACLE_OPERANDS_LEAD;
        struct field x = doubted(doubt, flushed, leads, rule->a, unpack(rule->a, a[i]));
        struct field y = doubted(doubt, flushed, leads, rule->b, unpack(rule->b, b[i]));
        int negative = x.negative != y.negative, exponent = x.exponent + y.exponent;
        int infinite = x.infinite || y.infinite;
        const int of_zero = infinite && (x.significand == 0 || y.significand == 0);
        const int nothing = of_zero && doubt == ORACLE_NOTHING_OF_ZERO;
        meet(&specials, x.nan || y.nan || (of_zero && !nothing), infinite && !of_zero, negative);
        terms[i] = (struct term){ negative, exponent, exponent - rule->a.fraction_bits - rule->b.fraction_bits,
                                  (uint64_t)x.significand * y.significand };
    }
    return special(rule, &specials, &code) ? code : sum_terms(rule, n + 1, terms);
}
