/* Inputs for fused dot-product-adds, by stratum.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/oracle/fdpa_strata.h"

uint64_t fdpa_next(struct fdpa_random *random) {
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in [low, high]. */
static int between(struct fdpa_random *random, int low, int high) {
    return low + (int)(fdpa_next(random) % (uint64_t)(high - low + 1));
}

static int bias_of(struct oracle_format format) { return (1 << (format.exponent_bits - 1)) - 1; }

/* Random sign and fraction at a power of two; exponents below the format's become subnormal. */
static uint32_t at_exponent(struct fdpa_random *random, struct oracle_format format, int exponent) {
    uint32_t r = (uint32_t)fdpa_next(random);
    uint32_t fraction = r & ((1u << format.fraction_bits) - 1), sign = r >> 31;
    int biased = exponent + bias_of(format), top = (1 << format.exponent_bits) - 2;
    biased = biased < 0 ? 0 : biased > top ? top : biased;
    return sign << (format.exponent_bits + format.fraction_bits) | (uint32_t)biased << format.fraction_bits | fraction;
}

static uint32_t sign_bit(struct oracle_format format) { return 1u << (format.exponent_bits + format.fraction_bits); }

/* Two operands whose product has about this exponent; exactly, without fraction bits, if `power`. */
static void product_at(struct fdpa_random *random, struct oracle_format in, int exponent, int power, uint16_t *a,
                       uint16_t *b) {
    int low = exponent / 2;
    *a = (uint16_t)at_exponent(random, in, low);
    *b = (uint16_t)at_exponent(random, in, exponent - low);
    if (power) {
        uint32_t clear = (1u << in.fraction_bits) - 1;
        *a = (uint16_t)(*a & ~clear);
        *b = (uint16_t)(*b & ~clear);
    }
}

/* One special or zero, seldom an infinity twice. */
static uint32_t special_code(struct fdpa_random *random, struct oracle_format format) {
    uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.fraction_bits;
    uint32_t sign = between(random, 0, 3) ? 0 : sign_bit(format);
    switch (between(random, 0, 4)) {
    case 0:
        return infinity | 1u << (format.fraction_bits - 1);
    case 1:
    case 2:
        return infinity | sign;
    default:
        return sign;
    }
}

/* Exponent of product i (and of c at i = n) for the strata that are described by one. */
static int exponent_for(struct fdpa_random *random, enum fdpa_stratum stratum, const struct oracle_fdpa *rule, int i) {
    int in_low = 2 - bias_of(rule->in), out_top = bias_of(rule->out);
    switch (stratum) {
    case FDPA_SWAMPED:
        return i == 0 ? 0 : -between(random, rule->kept - 6, rule->kept + 2);
    case FDPA_SUBNORMAL:
        return between(random, 2 * in_low - 4, in_low + 2);
    case FDPA_NEAR_OVERFLOW:
        return out_top - between(random, 0, 3);
    default:
        return between(random, -6, 6);
    }
}

/* In every 16: half a last output bit at position 3, beside it a bit or a few around the last kept one, which
 * decide the tie if they are seen; 1 at position 0 of the first. Signs are random, the rest is zero. */
static void fill_ties(struct fdpa_random *random, const struct oracle_fdpa *rule, int n, uint16_t *a, uint16_t *b) {
    for (int i = 0; i < n; i++) {
        int role = i * 11 % 16, exponent = -between(random, rule->kept - 1, rule->kept + 1);
        if (role == 1)
            exponent = -rule->out.fraction_bits - 1;
        if (i == 0)
            exponent = 0;
        product_at(random, rule->in, exponent, 1, &a[i], &b[i]);
        if (role > 3 && between(random, 0, 7))
            a[i] = 0;
    }
}

static void fill_pairs(struct fdpa_random *random, const struct oracle_fdpa *rule, int n, uint16_t *a, uint16_t *b) {
    int exactly = between(random, 0, 1); /* pairs cancel to nothing, or to a last bit */
    for (int i = 0; i < n; i += 2) {
        int exponent = between(random, -10, 10);
        product_at(random, rule->in, exponent, 0, &a[i], &b[i]);
        if (i + 1 == n)
            break;
        a[i + 1] = (uint16_t)(a[i] ^ sign_bit(rule->in));
        b[i + 1] = (uint16_t)(b[i] ^ (exactly ? 0u : (uint32_t)between(random, 0, 1)));
    }
    if (!exactly)
        product_at(random, rule->in, -between(random, 5, 24), 0, &a[n - 1], &b[n - 1]);
}

void fdpa_fill(struct fdpa_random *random, enum fdpa_stratum stratum, const struct oracle_fdpa *rule, int n,
               uint16_t *a, uint16_t *b, uint32_t *c) {
    int in_bias = bias_of(rule->in), out_bias = bias_of(rule->out);
    if (stratum == FDPA_CANCELLING) {
        *c = between(random, 0, 1) ? at_exponent(random, rule->out, between(random, -8, 8)) : 0;
        fill_pairs(random, rule, n, a, b);
        return;
    }
    if (stratum == FDPA_NEAR_TIE) {
        *c = between(random, 0, 3) ? 0 : at_exponent(random, rule->out, between(random, -1, 1));
        fill_ties(random, rule, n, a, b);
        return;
    }
    int c_leads = between(random, 0, 1);
    for (int i = 0; i < n; i++) {
        product_at(random, rule->in, exponent_for(random, stratum, rule, i + c_leads), 0, &a[i], &b[i]);
        if (stratum == FDPA_ANY_CODE) {
            a[i] = (uint16_t)at_exponent(random, rule->in, between(random, -in_bias, in_bias));
            b[i] = (uint16_t)at_exponent(random, rule->in, between(random, -in_bias, in_bias));
        }
        if (stratum == FDPA_SPECIAL && between(random, 0, 9) == 0)
            a[i] = (uint16_t)special_code(random, rule->in);
    }
    int exponent = c_leads ? exponent_for(random, stratum, rule, 0) : between(random, -30, 0);
    if (stratum == FDPA_SUBNORMAL)
        exponent = between(random, -out_bias - 1, 8 - out_bias);
    if (stratum == FDPA_ANY_CODE)
        exponent = between(random, -out_bias, out_bias);
    *c = at_exponent(random, rule->out, exponent);
    int blank = between(random, 0, 3) == 0; /* c = 0 is its own case */
    if (blank)
        *c &= sign_bit(rule->out);
    if (stratum == FDPA_SPECIAL && between(random, 0, 3) == 0)
        *c = special_code(random, rule->out);
}
