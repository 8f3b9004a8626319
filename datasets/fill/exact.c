/* The families exact and ties: integers on a known grid.
 * SPDX-License-Identifier: Apache-2.0
 *
 * exact, AsyncT. q is +-1 and k is 0 or +-L, L odd (at_exact_odd); so every partial sum of q.k is an integer
 * multiple of L of size at most d L <= 2048: exact in f32, in a truncating tensor core and in f16. With scale =
 * 2^-m and sigma / D = 2^-n (times an odd number where D has less of L) or taps that are multiples of 2^-n, gate
 * inputs are multiples of g = 2^-(m+n), and P, at most 256 g, is exact in bf16. A channel of V is 0 but for
 * every stride-th key, +-1 .. +-3 there, so sum |p v| <= 2^11 g: P*V is exact in f16 too, in any order and any
 * split. The pool divides multiples of L by D: exact even through a stored 1/3, 1/5 or 1/6, whose error of at
 * most 2^-25 rounds away. The output is one rounding of the exact sum.
 *
 * exact, softmax. scale = 1024 and all q.k are integers from -3 to 62 (the query is a single 1 in one channel):
 * two unequal scores are at least 1024 apart and the lesser weight is 0 in any format, scores stay inside f16.
 * Channel c of K holds a staircase: every P_c-th key is a step, 1, 2 or 4 steps are of one height, higher ones
 * follow. A query looks at a channel where the number of highest visible keys is a power of two, so o is a mean
 * of 1, 2 or 4 small integers. lse is not exact. */
#include "datasets/fill/exact.h"

#include <math.h>
#include <string.h>

#include "datasets/fill/families.h"

/* ---- the arithmetic of the conditions ---- */

