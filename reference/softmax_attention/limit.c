/* How far a softmax attention kernel with declared numerics can be from the exact result.
 * SPDX-License-Identifier: Apache-2.0
 *
 * u: unit roundoff of the softmax arithmetic (f32, or f64 when both units are); m, s, p, L = sum exp(s - m): what
 * the reference found. A hat marks the kernel's numbers.
 *
 * 1. Scores. |shat_t - s_t| <= d_t, with T = sum |q||k|, B = sum |k|:
 *      on the score: |acc - dot| <= e_qk T + eta_qk, then one rounding of scale * acc:
 *         d = |scale|(e_qk T + eta_qk) + u_score (|s| + |scale|(e_qk T + eta_qk)) + eta_score
 *      on q: each q' = q scale (1 + u_q) + eta_q, so with T' = |scale| T (1 + u_q) + eta_q B
 *         d = u_q |scale| T + eta_q B + e_qk T' + eta_qk (+ u_score |shat| when an f64 sum is stored as f32)
 *    and the reference's own: d 2^-53 T |scale| + 2^-53 |s|. Scores that are more than a product, x = scale q.k off by d:
 *      softcap: y = x / cap is off by delta = d / cap + u_capped (|y| + d / cap) + eta_capped (1 + |q.k|): scale / cap, its
 *         product (or score, 1 / cap, and theirs: 3u). tanh' is (1 - tanh^2) <= sech(|y| - delta)^2 on the way:
 *         e = min(delta sech(max(0, |y| - delta))^2, 2), then the function's own u_tanh (|tanh y| + e) + tanh_floor, and
 *         d = cap e + u_bias cap (|tanh y| + e). tanh.approx: 134 units in the last place, 268u. By E = ex2(y 2 log2(e)):
 *         E is off by (2.44 |y| + 2.45) u, of which tanh has sech^2 / 2, at most 1.77u; 1 + E and rcp u + 1.65u of
 *         2 / (1 + E) <= 2; together 7.07u of 1, whatever tanh is, and u |tanh y| by the fma. +-inf gives +-1 exactly.
 *      bias b = slope (t - place): d + u_bias |b| + u_bias (|s| + d), with fma the second alone.
 *    D = max d_t bounds |Mhat - m|, Mhat the kernel's maximum.
 * 2. Weights. The kernel's weight of key t, brought to its final maximum through R rescalings, is
 *      what_t = exp(shat_t - Mhat + a_t)(1 + x)^(1+R) = C p_t e^(y_t),   |y_t| <= d_t + a_t + (1 + R) eps
 *    with one C = L e^(m - Mhat) for all keys: the error of the maximum cancels (a factor 2 on d_t is not needed).
 *    a_t: shat - m_j is rounded, and so is every m_j - m_{j+1} of a rescaling; the maxima ascend, so the roundings
 *    telescope: u_argument (|s_t - m| + d_t + D), whatever the blocks. u_argument = u. For ex2, with c = log2(e) as f32,
 *    0.22u off: (s - m) c rounds the difference and the product, 2.22u. fma(s, b, -f32(m b)) with b = scale c, rounded
 *    once more, 1.22u off: weights have 2.22u of |s - m_j| and, common to a block, u |m_j| <= u |m| + u |m - m_j|;
 *    factors, f32(m_j - m_{j+1}) b, have 3.22u: 4.22u |s - m| and u_shift |m| in all, where there are several blocks;
 *    where there is one, its shift u |m| cancels in o and stays in lse (u_max).
 *    eps = -log(1 - u_exp), u_exp = 2u for exp within one ulp, 2.45u for ex2.approx as measured; a weight's own
 *    exponential has u_weight in its place, which a polynomial makes larger (weights and factors: 1 and R of them).
 *    A rescaling factor is used for sum and accumulator alike, so its error belongs here. Underflow of exponential and
 *    factors: absolute errors (1 + R) flush, and eta_sum for each rescaling of the sum.
 *    Hence what = C p (1 + eta), |eta| <= h_t = expm1(d_t + a_t + eps_weight + R eps). H = sum p h.
 * 3. o with exact P V and sum. sum p (1+eta) v / sum p (1+eta) - o = sum p eta (v - o) / (1 + sum p eta):
 *      move = sum p h |v - o| / (1 - H), never more than max |v - o|, which is all there is when H >= 1.
 *    What = sum what >= least = max(exp of the largest key's own error, L e^-(max y + D)); flushes: flush sum |v - o| /
 * least. A = sum what |v| / What <= min(sum p (1+h)|v| / (1 - H), max |v|).
 * 4. P rounded hits the numerator only: u_p A + eta_p sum|v| / least.
 * 5. P V. Blocks chain through c: prod (1 + e_pv(block)), each rescaling (1 + u_rescale), and eta_factor of what the sum may
 * be where the factor is rounded to f16 for it; partial results: a product
 * and an addition each in f32, (1 + u_merge)^parts. e = their product - 1, on A + the error of 4. Underflow: etas /
 * least.
 * 6. The sum, in any order: no weight goes through more than n_s - 1 additions in its split, parts - 1 after it, and R
 *    products, and weights are not negative: e_sum = (1 + u)^(n_s + parts - 2 + R) - 1. |N / (W (1 + theta)) - o| <= (E
 * + |o| e_sum) / (1 - e_sum).
 * 7. Division u (2.65u for a product with rcp.approx, 2u with a rounded reciprocal, u_f16 + u with one of f16, and
 * eta_f16 What where that is subnormal), storing, rounding to the output's format.
 * 8. lse = Mhat + log(lhat): |log sum p e^y| <= log(1 + H) (above by definition of h; below by Jensen), at most max y;
 *    -log(1 - e_sum); the logarithm u_log |log lhat| + log_floor (lg2.approx times log(2): 4.91u, and 2^-22.67 near 1), the
 *    addition u_add.
 * The reference's own roundings: exp, sums and quotient in double, 2^-53 each, enter h and E. The evaluation of these
 * formulas is rounded too: the last factor (1 + 2^-30) covers rows of up to 2^20 keys.
 * Range: where a dot product, score (folded: from 2^29 on), accumulator or output may reach the magnitude that rounds to
 * infinity there is no limit. Relative to a running maximum every weight is at most 1 (but for its own error, `tallest`),
 * so an online or split accumulator is at most sum |v|. */
