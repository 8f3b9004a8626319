/* Softmax attention with its log-sum-exp: definition, exact rows, limits.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For query i of a request and a query head, over its visible keys t = 0 .. n-1 (attest/attention.h):
 *
 *     s_t = scale * <q_i, k_t>                              the score; with a softcap cap > 0
 *     s_t = cap * tanh(scale * <q_i, k_t> / cap)            and with ALiBi, after the cap,
 *     s_t = ... + slope_h * (t - (sk - sq + i))             slope_h of the query head (attest/alibi.h, times `alibi`)
 *     o   = sum_t p_t v_t,   p_t = exp(s_t - m) / sum_u exp(s_u - m),   m = max_t s_t
 *     lse = m + log sum_t exp(s_t - m)                            natural logarithm
 *
 * The bias takes the distance of the key from the query's own place in its request, sk - sq + i: the last query stands at
 * the last key, as the causal mask has it (so does a decode step's one query); a prefix counts. Keys after a query, which
 * one sees without the mask, have a distance above 0 and a bias above 0.
 *
 * No visible key: o = 0, lse = -inf. Both outputs are judged.
 * Scores that are not finite do what the formulas do in IEEE arithmetic: a NaN or a +inf among the visible
 * scores makes o and lse NaN; -inf is a key of weight 0; nothing but -inf makes o NaN (0/0) and lse -inf.
 * A row of V counts only where p_t != 0. A softcap makes +-inf among scale q.k to +-cap, ordinary scores; a NaN stays one.
 *
 * Below the operator: the pieces between the two matrix products, one row at a time, for callers that have the
 * sums over q.k and p.v already (the fast tier computes those by BLAS and everything between with these). */
#ifndef AT_SOFTMAX_ATTENTION_H
#define AT_SOFTMAX_ATTENTION_H

#include "attest/attention.h"
#include "tensor_core/accumulate.h"

enum {
    AT_SOFTMAX_O = AT_ATTN_COMMON, /* dtype [tokens h d] */
    AT_SOFTMAX_LSE,                /* f32 [tokens h] */
    AT_SOFTMAX_SLOPES,             /* f32 [h], input; absent when alibi = 0 */
    AT_SOFTMAX_TENSORS
};

/* The operator's own decoys, in the order of its table. */
enum at_softmax_decoy {
    AT_SOFTMAX_LAST_KEY_DROPPED,
    AT_SOFTMAX_HIDDEN_KEY_ADDED,
    AT_SOFTMAX_NO_SCALE,
    AT_SOFTMAX_V_SWAPPED,
    AT_SOFTMAX_LSE_BASE_2,
    AT_SOFTMAX_SPLIT_MERGE_UNWEIGHTED,
    AT_SOFTMAX_ONE_KEY_SUM_MISSING,
    AT_SOFTMAX_BASE_2,
    AT_SOFTMAX_RESCALE_MISSING,
    AT_SOFTMAX_STALE_MAXIMUM,
    AT_SOFTMAX_CAP_IGNORED,
    AT_SOFTMAX_CAP_BEFORE_SCALE,
    AT_SOFTMAX_NEXT_HEAD_BIAS,
    AT_SOFTMAX_BIAS_SIGN,
    AT_SOFTMAX_BIAS_OF_KEY,
    AT_SOFTMAX_BIAS_BEFORE_CAP,
    AT_SOFTMAX_MASK_MISSING,
    AT_SOFTMAX_MASK_TOP_LEFT,
    AT_SOFTMAX_DECOYS
};

extern const struct at_op at_op_softmax_attention;

/* 2^x, x >= AT_EX2_POLY3_LOW, by the polynomial of ex2_poly3 (attest/numerics.h). */
float at_softmax_ex2_poly3(float x);

/* exp_arg = fma: scale * log2(e) is a normal number, and the largest dot product has the largest score. */
static inline int at_softmax_folds(float scale) { return scale >= 0x1p-64f && scale <= 0x1p64f; }

