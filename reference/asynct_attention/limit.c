/* How far a kernel with declared arithmetic can be from the exact AsyncT attention.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A hat marks what the kernel has. u, eta: roundoff and underflow of a format: fl(x) = x (1 + a) + b with
 * |a| <= u, |b| <= eta (b = 0 for additions). Sums cost n u without second order terms (Jeannerod and
 * Rump 2013), as derived in tensor_core/accumulate_error.c, whose e and eta are used for q.k and p.v.
 *
 * Score.  x = <q, k_t>, A = sum |q||k_t|.
 *   scale on the score: |x^ - x| <= e A + eta =: dx, and with the product's rounding
 *     ds = |scale| dx + u (|s| + |scale| dx) + eta. u is 0 when scale is a power of two.
 *     (A score summed in double beside an f32 P*V is stored as f32 first: u_store.)
 *   scale on q: q' = scale q (1 + a) + b, |a| <= u_q, |b| <= eta_q (two roundings when q' is rounded back to
 *     its type: u_q = u + u_type (1 + u)); sum |q'||k| <= A' = |scale| A (1 + u_q) + eta_q sum|k|,
 *     ds = u_q |scale| A + eta_q sum|k| + e A' + eta.
 *   scale on the taps: the score keeps dx; the scale is exact here and its rounding counts at the taps.
 * ReLU.   Exact and monotone: dr = max(relu(s + ds) - r, r - relu(s - ds)), which is 0 well below 0.
 * FIR.    z = sum w_j r_{t-j}; dz = sum |w_j| dr_{t-j} + fir * sum wbar_j (|r| + dr)_{t-j} + underflow.
 *   given taps: wbar = |w|, fir = K u (K terms, each product rounded, or fused).
 *   scale on the taps: each tap rounds once more, K u -> (K + 1) u, and its own underflow costs eta |x|, x unscaled.
 *   pooled: w = (1 - sigma/D, -sigma/D, ...), wbar = (1 + |sigma|/D, |sigma|/D, ...): the first tap cancels, its
 *     error does not. Order `pooled`: sigma/D, K - 1 additions, the product and the subtraction each round
 *     once, K + 2 factors (1 + a) on a term. Order `taps`: a stored tap is within 2 u wbar of the exact one
 *     (the descriptor's check; at the shrinking edge sigma/D and 1 - sigma/D round once each), then K u.
 *     Both: (1 + u)^(K+2) - 1 <= (K + 2) u (1 + (K + 2) u).
 *   Underflow: K products; pooled also sigma/D, which multiplies sum |r|: eta (K + 1 + sum (|r| + dr)).
 * Gate.   The clamp g is exact and monotone: dp = max(g(z + dz) - p, p - g(z - dz)).
 * P.      G = |gamma|. The operand of P*V is
 *   gamma on P:     round_P(fl(gamma p)):  G dp + u G(p + dp) + eta, then u_P (...) + eta_P on top;
 *   gamma after P:  fl(gamma round_P(p));  gamma on the output: round_P(p).
 *   A p that is certainly 0 costs nothing. No u_P when P's format holds the step's.
 * P*V.    T = sum (operand + dp')|v|. Partials of `split` keys: e of the longest, eta each; their m - 1
 *   additions cost (m - 1) u of the partials' magnitudes. Exact zeros add without error, so only live keys
 *   count (whole blocks of them on a tensor core).
 * Output. E + u_out (|o| + E) + eta_out, after gamma's product where that comes last.
 *
 * Range: where an intermediate's magnitude plus its error can reach what rounds to infinity in its format,
 * there is no limit (class RANGE): +inf.
 *
 * The reference's own error, v = 2^-53, joins stage by stage, because the intervals start from its values:
 * (d + 4) v |scale| A for the score, (K + 6) v for the FIR, (n + 2) v sum G p|v| for the sum; one or two v of each
 * also pay for forming s +- ds and z +- dz in double. The limit's own sums are off by n 2^-53 relative, paid
 * by 1 + 2^-30 for up to 2^20 terms. */
#include <math.h>

#include "asynct_attention/asynct_attention.h"
#include "asynct_attention/declared.h"

static const double v = 0x1p-53;

static double eta_of(enum at_format format) {
    /* half the smallest subnormal of f64 is no double: take the whole one */
    return format == AT_F64 ? 0x1p-1074 : at_format_info(format)->eta;
}

