/* A second AsyncT attention, in 200-bit arithmetic.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Written from the formula, output element by output element: no row buffers, tensors found by name, requests
 * by a linear search, the FIR as a weighted sum that asks for each score anew. */
#include "tests/oracle/asynct_mpfr.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpfr.h>

#include "attest/op.h"

enum { BITS = 200 };

static const struct at_tensor *tensor(const struct at_problem *problem, const char *name) {
    for (int i = 0; i < problem->op->n_tensors; i++)
        if (strcmp(problem->op->tensors[i].name, name) == 0)
            return &problem->tensors[i];
    fprintf(stderr, "the oracle knows no tensor %s\n", name);
    abort();
}

static double f16_value(unsigned code) {
    unsigned exponent = code >> 10 & 31, fraction = code & 1023;
    double size = exponent == 0 ? ldexp((double)fraction, -24) : ldexp((double)(fraction + 1024), (int)exponent - 25);
    if (exponent == 31)
        size = fraction ? (double)NAN : (double)INFINITY;
    return code >> 15 ? -size : size;
}

static double element(const struct at_problem *problem, const char *name, int64_t i) {
    const struct at_tensor *x = tensor(problem, name);
    uint32_t word = 0;
    float value;
    if (x->format == AT_F32) {
        memcpy(&word, (const char *)x->data + 4 * i, 4);
    } else {
        uint16_t half;
        memcpy(&half, (const char *)x->data + 2 * i, 2);
        if (x->format == AT_F16)
            return f16_value(half);
        word = (uint32_t)half << 16;
    }
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

static int64_t integer(const struct at_problem *problem, const char *name, int64_t i) {
    return ((const int32_t *)tensor(problem, name)->data)[i];
}

/* One output element's surroundings. */
struct place {
    const struct at_problem *problem;
    int64_t request, token, head;
};

/* Element `channel` of key or value t. */
static double key_element(const struct place *at, const char *name, int64_t t, int64_t channel) {
    const struct at_sizes *s = &at->problem->sizes;
    int64_t slot;
    if (tensor(at->problem, "block_table")->data)
        slot = integer(at->problem, "block_table", at->request * s->max_pages + t / s->page) * s->page + t % s->page;
    else
        slot = integer(at->problem, "key_start", at->request) + t;
    int64_t kv_head = at->head * s->hk / s->h;
    return element(at->problem, name, slot * s->hk * s->d + kv_head * s->d + channel);
}

/* r_t, or NaN where the score is not finite. */
static void filtered_score(const struct place *at, int64_t t, mpfr_t r) {
    const struct at_sizes *s = &at->problem->sizes;
    mpfr_t x;
    mpfr_init2(x, BITS);
    mpfr_set_zero(r, 1);
    for (int64_t i = 0; i < s->d; i++) {
        mpfr_set_d(x, element(at->problem, "q", (at->token * s->h + at->head) * s->d + i), MPFR_RNDN);
        mpfr_mul_d(x, x, key_element(at, "k", t, i), MPFR_RNDN);
        mpfr_add(r, r, x, MPFR_RNDN);
    }
    mpfr_mul_d(r, r, (double)at->problem->params.scale, MPFR_RNDN);
    if (!mpfr_number_p(r))
        mpfr_set_nan(r);
    else if (at->problem->params.relu_pre && mpfr_sgn(r) < 0)
        mpfr_set_zero(r, 1);
    mpfr_clear(x);
}

/* The weight of r_{t-j} in z_t. */
static void weight(const struct place *at, int64_t t, int64_t j, mpfr_t w) {
    const struct at_params *params = &at->problem->params;
    int64_t taps = at->problem->sizes.taps, divisor = taps;
    if (params->fir_form == AT_FIR_TAPS) {
        mpfr_set_d(w, element(at->problem, "taps", at->head * taps + j), MPFR_RNDN);
        return;
    }
    if (params->edge == AT_EDGE_SHRINK && t < taps)
        divisor = t + 1;
    mpfr_set_d(w, -element(at->problem, "sigma", at->head), MPFR_RNDN);
    mpfr_div_ui(w, w, (unsigned long)divisor, MPFR_RNDN);
    if (j == 0)
        mpfr_add_ui(w, w, 1, MPFR_RNDN);
}

static void gate(const struct place *at, int64_t t, mpfr_t p) {
    mpfr_t r, w;
    mpfr_inits2(BITS, r, w, (mpfr_ptr)NULL);
    mpfr_set_zero(p, 1);
    for (int64_t j = 0; j < at->problem->sizes.taps && j <= t; j++) {
        filtered_score(at, t - j, r);
        weight(at, t, j, w);
        mpfr_mul(r, r, w, MPFR_RNDN);
        mpfr_add(p, p, r, MPFR_RNDN);
    }
    if (!mpfr_nan_p(p)) {
        if (mpfr_sgn(p) < 0)
            mpfr_set_zero(p, 1);
        if (mpfr_cmp_d(p, (double)at->problem->params.clip_max) > 0)
            mpfr_set_d(p, (double)at->problem->params.clip_max, MPFR_RNDN);
        if (mpfr_cmp_d(p, (double)at->problem->params.clip_min) < 0)
            mpfr_set_d(p, (double)at->problem->params.clip_min, MPFR_RNDN);
    }
    mpfr_clears(r, w, (mpfr_ptr)NULL);
}

/* Keys 0 .. n-1 count: the last query of a request sees all of them when causal, each earlier one key
 * fewer. */
static int64_t visible(const struct at_problem *problem, int64_t request, int64_t token) {
    int64_t n = integer(problem, "seq_lens", request);
    if (problem->params.causal)
        n -= integer(problem, "query_start", request + 1) - 1 - token;
    return n;
}

double at_asynct_mpfr(const struct at_problem *problem, int64_t token, int64_t head, int64_t channel) {
    struct place at = { problem, 0, token, head };
    while (integer(problem, "query_start", at.request + 1) <= token)
        at.request++;
    mpfr_t sum, p;
    mpfr_inits2(BITS, sum, p, (mpfr_ptr)NULL);
    mpfr_set_zero(sum, 1);
    for (int64_t t = 0; t < visible(problem, at.request, token); t++) {
        gate(&at, t, p);
        if (mpfr_zero_p(p))
            continue;
        mpfr_mul_d(p, p, key_element(&at, "v", t, channel), MPFR_RNDN);
        mpfr_add(sum, sum, p, MPFR_RNDN);
    }
    mpfr_mul_d(sum, sum, element(problem, "gamma", head), MPFR_RNDN);
    double o = mpfr_get_d(sum, MPFR_RNDN);
    mpfr_clears(sum, p, (mpfr_ptr)NULL);
    return o;
}
