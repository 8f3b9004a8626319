/* Softmax attention made wrong on purpose, exactly: what the comparison must be able to reject.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   last_key_dropped       keys 0 .. n-2 only (no key left: o = 0, lse = -inf)
 *   hidden_key_added       keys 0 .. n, where the request has a key n that the mask hides
 *   no_scale               scale 1
 *   v_swapped              weight 2i meets V row 2i+1 and the other way round; a last odd key keeps its own
 *   lse_base_2             lse / log 2; o is right
 *   split_merge_unweighted the partial results (m_j, l_j, acc_j) of each split are added as they are: o = sum acc_j /
 *                          sum l_j, lse = m + log sum l_j; splits as declared; right when that is 0: a
 *                          kernel that does not split cannot merge wrongly
 *   one_key_sum_missing    the denominator of o and the sum in lse lack the last visible key, where others remain
 *   base_2                 weights 2^(s - m): log2(e) was forgotten where the hardware's 2^x is used; lse = m + log sum 2^(s - m)
 *   rescale_missing        the sums of the blocks before are not multiplied by exp(m - m') when a block raises the maximum;
 *                          blocks of numerics->block keys, in each split; right when that is 0
 *   stale_maximum          weights of a block are relative to the maximum before it, while the sums are rescaled to the
 *                          new one; the first block of a split is right
 *   cap_ignored            no softcap
 *   cap_before_scale       scale cap tanh(q.k / cap)
 *   next_head_bias         the slope of the next head, after the last that of the first
 *   bias_sign              slope (place of the query - key)
 *   bias_of_key            slope t: o is right, lse is not
 *   bias_before_cap        cap tanh((scale q.k + bias) / cap)
 *   (right without a softcap, or a bias)
 *   mask_missing           all keys of the request
 *   mask_top_left          a causal row sees keys 0 .. i of its request's query i, as PyTorch's is_causal has it
 * A maximum that is not subtracted is no decoy: in exact arithmetic it changes nothing. */
#include <math.h>
#include <string.h>

#include "softmax_attention/internal.h"

/* One row: its weights, result and log-sum-exp. */
struct wrong {
    struct at_softmax_work *work;
    int64_t n;
    struct at_softmax_form form;
    double *o, lse;
};

static void right(struct wrong *w) {
    struct at_softmax_row row;
    at_softmax_weights(w->n, &w->form, w->work->dot, w->work->s, w->work->p, &row);
    at_softmax_mix(w->work, w->n, w->work->p, w->o);
    w->lse = row.lse;
}

static void swap_v(struct wrong *w) {
    double *p = w->work->p;
    right(w);
    for (int64_t t = 0; t + 1 < w->n; t += 2) {
        double first = p[t];
        p[t] = p[t + 1];
        p[t + 1] = first;
    }
    at_softmax_mix(w->work, w->n, p, w->o);
}

static int64_t range_of(const struct wrong *w, const struct at_numerics *numerics) {
    return numerics ? at_partial_keys(numerics->split, numerics->splits, w->n) : 0;
}

/* Weights relative to each split's own maximum, divided by their common sum. */
static void merge_unweighted(struct wrong *w, int64_t split) {
    double *p = w->work->p, sum = 0, max = -INFINITY;
    if (split == 0 || split >= w->n) {
        right(w);
        return;
    }
    for (int64_t t = 0; t < w->n; t += split) {
        struct at_softmax_row part;
        int64_t n = t + split < w->n ? split : w->n - t;
        struct at_softmax_form form = w->form;
        form.place -= (double)t;
        at_softmax_weights(n, &form, w->work->dot + t, w->work->s + t, p + t, &part);
        max = part.max > max || isnan(part.max) ? part.max : max;
        sum += part.sum;
        for (int64_t i = t; i < t + n; i++)
            p[i] *= part.sum;
    }
    for (int64_t t = 0; t < w->n; t++)
        p[t] /= sum;
    at_softmax_mix(w->work, w->n, p, w->o);
    w->lse = max + log(sum);
}