/* A value of `from` rounded to `to`: nothing when it fits. */
static void rounding(enum at_format from, enum at_format to, double *u, double *eta) {
    const struct at_format_info *a = at_format_info(from), *b = at_format_info(to);
    int fits = a->precision <= b->precision && a->emax <= b->emax && a->emin >= b->emin;
    *u = fits ? 0 : b->u;
    *eta = fits ? 0 : eta_of(to);
}

/* Scaling q: once to f32 (or f64), and back to its type when declared so. */
static void derive_q(const struct at_problem *problem, const struct at_numerics *numerics,
                     struct at_asynct_limit *out) {
    enum at_format wide = numerics->qk_unit == AT_UNIT_F64 ? AT_F64 : AT_F32;
    double u = at_asynct_exact_factor((double)problem->params.scale) ? 0 : at_format_info(wide)->u;
    double u_back = 0, eta_back = 0;
    if (numerics->scale_on == AT_SCALE_ON_Q_ROUNDED)
        rounding(wide, problem->dtype, &u_back, &eta_back);
    /* a power of two moves no bits of q: rounding back can only underflow */
    u_back = u == 0 ? 0 : u_back;
    out->u_q = u + u_back * (1 + u);
    out->eta_q = eta_of(wide) * (1 + u_back) + eta_back;
}

static double derive_fir(const struct at_problem *problem, const struct at_numerics *numerics, double u) {
    const int scaled = numerics->scale_on == AT_SCALE_ON_TAPS && !at_asynct_exact_factor((double)problem->params.scale);
    const double taps = (double)(problem->sizes.taps + scaled);
    if (problem->params.fir_form == AT_FIR_TAPS)
        return taps * u;
    double tap_error = 2 * (numerics->fir_order == AT_FIR_ORDER_TAPS ? at_format_info(AT_F32)->u : u);
    double sum = tap_error + taps * u;
    return sum * (1 + sum);
}

at_status at_asynct_limit_init(const struct at_problem *problem, const struct at_numerics *numerics,
                               struct at_asynct_limit *out) {
    *out = (struct at_asynct_limit){ .d = problem->sizes.d, .pv_share = 1 };
    double *ends[] = { &out->q_end,  &out->qk_end,  &out->step_end, &out->p_end,
                       &out->pv_end, &out->sum_end, &out->out_end };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        *ends[i] = (double)INFINITY;
    if (!numerics)
        return AT_OK;
    struct at_asynct_formats formats;
    AT_TRY(at_asynct_declared(problem, numerics, &formats));
    const enum at_format p = (enum at_format)numerics->p, dtype = problem->dtype;
    out->declared = 1;
    out->split = numerics->split;
    out->spread = at_asynct_spread(problem, numerics);
    out->splits = numerics->splits;
    out->scale_on = numerics->scale_on;
    out->gamma_on = numerics->gamma_on;
    out->multiplies_zeros = numerics->pv_zero == AT_PV_ZERO_MULTIPLIED;
    out->qk = at_order_qk(numerics);
    out->qk.input = dtype;
    out->pv = at_order_pv(numerics);
    derive_q(problem, numerics, out);
    out->e_qk = at_accumulate_error(&out->qk, out->d).e;
    double unused;
    rounding(at_unit_format(out->qk.unit), formats.step, &out->u_store, &unused);
    out->u_step = at_format_info(formats.step)->u;
    out->eta_step = eta_of(formats.step);
    out->u_scale = at_asynct_exact_factor((double)problem->params.scale) ? 0 : out->u_step;
    out->on_taps = numerics->scale_on == AT_SCALE_ON_TAPS;
    out->fir = derive_fir(problem, numerics, out->u_step);
    rounding(formats.step, p, &out->u_p, &out->eta_p);
    out->u_split = at_format_info(formats.sum)->u;
    rounding(formats.sum, dtype, &out->u_out, &out->eta_out);
    out->q_end = at_format_info(formats.q)->end;
    out->qk_end = at_format_info(at_unit_format(out->qk.unit))->end;
    out->step_end = at_format_info(formats.step)->end;
    out->p_end = at_format_info(p)->end;
    out->pv_end = at_format_info(at_unit_format(out->pv.unit))->end;
    out->sum_end = at_format_info(formats.sum)->end;
    out->out_end = at_format_info(dtype)->end;
    return AT_OK;
}

