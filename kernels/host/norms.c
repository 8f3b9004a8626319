/* The steps of the norms in plain f32.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/host/norms.h"

#include "kernels/host/attention.h"

#include <math.h>

enum { PIECE = 256, LANES_MAX = 64 };

static const float *floats(const struct at_problem *problem, int tensor) {
    return (const float *)problem->tensors[tensor].data;
}

struct at_host_uclip at_host_uclip(const struct at_problem *problem, int alpha, int gamma, int beta,
                                   const struct at_numerics *numerics) {
    return (struct at_host_uclip){ .alpha = floats(problem, alpha),
                                   .gamma = floats(problem, gamma),
                                   .beta = beta < 0 ? NULL : floats(problem, beta),
                                   .lo = problem->params.lo,
                                   .hi = problem->params.hi,
                                   .fused = numerics->fir_fma,
                                   .one_gamma = problem->tensors[gamma].shape[0] == 1 };
}

const char *at_host_norm_declines(const struct at_problem *problem, enum at_format only) {
    if (only == AT_BF16 && problem->dtype != AT_BF16)
        return "writes bf16 only";
    return at_host_declines(problem, 0);
}

/* A NaN becomes lo; of two zeros max takes 0 and min takes -0, as on a GPU: C leaves it open. */
static float clamp(float t, float lo, float hi) {
    t = t > lo ? t : lo;
    return t > hi ? hi : t;
}

static float uclip_of(const struct at_host_uclip *u, int64_t channel, float x) {
    const float clamped = clamp(u->alpha[channel] * x, u->lo, u->hi), gamma = u->gamma[u->one_gamma ? 0 : channel];
    if (!u->beta)
        return gamma * clamped;
    if (u->fused)
        return fmaf(gamma, clamped, u->beta[channel]);
    float product = gamma * clamped;
    return product + u->beta[channel];
}

/* ---- pieces: up to PIECE elements that share a row ---- */

/* A walk over a tensor's rows in pieces. */
struct piece {
    int64_t first, channel, n; /* first element, its channel, elements */
};

static int next_piece(struct piece *p, int64_t count, int64_t channels) {
    p->first += p->n;
    p->channel = p->first % channels;
    p->n = channels - p->channel < PIECE ? channels - p->channel : PIECE;
    return p->first < count;
}

static void uclip_piece(const struct at_host_uclip *u, const struct piece *p, const float *x, float *y) {
    for (int64_t i = 0; i < p->n; i++)
        y[i] = uclip_of(u, p->channel + i, x[i]);
}

/* What a step reads that the step before has stored. */
static void round_piece(enum at_format format, const struct piece *p, float *x) {
    for (int64_t i = 0; i < p->n; i++)
        x[i] = at_host_round(format, x[i]);
}

static void add_piece(const struct piece *p, const float *x, float *sum) {
    for (int64_t i = 0; i < p->n; i++)
        sum[i] = x[i] + sum[i];
}

/* ---- whole tensors ---- */

void at_host_uclip_tensor(const struct at_host_uclip *uclip, int64_t channels, const struct at_tensor *x,
                          const struct at_tensor *y) {
    float in[PIECE], out[PIECE];
    struct piece p = { 0 };
    while (next_piece(&p, at_tensor_count(x), channels)) {
        at_host_load(x, p.first, p.n, in);
        uclip_piece(uclip, &p, in, out);
        at_host_store(y, p.first, p.n, out);
    }
}

void at_host_add_uclip_tensor(const struct at_host_uclip *uclip, int64_t channels, int32_t from,
                              const struct at_tensor *x, const struct at_tensor *res, const struct at_tensor *sum,
                              const struct at_tensor *y) {
    float in[PIECE], total[PIECE];
    struct piece p = { 0 };
    while (next_piece(&p, at_tensor_count(x), channels)) {
        at_host_load(x, p.first, p.n, in);
        at_host_load(res, p.first, p.n, total);
        add_piece(&p, in, total);
        at_host_store(sum, p.first, p.n, total);
        if (from == AT_FROM_ROUNDED)
            round_piece(sum->format, &p, total);
        uclip_piece(uclip, &p, total, in);
        at_host_store(y, p.first, p.n, in);
    }
}

void at_host_peri_tensor(const struct at_host_uclip *post, const struct at_host_uclip *pre, int64_t channels,
                         int32_t from, const struct at_tensor *a, const struct at_tensor *res,
                         const struct at_tensor *sum, const struct at_tensor *y) {
    float in[PIECE], total[PIECE];
    struct piece p = { 0 };
    while (next_piece(&p, at_tensor_count(a), channels)) {
        at_host_load(a, p.first, p.n, in);
        uclip_piece(post, &p, in, in);
        round_piece(a->format, &p, in);
        at_host_load(res, p.first, p.n, total);
        add_piece(&p, in, total);
        at_host_store(sum, p.first, p.n, total);
        if (from == AT_FROM_ROUNDED)
            round_piece(sum->format, &p, total);
        uclip_piece(pre, &p, total, in);
        at_host_store(y, p.first, p.n, in);
    }
}

/* ---- RMS ---- */

int64_t at_host_rms_workspace(const struct at_problem *problem) {
    return problem->sizes.channels * (int64_t)sizeof(float);
}

/* sum + x * x. */
static float add_square(const struct at_numerics *numerics, float sum, float x) {
    if (numerics->qk_unit == AT_UNIT_F32_FMA)
        return fmaf(x, x, sum);
    float square = x * x;
    return sum + square;
}

static float sum_of_squares(const struct at_numerics *numerics, int64_t n, const float *x) {
    float lane[LANES_MAX] = { 0 };
    const int lanes = numerics->qk_lanes;
    for (int64_t i = 0; i < n; i++)
        lane[i % lanes] = add_square(numerics, lane[i % lanes], x[i]);
    if (numerics->qk_tree == AT_TREE_SEQUENTIAL) {
        for (int i = 1; i < lanes; i++)
            lane[0] += lane[i];
        return lane[0];
    }
    /* every lane adds its partner's sum; all end with the same value, lane 0 is asked */
    for (int mask = lanes / 2; mask > 0; mask /= 2)
        for (int i = 0; i < mask; i++)
            lane[i] += lane[i + mask];
    return lane[0];
}

void at_host_rms_tensor(const struct at_launch *launch, const struct at_numerics *numerics, const float *gamma,
                        const struct at_tensor *x, const struct at_tensor *res, const struct at_tensor *sum,
                        const struct at_tensor *y) {
    const struct at_problem *problem = launch->problem;
    const int64_t n = problem->sizes.channels;
    float *row = (float *)launch->workspace;
    for (int64_t first = 0; first < at_tensor_count(x); first += n) {
        at_host_load(x, first, n, row);
        for (int64_t c = 0; res && c < n; c++) {
            float other;
            at_host_load(res, first + c, 1, &other);
            row[c] += other;
            at_host_store(sum, first + c, 1, &row[c]);
            if (problem->params.from == AT_FROM_ROUNDED)
                row[c] = at_host_round(sum->format, row[c]);
        }
        float mean = sum_of_squares(numerics, n, row) / (float)n;
        mean += problem->params.eps;
        const float inverse = 1.0f / sqrtf(mean);
        for (int64_t c = 0; c < n; c++) {
            float scaled = row[c] * inverse;
            row[c] = gamma[c] * scaled;
        }
        at_host_store(y, first, n, row);
    }
}
