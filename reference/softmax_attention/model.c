/* Softmax attention in a variant's declared arithmetic: the value its kernel must produce, and how far another
 * correct exponential may take it where the declaration leaves that open.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Softmax arithmetic is f32, one rounding to nearest an operation (f64 when both units are f64). A row, in order:
 *
 *   q'   q, or f32(q scale) with scale_on = q, or that rounded to the input's format with q_rounded
 *   s_t  scale_on = score: f32(acc scale), acc = <q, k_t> in the order of qk; otherwise acc itself, and also with
 *        exp_arg = fma, where the exponential's argument has the scale
 *        softcap: y = f32(acc c), c = f32(scale / cap), f32(1 / cap) where q has the scale; s_t = f32(cap tanh(y)), tanh as
 *        declared. ALiBi: b = t - place of the query; s_t = f32(s_t + f32(slope b)), fir_fma: fma(slope, b, s_t). With
 *        either, scores have their scale also with exp_arg = fma, and the argument's own is 1
 *   The visible keys are cut at multiples of `split` (0: not at all; with `splits`, at multiples of n / splits, rounded up to a
 *   multiple of `split`), a split at multiples of `block` from its start
 *   (0: one block). In each split, from m = -inf, l = 0, acc = 0 (acc in the format of pv_unit's accumulator), per block:
 *     m'   = max(m, its scores); NaN scores do not raise it; when it is -inf, 0 is subtracted in its place
 *     from the second block on: r = exp(m - m'), 1 where the two are equal; l = l r, acc = round(acc r) (acc r exact,
 *            rounded once to acc's format; rescale = f16: with r rounded to f16)
 *     w_t  = exp(s_t - m'): libm: of the rounded difference; ex2 of f32(f32(s_t - m') log2(e)), or with exp_arg = fma of
 *            fma(s_t, b, -f32(m' b)), b = f32(scale log2(e)), r then being ex2(f32(f32(m - m') b)); of each 32 keys of
 *            the split the last ex2_poly3 by the polynomial
 *     l    = l + w_t, w_t as it is before P is rounded; l_lanes = 0: ascending; else key t of the split (from 0) belongs
 *            to lane (t / l_run) % l_lanes, each lane has an l of its own, and the tree joins them after the last block
 *     acc  = acc + sum P_t v_t in the order of pv, P_t = w_t rounded to the format p (f32: not rounded)
 *   Splits merge in ascending order, also when there is one: m = max m_j, a_j = exp(m_j - m) as r, l = sum of l_j a_j,
 *   acc = sum of acc_j a_j (acc_j stored as f32; the first product starts the sum). o = acc / l in the declared way, then
 *   rounded to o's format; lse = m + log(l), m scale + log(l) with exp_arg = fma.
 *
 * With a tanh of libm a score is a range, from which ranges of maxima, weights and factors follow (span.c).
 * With a unit's exponential and logarithm and a declared order of l each result is one value. libm's functions are
 * taken as correctly rounded, and the interval (eval->limit) holds what the same order gives with any others within their
 * declared error (span.c), and with l added up in any order where none is declared: then l is off by at most
 * (1 + u)^(additions + rescalings) - 1; weights that are all 0 or 1 add up exactly in every order. Everything else must
 * agree to the bit. */
#include <math.h>
#include <stdlib.h>

#include "softmax_attention/model.h"

/* The evaluation of a range of rows. */
struct run {
    const struct at_problem *problem;
    const struct at_numerics *numerics;
    struct at_eval *eval;
    struct at_softmax_math math;
    struct at_order qk;
    struct at_softmax_work work;
    struct at_watch watch; /* place: the row's */
    int intervals;
    int64_t room;
    struct at_span *s, *p;       /* [room] scores, weights */
    struct at_span *lane;        /* [l_lanes, at least 1] sums of weights of a split */
    struct at_span *acc, *total; /* [d] of a split, of the row */
};

/* A partial result; its acc is in run->acc or run->total. */
struct partial {
    struct at_span m, l;
    int64_t depth; /* additions and rescalings a weight has gone through */
    int counted;   /* every weight and factor so far was 0 or 1 */
};

static void note(struct run *run, enum at_stage stage, double value) {
    if (run->eval->ledger)
        at_ledger_note(run->eval->ledger, stage, value, &run->watch.place);
}

