/* What the norms share: values with the distance a kernel may have from them, the UClip and RMS steps in exact and in
 * declared arithmetic, and the walk over token rows.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Declared arithmetic of a norm (the fields of at_numerics that norms read; all others are ignored):
 *   unit of every elementwise step: f64 when qk_unit is f64, else f32 (one rounding an operation)
 *   UClip     t = alpha * x; c = min(max(t, lo), hi) with the declared way with NaN (clamp);
 *             y = gamma * c, then + beta; fir_fma = 1: both at once, fma(gamma, c, beta)
 *   RMS       S = sum x*x in the qk order over the channels; m = S / n; m = m + eps; r = 1 / sqrt(m) by the declared
 *             rsqrt: both operations correctly rounded, or the special-function unit's bits; y = gamma * (x * r)
 *   a sum of two activations is one addition; what is stored is rounded once to the activations' format; what is
 *   "rounded" between two steps is rounded the same way and read back. */
#ifndef AT_NORM_H
#define AT_NORM_H

#include "attest/op.h"

/* An exact value, and how far the value of a kernel with the declared arithmetic may be from it. The error is never NaN:
 *   finite  the kernel's value is finite and that close
 *   +inf    nothing is promised: an intermediate can leave the range of its format, or be a NaN that the declared clamp
 *           turns into a number (class RANGE)
 * A value that is infinite or NaN with error 0: so is the kernel's, of the same sign. */
struct at_bounded {
    double value, error;
};

/* The roundings of the norms; each is a term of some limit. */
enum at_norm_stage {
    AT_NORM_ADD,    /* x + res, where the sum is used before it is stored */
    AT_NORM_SLOPE,  /* alpha * x */
    AT_NORM_FACTOR, /* gamma * c */
    AT_NORM_SHIFT,  /* + beta, or gamma * c + beta at once */
    AT_NORM_SUM,    /* sum of squares */
    AT_NORM_MEAN,   /* S / n */
    AT_NORM_EPS,    /* m + eps */
    AT_NORM_ROOT,   /* 1 / sqrt(m) */
    AT_NORM_SCALED, /* x * r */
    AT_NORM_WEIGHT, /* gamma * (x * r) */
    AT_NORM_STORE,  /* what is written */
    AT_NORM_STAGES
};

/* Factors on unit roundoff and underflow unit of each stage; 1 except in the tests that show that each is needed. */
struct at_norm_scales {
    double u[AT_NORM_STAGES], eta[AT_NORM_STAGES];
};
extern struct at_norm_scales at_norm_test_scales;

/* The elementwise arithmetic: what one step can do to its exact result. */
struct at_norm_arith {
    enum at_format format; /* of every step's result: f32 or f64 */
    double u, eta, edge;   /* unit roundoff, underflow unit, and from where on magnitudes round to infinity */
    int fused;             /* gamma * c + beta is one step */
    int launders;          /* the clamp makes NaN a number */
    int own;               /* no arithmetic but the reference's: errors are the reference's own bound */
};
/* numerics NULL: the reference's own. */
struct at_norm_arith at_norm_arithmetic(const struct at_numerics *numerics);

/* One step of the arithmetic with this exact result, whose inputs' errors move it by up to `moved`. */
struct at_bounded at_bounded_step(const struct at_norm_arith *arith, enum at_norm_stage stage, double value,
                                  double moved);
/* How far a * b moves with the errors of a and b. */
double at_bounded_moved(struct at_bounded a, struct at_bounded b);
/* x rounded to a format and read back: the value is rounded, and the error is how far rounding anything within
 * the error of x can land from there (0 unless a rounding boundary is near). */
struct at_bounded at_bounded_round(const struct at_norm_arith *arith, enum at_format format, struct at_bounded x);
/* x stored as an output: the value stays exact, the error gains one rounding of the format. */
struct at_bounded at_bounded_store(const struct at_norm_arith *arith, enum at_format format, struct at_bounded x);

/* The sum of two activations of a format: as it is used (AT_FROM_EXACT: one step of the arithmetic; AT_FROM_ROUNDED:
 * rounded to the format), and as it is stored. */