/* The operator's own parameters. */
struct at_softmax_own {
    float softcap; /* 0: none, else at least AT_SOFTCAP_LEAST */
    float alibi;   /* factor of ALiBi's slopes; 0: no bias */
};
AT_OWN_STRUCT(at_softmax_own)
static inline float at_softmax_cap(const struct at_problem *problem) { return at_softmax_own_of(problem).softcap; }
/* Where scale / cap and its products stay far from the ends of f32 for the scales that the field uses. */
#define AT_SOFTCAP_LEAST 0x1p-10f
#define AT_SOFTCAP_MAX 0x1p20f
#define AT_ALIBI_MAX 0x1p16f

/* ---- From scores to weights, exactly (weights.c) ---- */

/* How the scores of a row are made. */
struct at_softmax_form {
    double scale;
    double cap;   /* 0: none */
    double slope; /* 0: no bias */
    double place; /* of the query among the keys: key t is t - place away */
};
struct at_softmax_form at_softmax_form(const struct at_problem *problem, const struct at_attn_row *at);
/* The score of key t. */
double at_softmax_score_of(const struct at_softmax_form *form, double dot, int64_t t);
/* It is scale * dot alone. */
static inline int at_softmax_plain(const struct at_softmax_form *form) {
    return !(form->cap > 0) && !(form->slope > 0 || form->slope < 0);
}

struct at_softmax_row {
    int64_t n;            /* visible keys */
    double max, sum, lse; /* m, sum_t exp(s_t - m), m + log(sum); n = 0: -inf, 0, -inf */
    /* The rest by at_softmax_limit_row(): what is known of the kernel's own weights. */
    int in_range;     /* 0: a score may overflow in the declared arithmetic; no limit */
    double spread;    /* H = sum_t p_t h_t */
    double worst;     /* largest exponent error, h_t = expm1(of it) */
    double drift;     /* how far the kernel's maximum can be from m */
    double least;     /* the kernel's sum of weights is at least this */
    double most;      /* and at most this */
    double tallest;   /* no weight is larger */
    double flush;     /* absolute error of each weight by underflow */
    double flush_sum; /* of the sum of weights */
    double e_sum;     /* relative error of adding the weights up */
};

/* dot[t] = <q, k_t> unscaled, the n visible keys in ascending order: fills s[t], the scores, p[t] (the
 * normalised weights, which add up to 1) and max, sum and lse of *row. s may be dot itself. */
void at_softmax_weights(int64_t n, const struct at_softmax_form *form, const double *dot, double *s, double *p,
                        struct at_softmax_row *row);

/* ---- How far a kernel can be (limit.c, constants in rounding.c) ---- */

/* What a declaration costs, derived once per problem and numerics. Public so that a test can alter a
 * constant and see the limit fail; everybody else only passes it on. */
struct at_softmax_limit {
    int declared; /* 0: no kernel; every constant is 0 and the limit is the reference's own error */
    int scale_on;
    int skips_zeros; /* V rows of weight 0 are not read */
    int64_t d, split, splits, block;
    struct at_order qk, pv;
    double scale;
    double u_q, eta_q;         /* rounding of the scaled q */
    double e_qk;               /* of sum |q||k| */
    double u_score, eta_score; /* scaling the finished dot product, or storing it as f32 */
    double u_argument;         /* argument of the exponential, of |s - m| */
    double u_shift;            /* the same, of |m|: forms that round m * log2(e) by itself */
    double u_exp, u_weight,
        flush;             /* the exponential: relative, of factors and of weights, and what it may flush to 0 */
    double u_sum, eta_sum; /* one addition to the sum, one rescaling of it */
    double u_p, eta_p;     /* format of P */
    double pv_share;       /* 1: how much of at_accumulate_error is charged for p.v */
    double u_rescale, eta_rescale; /* rescaling the p.v accumulator */
    double eta_factor;             /* of a factor that is rounded for it: absolute */
    double u_store;                /* an f64 accumulator stored as f32 */
    double u_merge, eta_merge;     /* product and addition in f32 when partial results are merged */
    double u_divide, eta_divide;
    double eta_reciprocal;       /* of a reciprocal below the normal numbers of its format: absolute */
    double u_out, eta_out;       /* rounding of o to its format */
    double u_log, log_floor;     /* logarithm: relative, and absolute near l = 1 */
    double u_max;                /* of |m|, by a shift common to all weights */
    double u_add, u_lse;         /* m + log l, and storing it */
    double u_capped, eta_capped; /* argument of tanh: roundings of scale / cap, of the product; absolute */
    double u_tanh, tanh_floor;   /* tanh: relative, absolute */
    double u_bias;               /* a rounding of the bias, of the score with its bias, of the capped score */
    double q_end, qk_end, score_end, pv_end, out_end; /* magnitudes that round to infinity */
};
/* numerics NULL: no kernel. AT_UNSUPPORTED when the numerics make no sense for the problem's dtype, as
 * at_softmax_check_numerics() says. */
