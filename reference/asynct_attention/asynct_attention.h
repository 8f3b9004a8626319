/* AsyncT attention: a clamped, unnormalised gate over FIR-filtered scores.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For query i of a request and a query head, over its visible keys t = 0 .. n-1 (attest/attention.h):
 *
 *     s_t = scale * <q_i, k_t>
 *     r_t = relu_pre ? max(s_t, 0) : s_t          r_t = 0 for t < 0; NaN where s_t is not finite
 *     z_t = r_t - sigma/D * (r_t + ... + r_{t-K+1})   fir_form = pooled; D = K, or min(t+1, K) with edge = shrink
 *         = sum_{j<K} w_j r_{t-j}                     fir_form = taps
 *     p_t = max(min(max(z_t, 0), clip_max), clip_min)     NaN stays NaN
 *     o   = gamma * sum_{t: p_t != 0} p_t v_t             0 when nothing is visible
 *
 * The direct term of the pooled form is r, not s: with sigma >= 0, relu_pre and clip_min = 0 that makes no
 * difference. The history of the filter starts at key 0 of the request; masking acts on p only.
 *
 * Below the operator: the pieces from scores to p and their limits, one row at a time, for callers that have the
 * scores already (the fast tier computes q.k and p.v by BLAS and everything between with these). */
#ifndef AT_ASYNCT_ATTENTION_H
#define AT_ASYNCT_ATTENTION_H

#include "attest/attention.h"
#include "tensor_core/accumulate.h"

enum {
    AT_ASYNCT_SIGMA = AT_ATTN_COMMON, /* f32 [h]; read when fir_form = pooled */
    AT_ASYNCT_TAPS,                   /* f32 [h taps]; pooled: the taps of sigma, rounded to f32 */
    AT_ASYNCT_GAMMA,                  /* f32 [h] */
    AT_ASYNCT_O,                      /* dtype [tokens h d] */
    AT_ASYNCT_TENSORS
};
enum { AT_ASYNCT_MAX_TAPS = 16 };

/* The operator's own decoys, in the order of its table. */
enum at_asynct_decoy {
    AT_ASYNCT_LAST_KEY_DROPPED,
    AT_ASYNCT_HIDDEN_KEY_ADDED,
    AT_ASYNCT_NO_SCALE,
    AT_ASYNCT_TAP_DROPPED,
    AT_ASYNCT_FIR_SHIFTED,
    AT_ASYNCT_GATE_UNCLAMPED,
    AT_ASYNCT_V_SWAPPED,
    AT_ASYNCT_HALO_FORGOTTEN,
    AT_ASYNCT_MASK_MISSING,
    AT_ASYNCT_MASK_TOP_LEFT,
    AT_ASYNCT_DECOYS
};

extern const struct at_op at_op_asynct_attention;

/* ---- From scores to the gate, exactly (gate.c) ---- */

/* Parameters of one query head. */
struct at_asynct_head {
    double scale, sigma, gamma, clip_min, clip_max;
    int taps, relu_pre;
    int pooled, shrink;             /* fir_form and edge */
    double tap[AT_ASYNCT_MAX_TAPS]; /* the stored taps */
};
void at_asynct_head_init(const struct at_problem *problem, int64_t head, struct at_asynct_head *out);

/* The gate's input for one score; NaN for a score that is not finite. */
double at_asynct_relu(const struct at_asynct_head *head, double s);
/* z_t from the scaled scores s[0 .. t]. Keys below `first` count as r = 0; 0 but for decoys. */
double at_asynct_fir(const struct at_asynct_head *head, const double *s, int64_t t, int64_t first);
double at_asynct_clamp(const struct at_asynct_head *head, double z);
/* dot[t] = <q, k_t> unscaled, for the n visible keys in ascending order: fills s, z and p (n each). */
void at_asynct_gate_row(const struct at_asynct_head *head, int64_t n, const double *dot, double *s, double *z,
                        double *p);

/* ---- How far a kernel can be (limit.c) ---- */