struct at_residual {
    struct at_bounded used, stored;
};
struct at_residual at_bounded_residual(const struct at_norm_arith *arith, enum at_format format, int from,
                                       struct at_bounded a, struct at_bounded b);

/* y = gamma * clamp(alpha * x, lo, hi) + beta, per channel. */
struct at_uclip {
    const struct at_tensor *alpha, *gamma, *beta; /* f32 [channels]; gamma may be [1], for all; beta may be NULL */
    double lo, hi;
};
/* The factor of a channel. */
double at_uclip_gamma(const struct at_uclip *uclip, int64_t channel);
/* Ways of being wrong; each drops one part. */
enum at_uclip_fault { AT_UCLIP_RIGHT, AT_UCLIP_UNCLAMPED, AT_UCLIP_NO_ALPHA, AT_UCLIP_NO_GAMMA, AT_UCLIP_NEXT_CHANNEL };
struct at_bounded at_uclip_bounded(const struct at_uclip *uclip, const struct at_norm_arith *arith, int64_t channel,
                                   struct at_bounded x, enum at_uclip_fault fault);
/* The same step in the declared arithmetic. */
double at_uclip_declared(const struct at_uclip *uclip, const struct at_numerics *numerics, int64_t channel, double x);
/* One addition in the declared arithmetic. */
double at_add_declared(const struct at_numerics *numerics, double a, double b);

/* What a row function is asked for. */
enum at_norm_mode { AT_NORM_EXACT, AT_NORM_MODEL, AT_NORM_DECOY };
struct at_norm_call {
    const struct at_problem *problem;
    const struct at_numerics *numerics; /* never NULL: defaults when none are given */
    struct at_norm_arith arith;         /* of the given numerics; without any, the reference's own */
    enum at_norm_mode mode;
    int decoy;
    struct at_eval *eval;
};
/* y_i = gamma_i * x_i / sqrt(mean(x^2) + eps) over n channels. x and y may not overlap. */
enum at_rms_fault { AT_RMS_RIGHT, AT_RMS_NO_MEAN, AT_RMS_NO_GAMMA, AT_RMS_NEXT_CHANNEL, AT_RMS_LAST_CHANNEL_UNSEEN };
void at_rms_bounded(const struct at_norm_call *call, int64_t n, const struct at_bounded *x,
                    const struct at_tensor *gamma, enum at_rms_fault fault, struct at_bounded *y);
void at_rms_declared(const struct at_numerics *numerics, int64_t n, const double *x, const struct at_tensor *gamma,
                     double eps, double *y);

/* Writes element i of an output tensor: value, and the error as limit. */
void at_norm_put(const struct at_norm_call *call, int tensor, int64_t i, struct at_bounded x);

/* Calls row(call, token) for each token in [row0, row1). Without numerics the limits are the reference's own bound. */
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
/* What a UClip step reads of a declaration. */
#define AT_UCLIP_DECLARES (AT_DECLARES(qk_unit) | AT_DECLARES(fir_fma) | AT_DECLARES(clamp))
/* The rest of a norm's descriptor; AT_NORM_FUNCTIONS_AND: with a check of its own, which calls at_norm_check. */
#define AT_NORM_FUNCTIONS AT_NORM_FUNCTIONS_AND(at_norm_check)
#define AT_NORM_FUNCTIONS_AND(own_check) \
    .kind = AT_KIND_ROWS, .batch = AT_DIM_tokens, .check = own_check, .rows = at_norm_rows, \
    .row_span = at_norm_row_span, .row_work = at_norm_row_work, .evaluate = evaluate, .model = model, .decoy = decoy

/* What their cases may differ in (norm_domain.c). */
extern const struct at_factor at_norm_tokens, at_norm_channels, at_norm_dtype, at_norm_data, at_norm_ends, at_norm_eps,
    at_norm_from;
#define AT_NORM_DOMAIN &at_norm_tokens, &at_norm_channels, &at_norm_dtype, &at_norm_data

#endif