static void scale_query(struct run *run) {
    const double scale = (double)run->problem->params.scale;
    if (run->numerics->scale_on == AT_SCALE_ON_SCORE)
        return;
    for (int64_t i = 0; i < run->work.d; i++) {
        double q = (double)(float)(run->work.q[i] * scale);
        run->work.q[i] = run->numerics->scale_on == AT_SCALE_ON_Q ? q : at_round(run->problem->dtype, q);
    }
}

/* 1 when the operands of a dot product are finite: what is infinite afterwards was born here. */
static int finite_operands(const struct run *run, int64_t t) {
    for (int64_t i = 0; i < run->work.d; i++)
        if (!isfinite(run->work.q[i]) || !isfinite(run->work.k[t * run->work.d + i]))
            return 0;
    return 1;
}

/* A -inf born in the dot product gives weight 0, and a softcap makes either infinity an ordinary score: the overflow
 * leaves no trace in o. */
static void note_laundered(struct run *run, int64_t t, double dot, double s) {
    struct at_ledger *ledger = run->eval->ledger;
    if (!ledger)
        return;
    ledger->inf_made += isinf(s) && isfinite(dot);
    const int is_lost = (isinf(s) && s < 0) || (isinf(dot) && isfinite(s));
    if (!(is_lost && finite_operands(run, t)))
        return;
    ledger->laundered++;
    if (!ledger->has_laundered || at_place_compare(&run->watch.place, &ledger->first_laundered) < 0)
        ledger->first_laundered = run->watch.place;
    ledger->has_laundered = 1;
}

static void scores(struct run *run, const struct at_softmax_form *form, int64_t n) {
    const double scale = run->numerics->scale_on == AT_SCALE_ON_SCORE ? (double)run->problem->params.scale : 1;
    struct at_softmax_work *work = &run->work;
    run->watch.stage = AT_STAGE_qk_acc;
    for (int64_t t = 0; t < n; t++) {
        run->watch.place.k = t;
        double dot = at_accumulate(&run->qk, work->d, work->q, 1, work->k + t * work->d, 1, 0, &run->watch);
        run->watch.place.step = -1;
        run->s[t] = at_softmax_score(&run->math, form, dot, t);
        note(run, AT_STAGE_score, dot);
        note(run, AT_STAGE_scaled, at_softmax_round(&run->math, dot * scale));
        note_laundered(run, t, dot, run->s[t].mid);
    }
}

static const struct at_span no_maximum = { -INFINITY, -INFINITY, -INFINITY };

static int is_count(struct at_span w) { return w.low == w.high && (w.mid == 0 || w.mid == 1); }

/* Key i of a split. */
static struct at_span *lane_of(const struct run *run, int64_t i) {
    const int lanes = run->numerics->l_lanes;
    return &run->lane[lanes ? i / run->numerics->l_run % lanes : 0];
}

static int lanes_of(const struct run *run) { return run->math.ordered ? run->numerics->l_lanes : 1; }

/* The lanes' sums joined. */
static struct at_span join_lanes(const struct run *run) {
    const int n = lanes_of(run);
    struct at_span *lane = run->lane;
    if (run->numerics->l_tree == AT_TREE_BUTTERFLY)
        for (int half = n / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++)
                lane[i] = at_softmax_add_sum(&run->math, lane[i], lane[i + half]);
    else
        for (int i = 1; i < n; i++)
            lane[0] = at_softmax_add_sum(&run->math, lane[0], lane[i]);
    return lane[0];
}

/* A weight of 0 whose V row is skipped. One that another exponential would not have as 0 is skipped only where
 * multiplying would make a difference to the modelled value. */
static int skipped(const struct run *run, int64_t t) {
    if (run->numerics->pv_zero != AT_PV_ZERO_SKIPPED || run->p[t].mid != 0)
        return 0;
    for (int64_t c = 0; c < run->work.d; c++)
        if (!isfinite(run->work.v[t * run->work.d + c]))
            return 1;
    return run->p[t].high == 0;
}

