/* Softmax attention in plain C, in double: the exact tier, its limits, and the intermediates of a row.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two passes over a row: scores and their maximum, then weights and the weighted mean of V. The ledger of an exact
 * evaluation notes q.k, scaled scores, exp(s - m), the unnormalised sum of exp(s - m) v (as pv_acc) and the
 * output; there is no declared accumulator whose steps could be noted. Trace: score, scaled, and p, the
 * normalised weight. */
#include <math.h>

#include "softmax_attention/internal.h"

static void trace(const struct at_softmax_work *work, int64_t row, int64_t n, const struct at_eval *eval) {
    if (!eval->trace || n == 0)
        return;
    eval->trace(eval->trace_context, row, AT_STAGE_score, n, work->dot);
    eval->trace(eval->trace_context, row, AT_STAGE_scaled, n, work->s);
    eval->trace(eval->trace_context, row, AT_STAGE_p, n, work->p);
}

static void note(const struct at_softmax_work *work, const struct at_attn_row *at, const struct at_softmax_row *row,
                 const double *o, struct at_ledger *ledger) {
    struct at_place place = { .b = at->request, .h = at->head, .q = at->query, .step = -1 };
    if (!ledger)
        return;
    for (place.k = 0; place.k < row->n; place.k++) {
        at_ledger_note(ledger, AT_STAGE_score, work->dot[place.k], &place);
        at_ledger_note(ledger, AT_STAGE_scaled, work->s[place.k], &place);
        at_ledger_note(ledger, AT_STAGE_p, work->p[place.k] * row->sum, &place);
    }
    place.k = row->n > 0 ? row->n - 1 : 0;
    for (int64_t c = 0; c < work->d; c++) {
        if (row->n > 0)
            at_ledger_note(ledger, AT_STAGE_pv_acc, o[c] * row->sum, &place);
        at_ledger_note(ledger, AT_STAGE_out, o[c], &place);
    }
}

/* The sums of at_softmax_sums for every channel, then the limits. */
static void limit_outputs(const struct at_softmax_limit *limit, const struct at_softmax_work *work,
                          const struct at_softmax_row *row, const double *o, double *out) {
    for (int64_t c = 0; c < work->d; c++) {
        struct at_softmax_sums sums = { .o = o[c] };
        for (int64_t t = 0; t < row->n; t++) {
            if (limit->skips_zeros && work->p[t] == 0)
                continue;
            double v = work->v[t * work->d + c], size = fabs(v), off = fabs(v - o[c]), p = work->p[t];
            if (p != 0) {
                sums.spread += p * work->h[t] * off;
                sums.abs += p * (1 + work->h[t]) * size;
            }
            sums.all += size;
            sums.v_max = size <= sums.v_max ? sums.v_max : size; /* a NaN stays */
            sums.off = off <= sums.off ? sums.off : off;
        }
        out[c] = at_softmax_limit_o(limit, row, &sums, work->v_max);
    }
}

static void limits(const struct at_softmax_limit *limit, const struct at_softmax_form *form,
                   struct at_softmax_work *work, struct at_softmax_row *row, const double *o, double *limit_o,
                   double *limit_lse) {
    const struct at_softmax_scores scores = { .n = row->n,
                                              .form = form,
                                              .dot = work->dot,
                                              .abs = work->abs,
                                              .k_abs = work->k_abs,
                                              .q_max = work->q_max,
                                              .k_max = work->k_max };
    at_softmax_limit_row(limit, &scores, work->s, work->p, row, work->h);
    if (limit_o)
        limit_outputs(limit, work, row, o, limit_o);
    if (limit_lse)
        *limit_lse = at_softmax_limit_lse(limit, row);
}

static at_status evaluate_row(const struct at_problem *problem, const struct at_softmax_limit *limit, int64_t index,
                              struct at_eval *eval, struct at_softmax_work *work) {
    const struct at_attn_row at = at_attn_row(problem, index);
    const int64_t d = problem->sizes.d;
    struct at_softmax_row row;
    AT_TRY(at_softmax_load(problem, &at, at.visible, work));
    double *o = work->channel;
    at_softmax_dots(work, at.visible);
    const struct at_softmax_form form = at_softmax_form(problem, &at);
    at_softmax_weights(at.visible, &form, work->dot, work->s, work->p, &row);
    at_softmax_mix(work, at.visible, work->p, o);
    trace(work, index, at.visible, eval);
    note(work, &at, &row, o, eval->ledger);
    double *limit_o = eval->limit[AT_SOFTMAX_O], *limit_lse = eval->limit[AT_SOFTMAX_LSE];
    if (limit && (limit_o || limit_lse))
        limits(limit, &form, work, &row, o, limit_o ? limit_o + index * d : NULL, limit_lse ? limit_lse + index : NULL);
    for (int64_t c = 0; c < d && eval->value[AT_SOFTMAX_O]; c++)
        eval->value[AT_SOFTMAX_O][index * d + c] = o[c];
    if (eval->value[AT_SOFTMAX_LSE])
        eval->value[AT_SOFTMAX_LSE][index] = row.lse;
    return AT_OK;
}

at_status at_softmax_evaluate_with(const struct at_problem *problem, const struct at_softmax_limit *limit, int64_t row0,
                                   int64_t row1, struct at_eval *eval) {
    struct at_softmax_work work = { 0 };
    at_status status = AT_OK;
    for (int64_t row = row0; row < row1; row++)
        AT_TRY_OUT(evaluate_row(problem, limit, row, eval, &work));
out:
    at_softmax_work_release(&work);
    return status;
}

at_status at_softmax_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                              int64_t row1, struct at_eval *eval) {
    struct at_softmax_limit limit;
    int wanted = eval->limit[AT_SOFTMAX_O] || eval->limit[AT_SOFTMAX_LSE];
    if (wanted)
        AT_TRY(at_softmax_limit_init(problem, numerics, &limit));
    return at_softmax_evaluate_with(problem, wanted ? &limit : NULL, row0, row1, eval);
}
