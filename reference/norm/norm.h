/* What the norms share: values with the distance a kernel may have from them, the UClip and RMS steps in exact and in
 * declared arithmetic, and the walk over token rows.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Declared arithmetic of a norm (the fields of at_numerics that norms read; all others are ignored):
 *   unit of every elementwise step: f64 when qk_unit is f64, else f32 (one rounding an operation)
 *   UClip     t = alpha * x; c = min(max(t, lo), hi) with the declared way with NaN (clamp);
 *             y = gamma * c, then + beta; fir_fma = 1: both at once, fma(gamma, c, beta)
 *   RMS       S = sum x*x in the qk order over the channels; m = S / n; m = m + eps; r = 1 / sqrt(m) (both correctly
 *             rounded); y = gamma * (x * r)
 *   a sum of two activations is one addition; what is stored is rounded once to the activations' format; what is
 *   "rounded" between two steps is rounded the same way and read back. */
#ifndef AT_NORM_H
#define AT_NORM_H

#include "attest/op.h"

/* An exact value, and how far the value of a kernel with the declared arithmetic may be from it. */
struct at_bounded {
    double value, error;
};

/* Unit roundoff and underflow unit of the elementwise arithmetic. */
struct at_norm_arith {
    double u, eta;
};
struct at_norm_arith at_norm_arithmetic(const struct at_numerics *numerics);

/* Factors on the three kinds of rounding in the limits; 1 except in the tests that show that each is needed. */
struct at_norm_scales {
    double arithmetic, store, sum;
};
extern struct at_norm_scales at_norm_test_scales;

/* a + b, both bounded. */
struct at_bounded at_bounded_add(struct at_norm_arith arith, struct at_bounded a, struct at_bounded b);
/* x rounded to a format and read back: the value is rounded, and the error is how far rounding anything within
 * the error of x can land from there (0 unless a rounding boundary is near). */
struct at_bounded at_bounded_round(enum at_format format, struct at_bounded x);
/* x stored as an output: the value stays exact, the error gains one rounding of the format. */
struct at_bounded at_bounded_store(enum at_format format, struct at_bounded x);

/* y = gamma * clamp(alpha * x, lo, hi) + beta, per channel. */
struct at_uclip {
    const struct at_tensor *alpha, *gamma, *beta; /* f32 [channels]; beta may be NULL */
    double lo, hi;
};
/* Ways of being wrong; each drops one part. */
enum at_uclip_fault { AT_UCLIP_RIGHT, AT_UCLIP_UNCLAMPED, AT_UCLIP_NO_ALPHA, AT_UCLIP_NO_GAMMA, AT_UCLIP_NEXT_CHANNEL };
struct at_bounded at_uclip_bounded(const struct at_uclip *uclip, struct at_norm_arith arith, int64_t channel,
                                   struct at_bounded x, enum at_uclip_fault fault);
/* The same step in the declared arithmetic. */
double at_uclip_declared(const struct at_uclip *uclip, const struct at_numerics *numerics, int64_t channel, double x);
/* One addition in the declared arithmetic. */
double at_add_declared(const struct at_numerics *numerics, double a, double b);

/* y_i = gamma_i * x_i / sqrt(mean(x^2) + eps) over n channels. x and y may not overlap. */
enum at_rms_fault { AT_RMS_RIGHT, AT_RMS_NO_MEAN, AT_RMS_NO_GAMMA, AT_RMS_NEXT_CHANNEL, AT_RMS_LAST_CHANNEL_UNSEEN };
void at_rms_bounded(const struct at_numerics *numerics, int64_t n, const struct at_bounded *x,
                    const struct at_tensor *gamma, double eps, enum at_rms_fault fault, struct at_bounded *y);
void at_rms_declared(const struct at_numerics *numerics, int64_t n, const double *x, const struct at_tensor *gamma,
                     double eps, double *y);

/* What a row function is asked for. */
enum at_norm_mode { AT_NORM_EXACT, AT_NORM_MODEL, AT_NORM_DECOY };
struct at_norm_call {
    const struct at_problem *problem;
    const struct at_numerics *numerics; /* never NULL: defaults when no limit is wanted */
    enum at_norm_mode mode;
    int decoy;
    struct at_eval *eval;
};
/* Writes element i of an output tensor: value, and the error as limit. */
void at_norm_put(const struct at_norm_call *call, int tensor, int64_t i, struct at_bounded x);

/* Calls row(call, token) for each token in [row0, row1). */
at_status at_norm_walk(const struct at_problem *problem, const struct at_numerics *numerics, enum at_norm_mode mode,
                       int decoy, int64_t row0, int64_t row1, struct at_eval *eval,
                       at_status (*row)(const struct at_norm_call *call, int64_t token));

/* Descriptor functions common to all norms: a row is a token and owns count/tokens elements of each output. */
at_status at_norm_check(const struct at_problem *problem);
int64_t at_norm_rows(const struct at_problem *problem);
void at_norm_row_span(const struct at_problem *problem, int tensor, int64_t row, int64_t *first, int64_t *count);
double at_norm_row_work(const struct at_problem *problem, int64_t row);

/* The three evaluation functions of a norm in terms of its row function. */
#define AT_NORM_EVALUATIONS(row) \
    static at_status evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0, \
                              int64_t row1, struct at_eval *eval) { \
        return at_norm_walk(problem, numerics, AT_NORM_EXACT, 0, row0, row1, eval, row); \
    } \
    static at_status model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0, \
                           int64_t row1, struct at_eval *eval) { \
        return at_norm_walk(problem, numerics, AT_NORM_MODEL, 0, row0, row1, eval, row); \
    } \
    static at_status decoy(const struct at_problem *problem, const struct at_numerics *numerics, int which, \
                           int64_t row0, int64_t row1, struct at_eval *eval) { \
        return at_norm_walk(problem, numerics, AT_NORM_DECOY, which, row0, row1, eval, row); \
    }
/* The rest of a norm's descriptor. */
#define AT_NORM_FUNCTIONS \
    .check = at_norm_check, .rows = at_norm_rows, .row_span = at_norm_row_span, .row_work = at_norm_row_work, \
    .evaluate = evaluate, .model = model, .decoy = decoy

#endif