#include <math.h>

#include "softmax_attention/internal.h"

#define U64 0x1p-53
static const double evaluation = 1 + 0x1p-30;

/* How a row is cut. */
struct cut {
    double keys;     /* of the longest split */
    double parts;    /* splits */
    double blocks;   /* of the longest split */
    double rescales; /* R: rescalings a key's weight can go through */
};

static struct cut cut_row(const struct at_softmax_limit *limit, int64_t n) {
    const int64_t range = at_partial_keys(limit->split, limit->splits, n);
    int64_t keys = range && range < n ? range : n;
    int64_t parts = range ? (n + range - 1) / range : 1;
    int64_t blocks = limit->block ? (keys + limit->block - 1) / limit->block : 1;
    return (struct cut){ (double)keys, (double)parts, (double)blocks, (double)(blocks - 1 + (parts > 1)) };
}

/* |shat_t - s_t| of the kernel where the score s is scale q.k; *range turns 0 where a sum may overflow. */
static double scaled_error(const struct at_softmax_limit *limit, const struct at_softmax_scores *scores, int64_t t,
                           double s, double eta_qk, int *range) {
    const double scale = fabs(limit->scale), sum = scores->abs[t];
    double d, product = sum;
    if (limit->scale_on == AT_SCALE_ON_SCORE) {
        d = scale * (limit->e_qk * sum + eta_qk);
    } else {
        double q = limit->u_q * scale * sum + limit->eta_q * scores->k_abs[t];
        product = scale * sum + q;
        d = q + limit->e_qk * product + eta_qk;
    }
    d += limit->u_score * (fabs(s) + d) + limit->eta_score;
    *range &= product * (1 + limit->e_qk) + eta_qk < limit->qk_end;
    return d;
}

/* What an error d of x = scale q.k becomes behind the softcap. */
static double capped_error(const struct at_softmax_limit *limit, double cap, double dot, double x, double d) {
    const double y = fabs(x) / cap, top = tanh(y);
    if (!isfinite(y))
        return 0;
    const double delta =
        d / cap + limit->u_capped * (y + d / cap) + (limit->declared ? limit->eta_capped * (1 + fabs(dot)) : 0);
    const double sech = 1 / cosh(fmax(0, y - delta));
    double e = fmin(delta * sech * sech * (1 + 16 * U64), 2);
    e += limit->u_tanh * (top + e) + limit->tanh_floor;
    return cap * e + limit->u_bias * cap * (top + e) + 8 * U64 * cap * top;
}