at_status at_softmax_limit_init(const struct at_problem *problem, const struct at_numerics *numerics,
                                struct at_softmax_limit *out);
/* Units whose operands the problem does not have: tensor cores and f16_fma want q, k, v (and P) in one 16-bit
 * format, f16_fma in f16; the unrounded scaled q is f32 and goes into f32 and f64 units only. */
at_status at_softmax_check_numerics(const struct at_problem *problem, const struct at_numerics *numerics);

/* What is known of a row's scores. */
struct at_softmax_scores {
    int64_t n;
    const struct at_softmax_form *form;
    const double *dot;   /* <q, k_t> */
    const double *abs;   /* sum_i |q_i||k_ti| */
    const double *k_abs; /* sum_i |k_ti|; NULL allowed unless the scale is applied to q */
    double q_max, k_max; /* largest |q_i|, largest |k_ti| of these keys (or more) */
};
/* h[t]: the kernel's weight of key t is p_t (1 + x) times a factor common to all keys of the row, |x| <= h[t].
 * s, p, row: what at_softmax_weights() gave for scores->dot. Fills the rest of *row. The sums dot and abs may
 * have been made in any order (BLAS, FMA): their own error, d 2^-53 abs[t], is included. */
void at_softmax_limit_row(const struct at_softmax_limit *limit, const struct at_softmax_scores *scores, const double *s,
                          const double *p, struct at_softmax_row *row, double *h);

/* One output element; sums and maxima over the row's keys, all of them or those with p_t != 0 when
 * limit->skips_zeros. Upper bounds do in place of everything but o: |v - o| <= |v| + |o| turns `spread` into
 * sum p h |v| + |o| row->spread, which is a matrix product. */
struct at_softmax_sums {
    double o;      /* exact output, sum p_t v_t */
    double spread; /* sum p_t h_t |v_t - o| */
    double abs;    /* sum p_t (1 + h_t) |v_t| */
    double all;    /* sum |v_t| */
    double v_max;  /* max |v_t| */
    double off;    /* max |v_t - o| */
};
/* The limit of |kernel - o|; v_largest: largest |v| of the row's keys in any channel (or more; it matters to
 * tensor cores). 0 where o is not finite (its class is compared), +inf where there is no limit. Never NaN. */
double at_softmax_limit_o(const struct at_softmax_limit *limit, const struct at_softmax_row *row,
                          const struct at_softmax_sums *sums, double v_largest);
/* The limit of |kernel - lse|, likewise. */
double at_softmax_limit_lse(const struct at_softmax_limit *limit, const struct at_softmax_row *row);

/* evaluate() with a ready limit (may be NULL when no limit array is set). */
at_status at_softmax_evaluate_with(const struct at_problem *problem, const struct at_softmax_limit *limit, int64_t row0,
                                   int64_t row1, struct at_eval *eval);

/* The members of the descriptor, each in the file of its name. */
at_status at_softmax_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                              int64_t row1, struct at_eval *eval);
at_status at_softmax_model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                           int64_t row1, struct at_eval *eval);
at_status at_softmax_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int decoy,
                           int64_t row0, int64_t row1, struct at_eval *eval);

#endif