static int64_t odd_part(int64_t n) {
    while (n % 2 == 0)
        n /= 2;
    return n;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

int64_t at_exact_odd(int window, int edge) {
    if (edge != AT_EDGE_SHRINK)
        return odd_part(window);
    int64_t all = 1;
    for (int64_t n = 2; n <= window; n++)
        all = all / common_divisor(all, n) * n;
    return odd_part(all);
}

enum { MAX_BITS = 20 };

/* Fewest n with x 2^n whole; -1 if more than MAX_BITS. */
static int fraction_bits(double x) {
    for (int n = 0; n <= MAX_BITS; n++)
        if (ldexp(x, n) == rint(ldexp(x, n)))
            return n;
    return -1;
}

static int is_power_of_two(double x) {
    int exponent;
    return isfinite(x) && frexp(fabs(x), &exponent) == 0.5;
}

/* Bits of sigma / D over the divisors the pool can have; -1 where a quotient is no binary fraction. */
static int sigma_bits(double sigma, int window, int shrink) {
    int most = 0;
    for (int divisor = shrink ? 1 : window; divisor <= window; divisor++) {
        double share = sigma / divisor;
        int bits = fraction_bits(share);
        if (bits < 0 || share * divisor != sigma)
            return -1;
        most = bits > most ? bits : most;
    }
    return most;
}

/* Bits of the filter over all heads' sigma, or of the taps. */
static int filter_bits(int pooled, int n, const float *values, int window, int shrink) {
    int most = 0;
    for (int i = 0; i < n; i++) {
        int bits = pooled ? sigma_bits((double)values[i], window, shrink) : fraction_bits((double)values[i]);
        if (bits < 0)
            return -1;
        most = bits > most ? bits : most;
    }
    return most;
}

static int scale_bits(double scale) { return is_power_of_two(scale) ? fraction_bits(scale) : -1; }

int at_exact_gate_bits(const struct at_data *data) {
    int filter = data->pooled ? filter_bits(1, (int)data->h, data->sigma, data->window, data->edge == AT_EDGE_SHRINK)
                              : filter_bits(0, data->window, data->taps, data->window, 0);
    int scale = scale_bits(data->scale);
    return filter < 0 || scale < 0 ? -1 : filter + scale;
}

double at_auto_scale(const struct at_data_family *family, int asynct, enum at_format dtype, int64_t d) {
    if (family && family->exact)
        return asynct ? 0.125 : 1024;
    if (family && asynct && strcmp(family->name, "ties") == 0)
        return dtype == AT_BF16 ? 0x1p-7 : 0x1p-10;
    return (double)(float)(1 / sqrt((double)d));
}

/* ---- is this case one? ---- */

static at_status check_softmax(const struct at_case *c) {
    const struct at_float_list *scale = &c->keys->scale;
    if (scale->n && scale->value[0] != 1024.0f)
        return AT_FAIL(AT_USAGE, "%s: scale: found %g with exact softmax data, wanted 1024 or auto", c->where,
                       (double)scale->value[0]);
    return AT_OK;
}

static at_status check_filter(const struct at_case *c, int *bits) {
    const struct at_case_keys *keys = c->keys;
    int pooled = keys->taps.n == 0, shrink = keys->edge == AT_EDGE_SHRINK;
    if (pooled && (keys->window == 7 || keys->window > (shrink ? 6 : 8)))
        return AT_FAIL(AT_USAGE, "%s: window: found %lld with exact data, wanted 1 to 6 or 8 (edge=shrink: 1 to 6)",
                       c->where, (long long)keys->window);
    const struct at_float_list *list = pooled ? &keys->sigma : &keys->taps;
    *bits = filter_bits(pooled, list->n, list->value, (int)keys->window, shrink);
    if (*bits >= 0 && *bits <= 8)
        return AT_OK;
    return AT_FAIL(AT_USAGE, "%s: %s: not exact for every order, wanted %s", c->where, pooled ? "sigma" : "taps",
                   pooled ? "0 or window * 2^-n (edge=shrink: its odd common multiple * 2^-n)" : "multiples of 2^-8");
}

static at_status check_asynct(const struct at_case *c) {
    const struct at_case_keys *keys = c->keys;
    int bits = 0;
    AT_TRY(check_filter(c, &bits));
    double scale = keys->scale.n ? (double)keys->scale.value[0] : 0.125;
    if (scale_bits(scale) < 0 || scale > 1)
        return AT_FAIL(AT_USAGE, "%s: scale: found %g with exact data, wanted a power of two up to 1", c->where, scale);
    bits += scale_bits(scale);
    double low = (double)keys->clip.value[0], high = (double)keys->clip.value[1];
    double most = fabs(low) > fabs(high) ? fabs(low) : fabs(high);
    if (ldexp(low, bits) != rint(ldexp(low, bits)) || ldexp(high, bits) != rint(ldexp(high, bits)) ||
        !(ldexp(most, bits) <= 256))
        return AT_FAIL(AT_USAGE, "%s: clip: found %g:%g with exact data, wanted multiples of 2^-%d up to 256 of them",
                       c->where, low, high, bits);
    for (int i = 0; i < keys->gamma.n; i++)
        if (!is_power_of_two((double)keys->gamma.value[i]))
            return AT_FAIL(AT_USAGE, "%s: gamma: found %g with exact data, wanted powers of two", c->where,
                           (double)keys->gamma.value[i]);
    int64_t odd = keys->taps.n ? 1 : at_exact_odd((int)keys->window, (int)keys->edge);
    if (keys->d * odd > 2048)
        return AT_FAIL(AT_USAGE, "%s: d: found %lld with exact data, wanted at most %lld", c->where, (long long)keys->d,
                       (long long)(2048 / odd));
    return AT_OK;
}

static at_status check_norm(const struct at_case *c) {
    const struct at_case_keys *keys = c->keys;
    double lo = (double)keys->lo.value[0], hi = (double)keys->hi.value[0];
    if (at_key_index(c->op, "lo") >= 0 && (ldexp(lo, 4) != rint(ldexp(lo, 4)) || ldexp(hi, 4) != rint(ldexp(hi, 4)) ||
                                           !(fabs(lo) <= 1) || !(fabs(hi) <= 1)))
        return AT_FAIL(AT_USAGE, "%s: lo: found lo=%g hi=%g with exact data, wanted sixteenths within -1 .. 1",
                       c->where, lo, hi);
    for (int i = 0; i < keys->slope.n; i++)
        if (keys->slope.value[i] != 0)
            return AT_FAIL(AT_USAGE, "%s: slope: found %g with exact data, wanted 0", c->where,
                           (double)keys->slope.value[i]);
    if (c->op->takes_mean_square && (keys->channels < 4 || !is_power_of_two((double)keys->channels)))
        return AT_FAIL(AT_USAGE, "%s: channels: found %lld with exact data, wanted a power of two from 4", c->where,
                       (long long)keys->channels);
    if (c->op->takes_mean_square && keys->eps.value[0] != 0)
        return AT_FAIL(AT_USAGE, "%s: eps: found %g with exact data, wanted 0", c->where, (double)keys->eps.value[0]);
    return AT_OK;
}

static at_status check_product(const struct at_case *c) {
    const struct at_float_list *scale = &c->keys->scale;
    if (scale->n && !is_power_of_two((double)scale->value[0]))
        return AT_FAIL(AT_USAGE, "%s: scale: found %g with exact data, wanted a power of two", c->where,
                       (double)scale->value[0]);
    return AT_OK;
}

at_status at_exact_check(const struct at_case *c) {
    switch (c->op->kind) {
    case AT_KIND_PRODUCT:
        return check_product(c);
    case AT_KIND_ROWS:
        return check_norm(c);
    case AT_KIND_ATTENTION:
        return c->op->weights == AT_WEIGHTS_GATE ? check_asynct(c) : check_softmax(c);
    default:
        return AT_OK;
    }
}