/* Weights e_t relative to the row's maximum, not yet divided by their sum: what is left of o and lse. */
static void finish(struct wrong *w, double max) {
    double *p = w->work->p, sum = 0;
    for (int64_t t = 0; t < w->n; t++)
        sum += p[t];
    for (int64_t t = 0; t < w->n; t++)
        p[t] /= sum;
    at_softmax_mix(w->work, w->n, p, w->o);
    w->lse = max + log(sum);
}

static double base_of(double max) { return max > -INFINITY ? max : 0; }

static void powers_of_2(struct wrong *w) {
    struct at_softmax_row row;
    at_softmax_weights(w->n, &w->form, w->work->dot, w->work->s, w->work->p, &row);
    for (int64_t t = 0; t < w->n; t++)
        w->work->p[t] = exp2(w->work->s[t] - base_of(row.max));
    finish(w, row.max);
}

/* A block at [first, end) raises the maximum of its split, which began at `begin`, from `old` to `now`: by how much the
 * exponents of weights become too large, its own or those of the keys before. */
static void raise_maximum(struct wrong *w, int decoy, int64_t begin, int64_t first, int64_t end, double old,
                          double now) {
    const int own = decoy == AT_SOFTMAX_STALE_MAXIMUM;
    for (int64_t t = own ? first : begin; t < (own ? end : first); t++)
        w->work->h[t] += old > -INFINITY ? now - old : 0;
}

/* The online softmax with a fault at every rise of the maximum. */
static void go_wrong_online(struct wrong *w, int decoy, const struct at_numerics *numerics) {
    const int64_t range = range_of(w, numerics), split = range ? range : w->n;
    const int64_t block = numerics && numerics->block ? numerics->block : split;
    const double *s = w->work->s;
    struct at_softmax_row row;
    at_softmax_weights(w->n, &w->form, w->work->dot, w->work->s, w->work->p, &row);
    for (int64_t t = 0; t < w->n; t++)
        w->work->h[t] = 0;
    for (int64_t begin = 0; begin < w->n; begin += split) {
        const int64_t stop = begin + split < w->n ? begin + split : w->n;
        double max = -INFINITY;
        for (int64_t first = begin; first < stop; first += block) {
            const int64_t end = first + block < stop ? first + block : stop;
            const double old = max;
            for (int64_t t = first; t < end; t++)
                max = s[t] > max ? s[t] : max;
            raise_maximum(w, decoy, begin, first, end, old, max);
        }
    }
    for (int64_t t = 0; t < w->n; t++)
        w->work->p[t] = exp(s[t] - base_of(row.max) + w->work->h[t]);
    finish(w, row.max);
}

static void lose_key_of_sum(struct wrong *w) {
    right(w);
    double rest = 0;
    for (int64_t t = 0; t + 1 < w->n; t++)
        rest += w->work->p[t];
    if (!(rest > 0))
        return;
    for (int64_t c = 0; c < w->work->d; c++)
        w->o[c] /= rest;
    w->lse += log(rest);
}

static void go_wrong(struct wrong *w, int decoy, const struct at_numerics *numerics) {
    switch ((enum at_softmax_decoy)decoy) {
    case AT_SOFTMAX_V_SWAPPED:
        swap_v(w);
        return;
    case AT_SOFTMAX_SPLIT_MERGE_UNWEIGHTED:
        merge_unweighted(w, range_of(w, numerics));
        return;
    case AT_SOFTMAX_ONE_KEY_SUM_MISSING:
        lose_key_of_sum(w);
        return;
    case AT_SOFTMAX_BASE_2:
        powers_of_2(w);
        return;
    case AT_SOFTMAX_RESCALE_MISSING:
    case AT_SOFTMAX_STALE_MAXIMUM:
        go_wrong_online(w, decoy, numerics);
        return;
    case AT_SOFTMAX_LSE_BASE_2:
        right(w);
        w->lse /= log(2.0);
        return;
    case AT_SOFTMAX_LAST_KEY_DROPPED: /* these are made before: by n and the form of scores */
    case AT_SOFTMAX_HIDDEN_KEY_ADDED:
    case AT_SOFTMAX_NO_SCALE:
    case AT_SOFTMAX_CAP_IGNORED:
    case AT_SOFTMAX_CAP_BEFORE_SCALE:
    case AT_SOFTMAX_NEXT_HEAD_BIAS:
    case AT_SOFTMAX_BIAS_SIGN:
    case AT_SOFTMAX_BIAS_OF_KEY:
    case AT_SOFTMAX_BIAS_BEFORE_CAP:
    case AT_SOFTMAX_MASK_MISSING:
    case AT_SOFTMAX_MASK_TOP_LEFT:
    case AT_SOFTMAX_DECOYS:
        right(w);
    }
}