static double biased_error(const struct at_softmax_limit *limit, double bias, double s, double d) {
    return d + limit->u_bias * (fabs(bias) + fabs(s) + d) + 4 * U64 * (fabs(bias) + fabs(s));
}

/* The same of any score; the reference's own error included. */
static double score_error(const struct at_softmax_limit *limit, const struct at_softmax_scores *scores, int64_t t,
                          double s, double eta_qk, int *range) {
    const struct at_softmax_form *form = scores->form;
    const double dot = scores->dot[t], x = at_softmax_plain(form) ? s : form->scale * dot;
    double d = 0;
    if (isfinite(x)) {
        d = limit->declared ? scaled_error(limit, scores, t, x, eta_qk, range) : 0;
        d += U64 * ((double)limit->d * fabs(limit->scale) * scores->abs[t] + fabs(x));
    }
    if (form->cap > 0)
        d = capped_error(limit, form->cap, dot, x, d);
    if (form->slope > 0 || form->slope < 0)
        d = biased_error(limit, form->slope * ((double)t - form->place), s, d);
    *range &= !limit->declared || fabs(s) + d < limit->score_end;
    return d;
}

/* All d_t into h, and D. */
static void score_errors(const struct at_softmax_limit *limit, const struct at_softmax_scores *scores, const double *s,
                         struct at_softmax_row *row, double *h) {
    double eta = 0;
    if (limit->declared) {
        const double scaled = scores->q_max * fmax(1, fabs(limit->scale)) * (1 + limit->u_q) + limit->eta_q;
        double largest = fmax(scaled, scores->k_max);
        eta = at_accumulate_error_within(&limit->qk, limit->d, largest).eta;
        if (limit->scale_on != AT_SCALE_ON_SCORE)
            row->in_range &= scores->q_max * fabs(limit->scale) * (1 + limit->u_q) < limit->q_end;
    }
    for (int64_t t = 0; t < scores->n; t++) {
        h[t] = 0;
        if (!isfinite(s[t])) { /* made by inputs that are not finite, hence the same in the kernel, */
            row->in_range &= !(limit->declared && at_unit_is_tf32(limit->qk.unit)); /* which may have one factor as 0 */
            continue;
        }
        h[t] = score_error(limit, scores, t, s[t], eta, &row->in_range);
        row->drift = h[t] > row->drift ? h[t] : row->drift;
    }
}

void at_softmax_limit_row(const struct at_softmax_limit *limit, const struct at_softmax_scores *scores, const double *s,
                          const double *p, struct at_softmax_row *row, double *h) {
    const struct cut cut = cut_row(limit, scores->n);
    const double exps = cut.rescales * -log1p(-limit->u_exp) - log1p(-limit->u_weight);
    row->in_range = 1;
    row->spread = row->worst = row->drift = 0;
    score_errors(limit, scores, s, row, h);
    const double shift = limit->u_shift * (fabs(row->max) + row->drift) + exps;
    for (int64_t t = 0; t < scores->n; t++) {
        if (!isfinite(s[t]))
            continue;
        double distance = fabs(s[t] - row->max);
        double y = h[t] + limit->u_argument * (distance + h[t] + row->drift) + shift + U64 * (distance + 4);
        row->worst = y > row->worst ? y : row->worst;
        h[t] = expm1(y);
        if (p[t] != 0)
            row->spread += p[t] * h[t];
    }
    row->tallest = exp(shift);
    row->least = fmax(exp(-shift), row->sum * exp(-row->worst - row->drift)) / evaluation;
    row->most = row->sum * exp(row->worst + row->drift) * evaluation;
    row->flush = (1 + cut.rescales) * limit->flush;
    row->flush_sum = (double)scores->n * row->flush + cut.rescales * limit->eta_sum;
    row->e_sum = expm1((cut.keys + cut.parts - 2 + cut.rescales) * limit->u_sum);
}

/* e and eta of the whole P V sum, by blocks and splits; its magnitude is at most `size`. */
static struct at_sum_error pv_error(const struct at_softmax_limit *limit, int64_t n, double v_largest, double size) {
    const struct cut cut = cut_row(limit, n);
    const double block = limit->block && (double)limit->block < cut.keys ? (double)limit->block : cut.keys;
    const double tail = cut.keys - (cut.blocks - 1) * block, largest = fmax(1, v_largest);
    struct at_sum_error full = at_accumulate_error_within(&limit->pv, (int64_t)block, largest);
    struct at_sum_error last = at_accumulate_error_within(&limit->pv, (int64_t)tail, largest);
    double e = (cut.blocks - 1) * log1p(limit->pv_share * full.e) + log1p(limit->pv_share * last.e);
    e += (cut.blocks - 1) * (limit->u_rescale + limit->eta_factor);
    const double factors = limit->eta_factor * size * exp(e);
    double eta = (cut.blocks - 1) * (full.eta + limit->eta_rescale + factors) + last.eta;
    if (cut.parts > 1) {
        e += cut.parts * limit->u_merge;
        eta = cut.parts * (eta + limit->eta_merge);
    }
    e = expm1(e);
    return (struct at_sum_error){ .e = e, .eta = eta * (1 + e) };
}