/* What a declaration costs, derived once per problem and numerics. Public so that a test can alter a
 * constant and see the limit fail; everybody else only passes it on. All zero, with infinite ends of
 * range, for "no kernel": then every limit is the reference's own error alone. */
struct at_asynct_limit {
    int declared;             /* 0: the reference's own error alone */
    int64_t d, split, splits; /* head size; keys per partial, 0: one pass */
    int64_t spread;           /* keys of a group of steps whose keys are not in order, 0: all are */
    int on_taps;              /* the scale is in the taps */
    int scale_on, gamma_on, multiplies_zeros;
    struct at_order qk, pv;
    double u_q, eta_q;       /* rounding of the scaled q */
    double e_qk;             /* of sum |q'||k| */
    double u_store;          /* a double score stored as f32 */
    double u_step, eta_step; /* f32 or f64 operations between q.k and P */
    double u_scale;          /* u_step, 0 where the product is exact */
    double fir;              /* of sum wbar (|r| + dr) */
    double u_p, eta_p;       /* format of P */
    double pv_share;         /* 1: how much of at_accumulate_error is charged for p.v */
    double u_split;          /* one addition of a partial result */
    double u_out, eta_out;   /* rounding to the output's format */
    double q_end, qk_end, step_end, p_end, pv_end, sum_end, out_end; /* magnitudes that round to infinity */
};
/* numerics NULL: the reference's own error alone. AT_UNSUPPORTED when the numerics make no sense for the
 * problem's dtype (operands that are not in the unit's format); see declared.c. */
at_status at_asynct_limit_init(const struct at_problem *problem, const struct at_numerics *numerics,
                               struct at_asynct_limit *out);

/* What is known of a row's scores. */
struct at_asynct_scores {
    int64_t n;           /* visible keys */
    const double *dot;   /* <q, k_t> */
    const double *abs;   /* sum_i |q_i||k_ti| */
    const double *k_abs; /* sum_i |k_ti|; NULL allowed when scale_on = score or there is no declaration */
    double q_max, k_max; /* largest finite |q_i|, |k_ti| of these keys (or more) */
};
/* dp[t]: how far the kernel's operand of P*V can be from the exact one, which is gamma p_t, or p_t when
 * gamma is applied to the output. +inf where the declared arithmetic may overflow. s and p: what
 * at_asynct_gate_row() gave for scores->dot. The sums may have been made in any order (BLAS, FMA): their own
 * error, d 2^-53 abs[t], is included. */
void at_asynct_limit_row(const struct at_asynct_limit *limit, const struct at_asynct_head *head,
                         const struct at_asynct_scores *scores, const double *s, const double *z, double *dp);

/* One output element. */
struct at_asynct_sum {
    int64_t n;     /* visible keys */
    int64_t live;  /* of them, those with p_t != 0 or dp_t != 0 */
    double p_max;  /* largest p_t + dp_t */
    double v_max;  /* largest finite |v| of the row's keys (or more); matters to tensor cores only */
    double o;      /* exact output */
    double abs_pv; /* sum_t p_t |v_t|, without gamma, p = 0 left out */
    double err_pv; /* sum_t dp_t |v_t|; keys with dp_t = 0 may be left out unless multiplies_zeros, when a
                      non-finite v must turn this into NaN or inf */
};
/* The limit of |kernel - o|: +inf where there is none. Never NaN. */
double at_asynct_limit_out(const struct at_asynct_limit *limit, const struct at_asynct_head *head,
                           const struct at_asynct_sum *sum);

/* evaluate() with a ready limit (may be NULL when no limit array is set). */
at_status at_asynct_evaluate_with(const struct at_problem *problem, const struct at_asynct_limit *limit, int64_t row0,
                                  int64_t row1, struct at_eval *eval);

/* The members of the descriptor, each in the file of its name. */
at_status at_asynct_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                             int64_t row1, struct at_eval *eval);
at_status at_asynct_model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                          int64_t row1, struct at_eval *eval);
at_status at_asynct_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int decoy, int64_t row0,
                          int64_t row1, struct at_eval *eval);

#endif
