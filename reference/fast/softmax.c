/* Softmax attention's part of the fast tier: rows of scores to rows of weights, with the operator's own pieces.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Limits take upper bounds in place of sums that are no matrix product: |v - o| <= |v| + |o|, and sum |v| and
 * max |v| over all keys of the block instead of the row's. They are a little wider than the plain tier's; rows of few
 * keys, where |v - o| is small or 0, take their limits from the plain tier. */
#include <math.h>
#include <string.h>

#include "fast/kind.h"
#include "fast/vector.h"

enum { FEW_KEYS = 32 };

static at_status prepare(struct at_fast_run *run, const struct at_numerics *numerics) {
    run->limits = run->eval->limit[AT_SOFTMAX_O] != NULL || run->eval->limit[AT_SOFTMAX_LSE] != NULL;
    if (run->limits)
        AT_TRY(at_softmax_limit_init(run->problem, numerics, &run->softmax));
    return AT_OK;
}

static int charges_zeros(const struct at_fast_run *run) { return !run->softmax.skips_zeros; }

static void tell(const struct at_fast_watch *watch, const struct at_fast_row *row, const struct at_fast_work *work,
                 const double *dot) {
    const int64_t n = row->at.visible;
    struct at_place place = { .b = row->at.request, .h = row->at.head, .q = row->at.query, .step = -1 };
    for (place.k = 0; watch->ledger && place.k < n; place.k++) {
        at_ledger_note(watch->ledger, AT_STAGE_score, dot[place.k], &place);
        at_ledger_note(watch->ledger, AT_STAGE_scaled, work->s[place.k], &place);
        at_ledger_note(watch->ledger, AT_STAGE_p, work->p[place.k] * row->softmax.sum, &place);
    }
    if (!watch->trace || n == 0)
        return;
    watch->trace(watch->trace_context, row->index, AT_STAGE_score, n, dot);
    watch->trace(watch->trace_context, row->index, AT_STAGE_scaled, n, work->s);
    watch->trace(watch->trace_context, row->index, AT_STAGE_p, n, work->p);
}

static void weigh(const struct at_fast_run *run, struct at_fast_work *work, int64_t i,
                  const struct at_fast_watch *watch) {
    struct at_fast_row *row = &work->row[i];
    const int64_t n = row->at.visible;
    double *dot = work->first + i * work->stride;
    double *p = run->limits || watch->ledger || watch->trace ? work->p : dot; /* without these nobody reads dot again */
    const struct at_softmax_form form = at_softmax_form(run->problem, &row->at);
    at_fast_weight_row(n, &form, dot, work->s, p, &row->softmax);
    tell(watch, row, work, dot);
    if (run->limits) {
        const struct at_softmax_scores known = { .n = n,
                                                 .form = &form,
                                                 .dot = dot,
                                                 .abs = work->second + i * work->stride,
                                                 .k_abs = work->k_abs,
                                                 .q_max = row->q_max,
                                                 .k_max = work->k_max };
        double *h = work->dp;
        at_softmax_limit_row(&run->softmax, &known, work->s, work->p, &row->softmax, h);
        for (int64_t t = 0; t < n; t++)
            h[t] = work->p[t] != 0 ? work->p[t] * h[t] : 0;
        at_fast_put_row(work, work->second, i, n, h);
    }
    at_fast_put_row(work, work->first, i, n, p);
}

/* Limit of output c of a row whose value is o. */
static double limit_of(const struct at_fast_run *run, const struct at_fast_work *work, int64_t i, int64_t c, double o) {
    const struct at_softmax_row *row = &work->row[i].softmax;
    const int64_t at = i * run->problem->sizes.d + c;
    const double spread = work->err_sum[at];
    struct at_softmax_sums sums = { .o = o,
                                    .spread = spread + fabs(o) * row->spread,
                                    .abs = work->abs_sum[at] + spread };
    sums.all = work->v_sum[c];
    sums.v_max = work->v_top[c];
    if (!isfinite(spread)) /* a v of the row is not finite, or nothing bounds the weights */
        sums.all = sums.v_max = spread;
    sums.off = sums.v_max + fabs(o);
    return at_softmax_limit_o(&run->softmax, row, &sums, work->v_max);
}

static at_status finish(const struct at_fast_run *run, const struct at_fast_work *work, int64_t i,
                        const struct at_fast_watch *watch) {
    const struct at_fast_row *row = &work->row[i];
    const int64_t d = run->problem->sizes.d, n = row->at.visible;
    const struct at_eval *eval = run->eval;
    struct at_place place = { .b = row->at.request, .h = row->at.head, .q = row->at.query, .step = -1 };
    place.k = n > 0 ? n - 1 : 0;
    if (eval->value[AT_SOFTMAX_O])
        memcpy(eval->value[AT_SOFTMAX_O] + row->index * d, work->o + i * d, (size_t)d * sizeof *work->o);
    for (int64_t c = 0; (run->limits || watch->ledger) && c < d; c++) {
        const double o = work->o[i * d + c];
        if (eval->limit[AT_SOFTMAX_O] && n > FEW_KEYS)
            eval->limit[AT_SOFTMAX_O][row->index * d + c] = limit_of(run, work, i, c, o);
        if (watch->ledger && n > 0)
            at_ledger_note(watch->ledger, AT_STAGE_pv_acc, o * row->softmax.sum, &place);
        if (watch->ledger)
            at_ledger_note(watch->ledger, AT_STAGE_out, o, &place);
    }
    if (eval->value[AT_SOFTMAX_LSE])
        eval->value[AT_SOFTMAX_LSE][row->index] = row->softmax.lse;
    if (eval->limit[AT_SOFTMAX_LSE])
        eval->limit[AT_SOFTMAX_LSE][row->index] = at_softmax_limit_lse(&run->softmax, &row->softmax);
    struct at_eval limit = { .limit = { [AT_SOFTMAX_O] = eval->limit[AT_SOFTMAX_O] } };
    if (limit.limit[AT_SOFTMAX_O] && n <= FEW_KEYS)
        AT_TRY(at_softmax_evaluate_with(run->problem, &run->softmax, row->index, row->index + 1, &limit));
    return AT_OK;
}

const struct at_fast_kind at_fast_softmax = { &at_op_softmax_attention, prepare, charges_zeros, weigh, finish };