/* acc += sum of P v over keys [first, end), V rows of zero weight left out when they are skipped. */
static void add_values(struct run *run, int64_t first, int64_t end) {
    const int64_t d = run->work.d;
    run->watch.stage = AT_STAGE_pv_acc;
    while (first < end) {
        int64_t stop = first;
        while (stop < end && !skipped(run, stop))
            stop++;
        run->watch.place.k = first;
        for (int64_t c = 0; c < d && stop > first; c++)
            run->acc[c] = at_softmax_pv(&run->math, stop - first, run->p + first, run->work.v + first * d + c, d,
                                        run->acc[c], run->intervals, &run->watch);
        first = stop + 1;
    }
    run->watch.place.step = -1;
}

static void rescale(struct run *run, struct partial *part, struct at_span now, int64_t key) {
    const struct at_span r = at_softmax_factor(&run->math, part->m, now);
    for (int i = 0; i < lanes_of(run); i++)
        run->lane[i] = at_softmax_scale_sum(&run->math, run->lane[i], r);
    part->depth++;
    part->counted &= is_count(r);
    run->watch.place.k = key;
    const struct at_span of_sums = at_softmax_sum_factor(&run->math, r);
    for (int64_t c = 0; c < run->work.d; c++) {
        run->acc[c] = at_span_scale(run->math.accumulator, run->acc[c], of_sums);
        note(run, AT_STAGE_pv_acc, run->acc[c].mid);
    }
}

/* Keys [first, end) of the split that begins at `begin`. */
static void block(struct run *run, struct partial *part, int64_t begin, int64_t first, int64_t end) {
    struct at_span now = part->m;
    for (int64_t t = first; t < end; t++)
        now = at_softmax_larger(now, run->s[t]);
    if (first > begin)
        rescale(run, part, now, first);
    part->m = now;
    for (int64_t t = first; t < end; t++) {
        const struct at_span w = at_softmax_weight(&run->math, run->s[t], now, t - begin);
        struct at_span *lane = lane_of(run, t - begin);
        *lane = at_softmax_add_sum(&run->math, *lane, w);
        part->counted &= is_count(w);
        run->watch.place.k = t;
        note(run, AT_STAGE_p, w.mid);
        run->p[t] = at_softmax_p(&run->math, w);
    }
    add_values(run, first, end);
}

static struct partial split(struct run *run, int64_t first, int64_t end) {
    const int64_t step = run->numerics->block ? run->numerics->block : end - first;
    const enum at_format stored = run->math.f64 ? AT_F64 : AT_F32;
    const struct at_span one = { 1, 1, 1 }, none = { 0, 0, 0 };
    struct partial part = { .m = no_maximum, .depth = end - first - 1, .counted = 1 };
    for (int64_t c = 0; c < run->work.d; c++)
        run->acc[c] = none;
    for (int i = 0; i < lanes_of(run); i++)
        run->lane[i] = none;
    for (int64_t t = first; t < end; t += step)
        block(run, &part, first, t, t + step < end ? t + step : end);
    for (int64_t c = 0; c < run->work.d; c++)
        run->acc[c] = at_span_scale(stored, run->acc[c], one);
    part.l = join_lanes(run);
    return part;
}

/* Joins a split (its acc in run->acc) to those before it (run->total), all relative to the final maximum m. */
static void merge(struct run *run, struct partial *all, struct partial part, struct at_span m, int is_first) {
    const enum at_format format = run->math.f64 ? AT_F64 : AT_F32;
    const struct at_span a = at_softmax_factor(&run->math, part.m, m);
    part.l = at_softmax_scale_sum(&run->math, part.l, a);
    part.depth++;
    part.counted &= is_count(a);
    for (int64_t c = 0; c < run->work.d; c++) {
        struct at_span acc = at_span_scale(format, run->acc[c], a);
        run->total[c] = is_first ? acc : at_softmax_add(&run->math, run->total[c], acc);
    }
    if (is_first) {
        *all = part;
        all->m = m;
        return;
    }
    all->l = at_softmax_add_sum(&run->math, all->l, part.l);
    all->depth = (all->depth > part.depth ? all->depth : part.depth) + 1;
    all->counted &= part.counted;
}

/* The sum of weights in whatever order is declared. */
static struct at_span sum_of_weights(const struct run *run, const struct partial *all) {
    const int certain = all->counted || run->math.ordered;
    return certain ? all->l : at_softmax_any_order(&run->math, all->l, all->depth);
}

