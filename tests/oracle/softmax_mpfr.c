/* Softmax attention a second time, in MPFR.
 * SPDX-License-Identifier: Apache-2.0
 *
 * o = sum exp(s) v / sum exp(s), lse = log sum exp(s): MPFR's exponents reach far enough to leave out the usual
 * subtraction of the maximum, which is what makes this a different way to the same number. */
#include "tests/oracle/softmax_mpfr.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { BITS = 200 };
enum { Q, K, V, QUERY_START, SEQ_LENS, KEY_START, BLOCK_TABLE, SLOPES = 9 };

static int32_t index_of(const struct at_problem *p, int tensor, int64_t i) {
    int32_t value;
    memcpy(&value, (const char *)p->tensors[tensor].data + 4 * i, sizeof value);
    return value;
}

/* IEEE binary16 by its definition; bf16 is the upper half of f32. */
static double number(const struct at_problem *p, int tensor, int64_t i) {
    const char *data = p->tensors[tensor].data;
    uint32_t wide;
    uint16_t half;
    float f;
    if (p->dtype == AT_F32) {
        memcpy(&f, data + 4 * i, sizeof f);
        return (double)f;
    }
    memcpy(&half, data + 2 * i, sizeof half);
    if (p->dtype == AT_BF16) {
        wide = (uint32_t)half << 16;
        memcpy(&f, &wide, sizeof f);
        return (double)f;
    }
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double size = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(fraction + 1024, exponent - 25);
    return half >> 15 ? -size : size;
}

/* The request that owns the token: a linear walk. */
static int64_t find_request(const struct at_problem *p, int64_t token) {
    int64_t r = 0;
    while (index_of(p, QUERY_START, r + 1) <= token)
        r++;
    return r;
}

/* First element of key t in k and v. */
static int64_t key_at(const struct at_problem *p, int64_t request, int64_t t, int64_t kv_head) {
    int64_t slot;
    if (p->sizes.page > 0) {
        int64_t page = index_of(p, BLOCK_TABLE, request * p->sizes.max_pages + t / p->sizes.page);
        slot = page * p->sizes.page + t % p->sizes.page;
    } else {
        slot = index_of(p, KEY_START, request) + t;
    }
    return slot * p->sizes.hk * p->sizes.d + kv_head * p->sizes.d;
}

/* The operator's own parameters lie at the beginning of problem->own: softcap and alibi, f32. */
static double own_parameter(const struct at_problem *p, int i) {
    float value;
    memcpy(&value, (const char *)p->own + 4 * i, sizeof value);
    return (double)value;
}

/* s = cap tanh(s / cap), then slope * away. */
static void cap_and_bias(const struct at_problem *p, int64_t head, int64_t away, mpfr_t s) {
    const double cap = own_parameter(p, 0);
    float slope;
    mpfr_t bias;
    if (cap > 0) {
        mpfr_div_d(s, s, cap, MPFR_RNDN);
        mpfr_tanh(s, s, MPFR_RNDN);
        mpfr_mul_d(s, s, cap, MPFR_RNDN);
    }
    if (!(own_parameter(p, 1) > 0))
        return;
    memcpy(&slope, (const char *)p->tensors[SLOPES].data + 4 * head, sizeof slope);
    mpfr_init2(bias, BITS);
    mpfr_set_d(bias, (double)slope, MPFR_RNDN);
    mpfr_mul_si(bias, bias, (long)away, MPFR_RNDN);
    mpfr_add(s, s, bias, MPFR_RNDN);
    mpfr_clear(bias);
}

/* weight = exp(score), the score of scale * sum q k: the product of three doubles never rounded by less than 200 bits. */
static void weigh(const struct at_problem *p, int64_t query, int64_t key, int64_t head, int64_t away, mpfr_t weight) {
    mpfr_t product;
    mpfr_init2(product, BITS);
    mpfr_set_zero(weight, 1);
    for (int64_t i = 0; i < p->sizes.d; i++) {
        mpfr_set_d(product, number(p, Q, query + i), MPFR_RNDN);
        mpfr_mul_d(product, product, number(p, K, key + i), MPFR_RNDN);
        mpfr_add(weight, weight, product, MPFR_RNDN);
    }
    mpfr_mul_d(weight, weight, (double)p->params.scale, MPFR_RNDN);
    cap_and_bias(p, head, away, weight);
    mpfr_exp(weight, weight, MPFR_RNDN);
    mpfr_clear(product);
}

struct softmax_oracle softmax_oracle(const struct at_problem *p, int64_t token, int64_t x, int64_t c) {
    const int64_t request = find_request(p, token), keys = index_of(p, SEQ_LENS, request);
    const int64_t first = index_of(p, QUERY_START, request), sq = index_of(p, QUERY_START, request + 1) - first;
    const int64_t heads_per_kv = p->sizes.h / p->sizes.hk, query = (token * p->sizes.h + x) * p->sizes.d;
    mpfr_t sum, mix, weight, term;
    mpfr_inits2(BITS, sum, mix, weight, term, (mpfr_ptr)0);
    mpfr_set_zero(sum, 1);
    mpfr_set_zero(mix, 1);
    int64_t seen = 0;
    for (int64_t t = 0; t < keys; t++) {
        if (p->params.causal && t > keys - sq + (token - first))
            continue;
        int64_t key = key_at(p, request, t, x / heads_per_kv);
        weigh(p, query, key, x, t - (keys - sq + (token - first)), weight);
        mpfr_add(sum, sum, weight, MPFR_RNDN);
        mpfr_mul_d(term, weight, number(p, V, key + c), MPFR_RNDN);
        mpfr_add(mix, mix, term, MPFR_RNDN);
        seen++;
    }
    struct softmax_oracle out = { 0, (double)-INFINITY };
    if (seen > 0) {
        mpfr_div(mix, mix, sum, MPFR_RNDN);
        mpfr_log(sum, sum, MPFR_RNDN);
        out.o = mpfr_get_d(mix, MPFR_RNDN);
        out.lse = mpfr_get_d(sum, MPFR_RNDN);
    }
    mpfr_clears(sum, mix, weight, term, (mpfr_ptr)0);
    return out;
}