/* What comes of products before scale and bias, or cap, have their turn: the products become it. */
static void take_early(struct wrong *w, int decoy) {
    struct at_softmax_form *form = &w->form, now = *form;
    if (!(form->cap > 0) || (decoy != AT_SOFTMAX_CAP_BEFORE_SCALE && decoy != AT_SOFTMAX_BIAS_BEFORE_CAP))
        return;
    if (decoy == AT_SOFTMAX_CAP_BEFORE_SCALE) {
        now.scale = 1;
        now.slope = form->cap = 0;
    } else {
        now.cap = form->slope = 0;
        form->scale = 1;
    }
    for (int64_t t = 0; t < w->n; t++)
        w->work->dot[t] = at_softmax_score_of(&now, w->work->dot[t], t);
}

static struct at_softmax_form form_of(const struct at_problem *problem, const struct at_attn_row *at, int decoy) {
    struct at_softmax_form form = at_softmax_form(problem, at);
    const struct at_attn_row next = { .request = at->request, .head = (at->head + 1) % problem->sizes.h };
    if (decoy == AT_SOFTMAX_NO_SCALE)
        form.scale = 1;
    if (decoy == AT_SOFTMAX_CAP_IGNORED)
        form.cap = 0;
    if (decoy == AT_SOFTMAX_NEXT_HEAD_BIAS)
        form.slope = at_softmax_form(problem, &next).slope;
    if (decoy == AT_SOFTMAX_BIAS_SIGN)
        form.slope = -form.slope;
    if (decoy == AT_SOFTMAX_BIAS_OF_KEY)
        form.place = 0;
    return form;
}

static int64_t keys_of(const struct at_problem *problem, const struct at_attn_row *at, int decoy) {
    if (decoy == AT_SOFTMAX_LAST_KEY_DROPPED && at->visible > 0)
        return at->visible - 1;
    if (decoy == AT_SOFTMAX_HIDDEN_KEY_ADDED && at->visible < at->keys)
        return at->visible + 1;
    return decoy == AT_SOFTMAX_MASK_MISSING    ? at->keys
           : decoy == AT_SOFTMAX_MASK_TOP_LEFT ? at_attn_visible_top_left(problem, at)
                                               : at->visible;
}

static at_status decoy_row(const struct at_problem *problem, const struct at_numerics *numerics, int decoy,
                           int64_t index, struct at_eval *eval, struct at_softmax_work *work) {
    const struct at_attn_row at = at_attn_row(problem, index);
    struct wrong w = { .work = work, .n = keys_of(problem, &at, decoy) };
    w.form = form_of(problem, &at, decoy);
    AT_TRY(at_softmax_load(problem, &at, w.n, work));
    w.o = work->channel;
    at_softmax_dots(work, w.n);
    take_early(&w, decoy);
    go_wrong(&w, decoy, numerics);
    if (eval->value[AT_SOFTMAX_O])
        memcpy(eval->value[AT_SOFTMAX_O] + index * work->d, w.o, (size_t)work->d * sizeof *w.o);
    if (eval->value[AT_SOFTMAX_LSE])
        eval->value[AT_SOFTMAX_LSE][index] = w.lse;
    return AT_OK;
}

at_status at_softmax_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int decoy,
                           int64_t row0, int64_t row1, struct at_eval *eval) {
    struct at_softmax_work work = { 0 };
    at_status status = AT_OK;
    if (decoy < 0 || decoy >= AT_SOFTMAX_DECOYS)
        return AT_FAIL(AT_USAGE, "softmax_attention has no decoy %d, wanted 0 to %d", decoy, AT_SOFTMAX_DECOYS - 1);
    for (int64_t row = row0; row < row1; row++)
        AT_TRY_OUT(decoy_row(problem, numerics, decoy, row, eval, &work));
out:
    at_softmax_work_release(&work);
    return status;
}