/* How far [low, high] reaches from the value in the output's format; a value without a number has no interval. */
static double width(enum at_format format, struct at_span x) {
    double low = at_round(format, x.low), mid = at_round(format, x.mid), high = at_round(format, x.high);
    if (!isfinite(mid))
        return 0;
    double reach = fmax(high - mid, mid - low);
    return isfinite(low) && isfinite(high) ? reach : INFINITY;
}

static void store(struct run *run, int tensor, int64_t index, struct at_span x) {
    enum at_format format = run->problem->tensors[tensor].format;
    if (run->eval->value[tensor])
        run->eval->value[tensor][index] = at_round(format, x.mid);
    if (run->eval->limit[tensor])
        run->eval->limit[tensor][index] = width(format, x);
    if (tensor == AT_SOFTMAX_O)
        note(run, AT_STAGE_out, at_round(format, x.mid));
}

static void attend(struct run *run, const struct at_attn_row *at, int64_t index) {
    const int64_t n = at->visible;
    const struct at_softmax_form form = at_softmax_form(run->problem, at);
    const int64_t range = at_partial_keys(run->numerics->split, run->numerics->splits, n), step = range ? range : n;
    struct partial all = { .m = no_maximum };
    struct at_span m = no_maximum;
    scale_query(run);
    scores(run, &form, n);
    for (int64_t t = 0; t < n; t++)
        m = at_softmax_larger(m, run->s[t]);
    for (int64_t t = 0; t < n; t += step)
        merge(run, &all, split(run, t, t + step < n ? t + step : n), m, t == 0);
    all.depth -= n <= step; /* one partial is multiplied by exactly 1 */
    const struct at_span l = sum_of_weights(run, &all);
    run->watch.place.k = n - 1;
    for (int64_t c = 0; c < run->work.d; c++)
        store(run, AT_SOFTMAX_O, index * run->work.d + c, at_softmax_divide(&run->math, run->total[c], l));
    store(run, AT_SOFTMAX_LSE, index, at_softmax_lse(&run->math, all.m, l));
}

static at_status make_room(struct run *run, int64_t n) {
    if (n <= run->room)
        return AT_OK;
    struct at_span *p = realloc(run->p, (size_t)n * sizeof *p), *s;
    if (!p)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld weights", (long long)n);
    run->p = p;
    s = realloc(run->s, (size_t)n * sizeof *s);
    if (!s)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld scores", (long long)n);
    run->s = s;
    run->room = n;
    return AT_OK;
}

static at_status model_row(struct run *run, int64_t index) {
    const struct at_attn_row at = at_attn_row(run->problem, index);
    const struct at_span nothing = { 0, 0, 0 };
    AT_TRY(make_room(run, at.visible));
    AT_TRY(at_softmax_load(run->problem, &at, at.visible, &run->work));
    run->watch.place = (struct at_place){ .b = at.request, .h = at.head, .q = at.query, .step = -1 };
    if (at.visible > 0) {
        attend(run, &at, index);
        return AT_OK;
    }
    for (int64_t c = 0; c < run->work.d; c++)
        store(run, AT_SOFTMAX_O, index * run->work.d + c, nothing);
    store(run, AT_SOFTMAX_LSE, index, no_maximum);
    return AT_OK;
}

at_status at_softmax_model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                           int64_t row1, struct at_eval *eval) {
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "numerics with free_order=1 declare no order to model");
    AT_TRY(at_softmax_check_numerics(problem, numerics));
    struct run run = { .problem = problem, .numerics = numerics, .eval = eval, .qk = at_order_qk(numerics) };
    at_status status = AT_OK;
    at_softmax_math_init(problem, numerics, &run.math);
    run.qk.input = problem->dtype;
    run.watch.ledger = eval->ledger;
    run.intervals = eval->limit[AT_SOFTMAX_O] != NULL;
    run.acc = calloc((size_t)problem->sizes.d, sizeof *run.acc);
    run.total = calloc((size_t)problem->sizes.d, sizeof *run.total);
    run.lane = calloc((size_t)numerics->l_lanes + 1, sizeof *run.lane);
    if (!run.acc || !run.total || !run.lane)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %lld accumulators", (long long)problem->sizes.d);
    for (int64_t row = row0; row < row1; row++)
        AT_TRY_OUT(model_row(&run, row));
out:
    at_softmax_work_release(&run.work);
    free(run.p);
    free(run.s);
    free(run.acc);
    free(run.total);
    free(run.lane);
    return status;
}