/* ds of key t; eta: underflow of the accumulator. */
static double score_error(const struct at_asynct_limit *limit, double scale, const struct at_asynct_scores *scores,
                          int64_t t, double eta) {
    const double abs = scores->abs[t], own = (double)(limit->d + 4) * v * scale * abs;
    const double x = fabs(scores->dot[t]), s = scale * x;
    if (!limit->declared)
        return own;
    const int on_q = limit->scale_on == AT_SCALE_ON_Q || limit->scale_on == AT_SCALE_ON_Q_ROUNDED;
    const double factor = on_q ? 1 : scale; /* still to be applied to the sum */
    double terms = abs, dx = 0;
    if (on_q) {
        dx = limit->u_q * scale * abs + limit->eta_q * scores->k_abs[t];
        terms = scale * abs + dx;
    }
    int in_range = terms * (1 + limit->e_qk) + eta < limit->qk_end;
    dx += limit->e_qk * terms + eta;
    if (limit->u_store > 0)
        dx += limit->u_store * ((on_q ? s : x) + dx) + limit->eta_step;
    double ds = factor * dx;
    if (limit->on_taps)
        in_range &= x + dx < limit->step_end;
    else if (!on_q)
        ds += limit->u_scale * (s + ds) + limit->eta_step;
    in_range &= s + ds < limit->step_end;
    return in_range ? ds + own : (double)INFINITY;
}

static double positive(double x) { return x > 0 ? x : 0; }

/* dr: how far r can be when the score is within ds of s. */
static double relu_error(const struct at_asynct_head *head, double s, double ds) {
    if (!head->relu_pre || !isfinite(ds))
        return ds;
    return fmax(positive(s + ds) - positive(s), positive(s) - positive(s - ds));
}

/* dz at key t; dr[0 .. t] are the errors of r. */
static double fir_error(const struct at_asynct_limit *limit, const struct at_asynct_head *head, const double *s,
                        const double *dr, int64_t t) {
    const int shrunk = head->shrink && t + 1 < head->taps;
    const double share = fabs(head->sigma) / (shrunk ? (double)(t + 1) : (double)head->taps);
    double carried = 0, size = 0, plain = 0, largest = 0;
    for (int j = 0; j < head->taps && j <= t; j++) {
        double w = fabs(head->tap[j]), wbar = w;
        if (head->pooled) {
            w = j == 0 ? fabs(1 - copysign(share, head->sigma)) : share;
            wbar = share + (j == 0);
        }
        double r = fabs(at_asynct_relu(head, s[t - j])) + dr[t - j];
        largest = fmax(largest, wbar);
        carried += w * dr[t - j];
        size += wbar * r;
        plain += r;
    }
    if (plain == 0) /* a window of certain zeros */
        return 0;
    double underflow = limit->eta_step * (head->taps + (head->pooled ? 1 + plain : 0));
    double dz = carried + (limit->fir + (head->taps + 6) * v) * size + underflow;
    int in_range = size * (1 + limit->fir) < limit->step_end;
    if (limit->on_taps &&
        head->scale != 0) { /* the scaled taps: what they lose by underflow multiplies unscaled scores */
        dz += limit->eta_step * plain / fabs(head->scale);
        in_range &= largest * fabs(head->scale) * (1 + limit->fir) < limit->step_end;
    }
    return in_range ? dz : (double)INFINITY;
}

/* dp' from dp. */
static double operand_error(const struct at_asynct_limit *limit, const struct at_asynct_head *head, double p,
                            double dp) {
    const double gamma = fabs(head->gamma), most = fabs(p) + dp;
    const double u = at_asynct_exact_factor(gamma) ? 0 : limit->u_step;
    const double eta = gamma == 1 ? 0 : limit->eta_step;
    if (most == 0)
        return 0;
    if (!limit->declared)
        return gamma * dp;
    /* the two roundings in their order: `size` bounds the value so far, `error` its distance */
    double error = dp, size = most;
    int in_range = 1;
    if (limit->gamma_on == AT_GAMMA_ON_P) {
        error = gamma * error + u * gamma * size + eta;
        size = gamma * size * (1 + u) + eta;
        in_range &= size < limit->step_end;
    }
    error += limit->u_p * size + limit->eta_p;
    in_range &= size < limit->p_end;
    size = size * (1 + limit->u_p) + limit->eta_p;
    if (limit->gamma_on == AT_GAMMA_AFTER_P) {
        error = gamma * error + u * gamma * size + eta;
        in_range &= gamma * size * (1 + u) < limit->step_end;
    }
    return in_range ? error : (double)INFINITY;
}