/* The numerator over the exact sum of the kernel's weights: steps 3 to 5. */
static double numerator_error(const struct at_softmax_limit *limit, const struct at_softmax_row *row,
                              const struct at_softmax_sums *sums, double v_largest) {
    const double share = row->spread < 1 ? 1 / (1 - row->spread) : INFINITY;
    const double move = row->spread < 1 ? fmin(sums->spread * share, sums->off) : sums->off;
    const double abs = row->spread < 1 ? fmin(sums->abs * share, sums->v_max) : sums->v_max;
    const double n = (double)row->n;
    double flush = row->flush * (sums->all + n * fabs(sums->o)) / row->least;
    double own = (2 * n + 8) * U64 * abs;
    if (!limit->declared)
        return move + own;
    double p = limit->u_p * abs + limit->eta_p * sums->all / row->least;
    /* Magnitudes the accumulator can pass through. */
    double peak = sums->all * row->tallest * (1 + limit->u_p) + limit->eta_p * sums->all;
    const struct at_sum_error pv = pv_error(limit, row->n, v_largest, peak);
    if (!limit->block && !limit->split)
        peak = fmin(peak, row->most * abs * (1 + limit->u_p) + limit->eta_p * sums->all);
    if (!(peak * (1 + pv.e) + pv.eta < limit->pv_end))
        return INFINITY;
    double error = move + flush + p + pv.e * (abs + p) + pv.eta / row->least + own;
    return error + limit->u_store * (fabs(sums->o) + error);
}

/* What an output has where it is no number: the class is the kernel's too, but where tf32 may have had a factor of an infinity as 0,
 * or a number as infinity. */
static double without_number(const struct at_softmax_limit *limit, const struct at_softmax_row *row) {
    const int kept = !limit->declared || row->n == 0 ||
                     ((row->in_range || !at_unit_is_tf32(limit->qk.unit)) && !at_unit_is_tf32(limit->pv.unit));
    return kept ? 0 : (double)INFINITY;
}

double at_softmax_limit_o(const struct at_softmax_limit *limit, const struct at_softmax_row *row,
                          const struct at_softmax_sums *sums, double v_largest) {
    const double o = fabs(sums->o);
    if (row->n == 0 || !isfinite(o))
        return without_number(limit, row);
    if (!row->in_range || !(row->e_sum < 1))
        return INFINITY;
    double error = numerator_error(limit, row, sums, v_largest);
    error = (error + o * row->e_sum) / (1 - row->e_sum);
    const double most = row->most * (1 + row->e_sum) + row->flush_sum,
                 reciprocal = limit->eta_reciprocal > 0 ? limit->eta_reciprocal * most : 0;
    error += (limit->u_divide + reciprocal) * (o + error) + limit->eta_divide;
    error += limit->u_out * (o + error) + limit->eta_out;
    error *= evaluation;
    return error >= 0 && o + error < limit->out_end ? error : INFINITY;
}

double at_softmax_limit_lse(const struct at_softmax_limit *limit, const struct at_softmax_row *row) {
    if (row->n == 0 || !isfinite(row->lse))
        return without_number(limit, row);
    const double flush = row->flush_sum / row->least, log_sum = fabs(row->lse - row->max);
    if (!row->in_range || !(row->e_sum + flush < 1))
        return INFINITY;
    double error = fmin(row->worst, log1p(row->spread)) - log1p(-row->e_sum) - log1p(-flush);
    error += limit->u_log * (log_sum + row->drift + error) + limit->log_floor;
    error += limit->u_max * (fabs(row->max) + row->drift);
    error += limit->u_add * (fabs(row->lse) + error);
    error += limit->u_lse * (fabs(row->lse) + error);
    error += U64 * (4 * (fabs(row->max) + log_sum + 1) + (double)row->n);
    return error * evaluation;
}
