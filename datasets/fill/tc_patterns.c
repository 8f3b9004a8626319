/* Operands for fused dot-product-adds, by stratum.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/fill/tc_patterns.h"

#include <math.h>

#include "attest/format.h"
#include "datasets/fill/random.h"
#include "tensor_core/fdpa.h"

const char *at_tc_stratum_name(enum at_tc_stratum stratum) {
    static const char *const names[] = {
#define X(name, meaning) #name,
        AT_TC_STRATUM_LIST(X)
#undef X
    };
    return names[stratum];
}

struct at_tc_target at_tc_target_of(const struct at_tc_instruction *t) {
    const struct at_tc_rule *rule = at_tc_instruction_rule(t);
    return (struct at_tc_target){ t->a, t->b, rule->out, rule->kept_bits, rule->zero_exponent, rule->rounding };
}

/* The words of one pattern, in turn: splitmix64 from a start that the pattern's number gives. A pattern takes up to
 * some hundred, and counting each out of at_random_bits would take longer than all that is done with them. */
struct words {
    uint64_t state;
};

static uint32_t word(struct words *w) {
    uint64_t z = (w->state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/* Uniform in [low, high], both included. */
static int between(struct words *w, int low, int high) { return low + (int)(word(w) % (uint32_t)(high - low + 1)); }

/* Random sign and fraction at a power of two; exponents below the format's become subnormal, those above its last. */
static double at_exponent(struct words *w, enum at_format format, int exponent, int power) {
    const struct at_format_info *f = at_format_info(format);
    const uint32_t r = word(w);
    const double step = at_tc_power_of_two(1 - f->precision);
    double m = power ? 1 : 1 + step * (double)(r & ((1u << (f->precision - 1)) - 1));
    if (exponent < f->emin) { /* what is left of the significand above the format's grain */
        m -= power ? 0 : 1;
        exponent = f->emin;
    }
    const double x = m * at_tc_power_of_two(exponent < f->emax ? exponent : f->emax), size = x < f->max ? x : f->max;
    return r >> 31 ? -size : size;
}

/* Two factors whose product has about this exponent; powers of two if `power`. */
static void product_at(struct words *w, const struct at_tc_target *t, int exponent, int power, double *a, double *b) {
    int low = exponent >= 0 ? exponent / 2 : -(-exponent / 2);
    /* A narrow format cannot take its half. */
    const struct at_format_info *fa = at_format_info(t->a), *fb = at_format_info(t->b);
    low = low < fa->emin ? fa->emin : low > fa->emax ? fa->emax : low;
    const int high = exponent - low;
    *a = at_exponent(w, t->a, low, power);
    /* a power of two below the format's grain is 0 */
    *b = power && high < fb->emin ? at_round(t->b, at_tc_power_of_two(high)) : at_exponent(w, t->b, high, power);
}

/* One special or zero, seldom an infinity twice. */
static double special(struct words *w) {
    const int kind = between(w, 0, 4), negative = between(w, 0, 3) == 0;
    const double x = kind == 0 ? (double)NAN : kind <= 2 ? (double)INFINITY : 0;
    return negative ? -x : x;
}

/* Exponent of product i (and of the addend at i = n) for the strata that are described by one. */
static int exponent_for(struct words *w, enum at_tc_stratum stratum, const struct at_tc_target *t, int i) {
    const int low = at_format_info(t->a)->emin + 1, top = at_format_info(t->out)->emax;
    switch (stratum) {
    case AT_TC_swamped:
        return i == 0 ? 0 : -between(w, t->kept - 6, t->kept + 2);
    case AT_TC_subnormal:
        return between(w, 2 * low - 4, low + 2);
    case AT_TC_near_overflow:
        return top - between(w, 0, 3);
    default:
        return between(w, -6, 6);
    }
}

/* In every 16: half a last output bit at one place, beside it a bit or a few around the last kept one, which decide the
 * tie if they are seen; 1 at place 0. Signs are random, the rest is zero. */
static void fill_ties(struct words *w, const struct at_tc_target *t, int n, double *a, double *b) {
    for (int i = 0; i < n; i++) {
        const int role = i * 11 % 16;
        int exponent = -between(w, t->kept - 1, t->kept + 1);
        if (role == 1)
            exponent = -at_format_info(t->out)->precision;
        product_at(w, t, i == 0 ? 0 : exponent, 1, &a[i], &b[i]);
        if (role > 3 && between(w, 0, 7))
            a[i] = 0;
    }
}

static void fill_pairs(struct words *w, const struct at_tc_target *t, int n, double *a, double *b) {
    const int exactly = between(w, 0, 1); /* pairs cancel to nothing, or to a last bit */
    for (int i = 0; i < n; i += 2) {
        product_at(w, t, between(w, -10, 10), 0, &a[i], &b[i]);
        if (i + 1 == n)
            break;
        a[i + 1] = -a[i];
        b[i + 1] = b[i];
        if (!exactly && between(w, 0, 1))
            b[i + 1] = at_round(t->b, b[i] * (1 + at_tc_power_of_two(1 - at_format_info(t->b)->precision)));
    }
    if (!exactly)
        product_at(w, t, -between(w, 5, 24), 0, &a[n - 1], &b[n - 1]);
}

/* Large terms of both signs, one in each half of the block, and between them what only shows when they meet in one
 * step: a unit with half the block has forgotten it by then. */
static void fill_apart(struct words *w, const struct at_tc_target *t, int n, double *a, double *b) {
    const int large = between(w, t->kept - 4, t->kept), room = at_format_info(t->a)->emax + at_format_info(t->b)->emax;
    const int first = between(w, 0, n / 4), second = n - 1 - between(w, 0, n / 4);
    for (int i = 0; i < n; i++)
        product_at(w, t, (large < room ? 0 : room - large) - between(w, 0, 4), 0, &a[i], &b[i]);
    product_at(w, t, large < room ? large : room, 1, &a[first], &b[first]);
    a[second] = -a[first];
    b[second] = b[first];
}

/* 2^exponent as a product, half of it in each factor, in place of what stood there. */
static void power_at(const struct at_tc_target *t, int exponent, double *a, double *b) {
    const int low = -(-exponent / 2), grain = at_format_info(t->b)->emin - at_format_info(t->b)->precision + 1;
    *a = at_tc_power_of_two(exponent - low < grain ? exponent - grain : low);
    *b = at_tc_power_of_two(exponent - low < grain ? grain : exponent - low);
}

/* To nearest: half the least result, which goes up as soon as anything is seen beside it. Towards zero: the least
 * result less two units of the last bit that the floor keeps, and what is missing: as one part, as two of a unit each,
 * or as one and a half and a half, which only a finer unit keeps whole. At most three products, which meet in one step
 * anywhere. */
static void fill_floor(struct words *w, const struct at_tc_target *t, int n, double *a, double *b) {
    const struct at_format_info *out = at_format_info(t->out);
    const int least = out->emin - out->precision + 1, last = t->zero_exponent - t->kept;
    for (int i = 0; i < n; i++)
        a[i] = b[i] = 0;
    power_at(t, least - 1, &a[0], &b[0]);
    if (t->rounding == AT_TC_RNE) {
        power_at(t, last + between(w, -2, 2), &a[1], &b[1]);
    } else {
        const int parts = between(w, 0, 2);
        a[0] = at_round(t->a, a[0] * (2 - at_tc_power_of_two(last + 2 - least)));
        power_at(t, parts == 0 ? last + 1 : last, &a[1], &b[1]);
        if (parts > 0)
            power_at(t, parts == 1 ? last : last - 1, &a[2], &b[2]);
        if (parts == 2)
            a[1] = at_round(t->a, 1.5 * a[1]);
    }
    const int negative = between(w, 0, 1);
    for (int i = 0; i < n; i++)
        a[i] = negative ? -a[i] : a[i];
}

/* The exponent of the least product that is not 0. */
static int least_product(const struct at_tc_target *t) {
    const struct at_format_info *fa = at_format_info(t->a), *fb = at_format_info(t->b);
    return fa->emin - fa->precision + 1 + fb->emin - fb->precision + 1;
}

/* 2^exponent, or the least product. */
static void power_above_grain(const struct at_tc_target *t, int exponent, double *a, double *b) {
    power_at(t, exponent > least_product(t) ? exponent : least_product(t), a, b);
}

static void random_signs(struct words *w, int n, double *a) {
    for (int i = 0; i < n; i++)
        a[i] = between(w, 0, 1) ? -a[i] : a[i];
}

/* A subnormal addend of any number of bits, and products that decide its last one if they are kept: to nearest, of
 * either sign beside half of it; towards zero, of either sign, where less than nothing takes it away. Where they are cut
 * depends on whether the addend counts with its format's least exponent or with that of its leading bit. In a
 * quarter of the patterns a product moves the alignment as well, in another the addend is alone. */
static double fill_low_addend(struct words *w, const struct at_tc_target *t, int n, double *a, double *b) {
    const struct at_format_info *out = at_format_info(t->out);
    const int grain = out->emin - out->precision + 1, last = out->emin - t->kept, few = between(w, 0, 3);
    const int bits = between(w, 1, out->precision - 1), top = 1 << (bits - 1);
    for (int i = 0; i < n; i++)
        a[i] = b[i] = 0;
    if (few && t->rounding == AT_TC_RNE)
        power_above_grain(t, grain - 1, &a[0], &b[0]);
    for (int i = 0; i < few; i++) {
        const int at = n > 1 ? 1 + between(w, 0, n - 2) : 0;
        power_above_grain(t, last + between(w, -8, 1), &a[at], &b[at]);
    }
    if (few && between(w, 0, 3) == 0)
        power_above_grain(t, between(w, grain, out->emin + 1), &a[n - 1], &b[n - 1]);
    random_signs(w, n, a);
    const double c = (top | (int)(word(w) & (uint32_t)(top - 1))) * at_tc_power_of_two(grain);
    return between(w, 0, 1) ? -c : c;
}

/* A place from `first` on, the last where there are fewer. */
static int place_from(struct words *w, int first, int n) { return first < n ? between(w, first, n - 1) : n - 1; }

/* One to three products around 2^exponent, at places from `first` on. */
static void fill_few(struct words *w, const struct at_tc_target *t, int exponent, int below, int first, int n,
                     double *a, double *b) {
    for (int few = between(w, 1, 3); few > 0; few--) {
        const int at = place_from(w, first, n);
        power_above_grain(t, exponent + between(w, -below, 1), &a[at], &b[at]);
    }
}

/* A subnormal times a power of two near the largest: its product counts with an exponent of up to a whole significand
 * more than that of its leading bit. To nearest, half the last bit of what it is worth. Where no product is small enough
 * to be cut, the addend is. */
static double fill_low_operand(struct words *w, const struct at_tc_target *t, int n, double *a, double *b) {
    const struct at_format_info *out = at_format_info(t->out);
    const int in_b = between(w, 0, 1), at = n > 1 ? 1 : 0;
    const struct at_format_info *low = at_format_info(in_b ? t->b : t->a), *high = at_format_info(in_b ? t->a : t->b);
    const int bits = between(w, 1, low->precision - 1), top = 1 << (bits - 1);
    const int cut = low->emin + high->emax - t->kept, small = cut > least_product(t);
    const int below = small ? between(w, 0, 3) : 0; /* the largest */
    const int leading = low->emin + high->emax - below - low->precision + bits;
    for (int i = 0; i < n; i++)
        a[i] = b[i] = 0;
    if (small)
        fill_few(w, t, cut - below, low->precision, 2, n, a, b);
    if (t->rounding == AT_TC_RNE)
        power_above_grain(t, leading - out->precision, &a[at], &b[at]);
    const double grain = at_tc_power_of_two(low->emin - low->precision + 1);
    (in_b ? b : a)[0] = (top | (int)(word(w) & (uint32_t)(top - 1))) * grain;
    (in_b ? a : b)[0] = at_tc_power_of_two(high->emax - below);
    random_signs(w, n, a);
    if (small && between(w, 0, 1))
        return 0;
    const double c = at_round(t->out, at_tc_power_of_two(cut - below + between(w, -3, 1)));
    return between(w, 0, 1) ? -c : c;
}

/* What is left of the addend is the result. */
static double fill_cut_addend(struct words *w, const struct at_tc_target *t, int n, double *a, double *b) {
    const struct at_format_info *out = at_format_info(t->out);
    const int room = at_format_info(t->a)->emax + at_format_info(t->b)->emax - 1;
    const int cut = between(w, 0, out->precision - 1 < t->kept ? out->precision - 1 : t->kept);
    const int leading = between(w, -8, 4), large = leading + t->kept - cut;
    const int exponent = large < room ? large : room;
    for (int i = 0; i < n; i++)
        a[i] = b[i] = 0;
    if (between(w, 0, 1))
        fill_few(w, t, exponent - t->kept, 3, 2, n, a, b);
    random_signs(w, n, a);
    if (n > 1) {
        product_at(w, t, exponent, 0, &a[0], &b[0]);
        a[1] = -a[0];
        b[1] = b[0];
    }
    const double c = fabs(at_exponent(w, t->out, leading - (large - exponent), 0));
    return between(w, 0, 3) ? -c : c;
}

/* Twice 2^exponent, in half of the patterns once as the addend; so large that there is a product for the last bit. */
static double fill_carried(struct words *w, const struct at_tc_target *t, int n, double *a, double *b) {
    const int precision = at_format_info(t->out)->precision, with_c = between(w, 0, 1);
    const int room = least_product(t) + t->kept, exponent = room > 2 ? room + between(w, 0, 2) : between(w, -4, 4);
    for (int i = 0; i < n; i++)
        a[i] = b[i] = 0;
    fill_few(w, t, exponent - t->kept, 1, 4, n, a, b);
    if (n > 3 && between(w, 0, 1))
        power_above_grain(t, exponent + 2 - precision, &a[3], &b[3]);
    if (n > 2)
        power_above_grain(t, exponent + 1 - precision, &a[2], &b[2]);
    random_signs(w, n, a);
    for (int i = 0; i < 2 - with_c && i < n; i++)
        power_at(t, exponent, &a[i], &b[i]);
    if (with_c && n > 1)
        a[1] = b[1] = 0;
    return with_c ? at_tc_power_of_two(exponent) : 0;
}

static int has_infinity(enum at_format format) { return isinf(at_decode(format, at_encode(format, (double)INFINITY))); }

/* x * other, x in the factor whose format has infinities, in either if both have. */
static void put_infinite(struct words *w, const struct at_tc_target *t, double x, double other, double *a, double *b) {
    const int in_b = has_infinity(t->b) && (!has_infinity(t->a) || between(w, 0, 1));
    *(in_b ? b : a) = x;
    *(in_b ? a : b) = other;
}

/* Infinities of one sign, or of both; infinity times 0; a NaN among infinities. */
static double fill_specials(struct words *w, const struct at_tc_target *t, int n, double *a, double *b) {
    enum { ONE_SIGN, BOTH_SIGNS, TIMES_ZERO, BESIDE_NAN };
    const int kind = between(w, 0, 3), both = has_infinity(t->a) && has_infinity(t->b);
    const double infinity = between(w, 0, 1) ? (double)-INFINITY : (double)INFINITY;
    double c = at_exponent(w, t->out, between(w, -6, 6), 0);
    for (int i = 0; i < n; i++)
        product_at(w, t, between(w, -6, 6), 0, &a[i], &b[i]);
    for (int few = between(w, 1, 3); few > 0; few--) {
        const int i = between(w, 0, n - 1), twice = both && between(w, 0, 3) == 0;
        const double x = kind == BOTH_SIGNS && between(w, 0, 1) ? -infinity : infinity;
        put_infinite(w, t, x, twice ? (double)INFINITY : 1, &a[i], &b[i]);
    }
    const int last = between(w, 0, n - 1);
    if (kind == TIMES_ZERO)
        put_infinite(w, t, infinity, 0, &a[last], &b[last]);
    if (kind == BESIDE_NAN)
        (between(w, 0, 1) ? a : b)[last] = (double)NAN;
    if (between(w, 0, 1))
        c = kind == BOTH_SIGNS ? -infinity : infinity;
    return c;
}

static void fill_plain(struct words *w, enum at_tc_stratum stratum, const struct at_tc_target *t, int n, double *a,
                       double *b, double *c) {
    const struct at_format_info *fa = at_format_info(t->a), *fb = at_format_info(t->b), *out = at_format_info(t->out);
    const int c_leads = between(w, 0, 1);
    for (int i = 0; i < n; i++) {
        product_at(w, t, exponent_for(w, stratum, t, i + c_leads), 0, &a[i], &b[i]);
        if (stratum == AT_TC_any_code) {
            a[i] = at_exponent(w, t->a, between(w, fa->emin - 1, fa->emax), 0);
            b[i] = at_exponent(w, t->b, between(w, fb->emin - 1, fb->emax), 0);
        }
        if (stratum == AT_TC_special && between(w, 0, 9) == 0)
            a[i] = special(w);
    }
    int exponent = c_leads ? exponent_for(w, stratum, t, 0) : between(w, -30, 0);
    if (stratum == AT_TC_subnormal)
        exponent = between(w, out->emin - 2, out->emin + 7);
    if (stratum == AT_TC_any_code)
        exponent = between(w, out->emin - 1, out->emax);
    *c = at_exponent(w, t->out, exponent, 0);
    if (between(w, 0, 3) == 0) /* c = 0 is its own case */
        *c = copysign(0.0, *c);
    if (stratum == AT_TC_special && between(w, 0, 3) == 0)
        *c = special(w);
}

void at_tc_pattern(const struct at_tc_target *t, enum at_tc_stratum stratum, uint64_t seed, int64_t index, int n,
                   uint32_t *a, uint32_t *b, double *c) {
    const struct at_random random = { seed, at_random_stream(at_tc_stratum_name(stratum), 7) };
    const uint64_t low = at_random_bits(&random, 2 * (uint64_t)index),
                   high = at_random_bits(&random, 2 * (uint64_t)index + 1);
    struct words w = { high << 32 | low };
    double x[AT_TC_BLOCK_MAX], y[AT_TC_BLOCK_MAX];
    *c = 0;
    switch (stratum) {
    case AT_TC_cancelling:
        *c = between(&w, 0, 1) ? at_exponent(&w, t->out, between(&w, -8, 8), 0) : 0;
        fill_pairs(&w, t, n, x, y);
        break;
    case AT_TC_near_tie:
        *c = between(&w, 0, 3) ? 0 : at_exponent(&w, t->out, between(&w, -1, 1), 0);
        fill_ties(&w, t, n, x, y);
        break;
    case AT_TC_floor:
        fill_floor(&w, t, n, x, y);
        break;
    case AT_TC_low_addend:
        *c = fill_low_addend(&w, t, n, x, y);
        break;
    case AT_TC_low_operand:
        *c = fill_low_operand(&w, t, n, x, y);
        break;
    case AT_TC_cut_addend:
        *c = fill_cut_addend(&w, t, n, x, y);
        break;
    case AT_TC_carried:
        *c = fill_carried(&w, t, n, x, y);
        break;
    case AT_TC_specials:
        *c = fill_specials(&w, t, n, x, y);
        break;
    case AT_TC_apart:
        fill_apart(&w, t, n, x, y);
        break;
    default:
        fill_plain(&w, stratum, t, n, x, y, c);
    }
    for (int i = 0; i < n; i++) {
        a[i] = (uint32_t)at_encode(t->a, x[i]);
        b[i] = (uint32_t)at_encode(t->b, y[i]);
    }
}

void at_tc_pattern_rows(const struct at_tc_instruction *instruction, enum at_tc_stratum stratum, uint64_t seed,
                        int64_t begin, int64_t end, uint32_t *a, uint32_t *b, float *c) {
    const struct at_tc_target target = at_tc_target_of(instruction);
    const int k = instruction->k;
    for (int64_t i = begin; i < end; i++) {
        double addend;
        at_tc_pattern(&target, stratum, seed, i, k, &a[i * k], &b[i * k], &addend);
        c[i] = (float)addend;
    }
}