void at_asynct_limit_row(const struct at_asynct_limit *limit, const struct at_asynct_head *head,
                         const struct at_asynct_scores *scores, const double *s, const double *z, double *dp) {
    const double scale = fabs(head->scale);
    double largest = scores->q_max, eta = 0;
    if (limit->declared) {
        if (limit->scale_on == AT_SCALE_ON_Q || limit->scale_on == AT_SCALE_ON_Q_ROUNDED)
            largest = scale * largest * (1 + limit->u_q) + limit->eta_q;
        int in_range = largest < limit->q_end;
        eta = in_range ? at_accumulate_error_within(&limit->qk, limit->d, fmax(largest, scores->k_max)).eta
                       : (double)INFINITY;
    }
    for (int64_t t = 0; t < scores->n; t++)
        dp[t] = relu_error(head, s[t], score_error(limit, scale, scores, t, eta));
    /* downwards, so that the errors of earlier scores are still there */
    for (int64_t t = scores->n - 1; t >= 0; t--) {
        double dz = fir_error(limit, head, s, dp, t), p = at_asynct_clamp(head, z[t]);
        double up = at_asynct_clamp(head, z[t] + dz) - p, down = p - at_asynct_clamp(head, z[t] - dz);
        dp[t] = isfinite(dz) ? operand_error(limit, head, p, fmax(up, down)) : dz;
    }
}

/* E before the rounding of the output; sets *in_range to 0 where a sum can reach infinity. */
static double sum_error(const struct at_asynct_limit *limit, const struct at_asynct_head *head,
                        const struct at_asynct_sum *sum, int *in_range) {
    const double gamma = fabs(head->gamma);
    const int on_output = limit->gamma_on == AT_GAMMA_ON_OUTPUT;
    const double terms = (on_output ? 1 : gamma) * sum->abs_pv + sum->err_pv;
    const int64_t range = at_partial_keys(limit->split, limit->splits, sum->n),
                  length = range > 0 && range < sum->n ? range : sum->n;
    const int64_t parts = length > 0 ? (sum->n + length - 1) / length : 0;
    const int64_t live = sum->live * at_order_chunk(&limit->pv);
    const int64_t steps = limit->spread ? (length + limit->spread - 1) / limit->spread * limit->spread : length;
    const struct at_sum_error pv = at_accumulate_error_within(&limit->pv, live < steps ? live : steps,
                                                              fmax(fmax(1, gamma) * sum->p_max, sum->v_max));
    const double m = (double)(parts < sum->live ? parts : sum->live);
    double error = sum->err_pv + limit->pv_share * pv.e * terms + m * pv.eta;
    double size = terms * (1 + pv.e) + m * pv.eta;
    *in_range = size < limit->pv_end;
    if (m > 1)
        error += limit->u_split * (m - 1) * size;
    *in_range &= size * (1 + limit->u_split * m) < limit->sum_end;
    if (on_output) {
        double u = at_asynct_exact_factor(gamma) ? 0 : limit->u_split;
        error *= gamma;
        error += u * (fabs(sum->o) + error) + (gamma == 1 ? 0 : limit->eta_step);
        *in_range &= fabs(sum->o) + error < limit->sum_end;
    }
    return error;
}

double at_asynct_limit_out(const struct at_asynct_limit *limit, const struct at_asynct_head *head,
                           const struct at_asynct_sum *sum) {
    const double own = (double)(sum->n + 2) * v * fabs(head->gamma) * sum->abs_pv;
    double error = sum->err_pv;
    int in_range = 1;
    if (limit->declared && (sum->live > 0 || !isfinite(error))) {
        error = sum_error(limit, head, sum, &in_range);
        in_range &= fabs(sum->o) + error < limit->out_end;
        error += limit->u_out * (fabs(sum->o) + error) + limit->eta_out;
    }
    /* a V that is rounded to infinity makes NaN of a p of 0, too */
    if (limit->declared && limit->pv.unit == AT_UNIT_TC_TF32_RNA)
        in_range &= sum->v_max < at_format_info(AT_TF32)->end;
    error = (error + own) * (1 + 0x1p-30);
    return in_range && isfinite(error) && isfinite(sum->o) ? error : (double)INFINITY;
}
