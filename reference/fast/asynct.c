/* AsyncT attention's part of the fast tier: rows of scores to rows of gates, with the operator's own pieces.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "fast/kind.h"
#include "fast/vector.h"

static at_status prepare(struct at_fast_run *run, const struct at_numerics *numerics) {
    run->limits = run->eval->limit[AT_ASYNCT_O] != NULL;
    if (run->limits)
        AT_TRY(at_asynct_limit_init(run->problem, numerics, &run->asynct));
    return AT_OK;
}

static int charges_zeros(const struct at_fast_run *run) { return run->asynct.multiplies_zeros; }

static struct at_place place_of(const struct at_attn_row *at) {
    return (struct at_place){ .b = at->request, .h = at->head, .q = at->query, .k = -1, .step = -1 };
}

static void note(struct at_ledger *ledger, const struct at_asynct_head *head, const struct at_attn_row *at,
                 const struct at_fast_work *work, const double *dot) {
    const double low = at_asynct_clamp(head, -(double)INFINITY), high = at_asynct_clamp(head, (double)INFINITY);
    struct at_place place = place_of(at);
    for (int64_t t = 0; t < at->visible; t++) {
        place.k = t;
        at_ledger_note(ledger, AT_STAGE_score, dot[t], &place);
        at_ledger_note(ledger, AT_STAGE_scaled, work->s[t], &place);
        at_ledger_note(ledger, AT_STAGE_gate_in, work->z[t], &place);
        at_ledger_note(ledger, AT_STAGE_p, work->p[t], &place);
        ledger->clamped_low += work->z[t] < low;
        ledger->clamped_high += work->z[t] > high;
    }
}

static void tell(const struct at_fast_watch *watch, const struct at_asynct_head *head, const struct at_fast_row *row,
                 const struct at_fast_work *work, const double *dot) {
    const int64_t n = row->at.visible;
    if (watch->ledger)
        note(watch->ledger, head, &row->at, work, dot);
    if (!watch->trace)
        return;
    watch->trace(watch->trace_context, row->index, AT_STAGE_score, n, dot);
    watch->trace(watch->trace_context, row->index, AT_STAGE_scaled, n, work->s);
    watch->trace(watch->trace_context, row->index, AT_STAGE_gate_in, n, work->z);
    watch->trace(watch->trace_context, row->index, AT_STAGE_p, n, work->p);
}

static void weigh(const struct at_fast_run *run, struct at_fast_work *work, int64_t i,
                  const struct at_fast_watch *watch) {
    struct at_fast_row *row = &work->row[i];
    const int64_t n = row->at.visible;
    double *dot = work->first + i * work->stride;
    struct at_asynct_head head;
    at_asynct_head_init(run->problem, row->at.head, &head);
    double *p = run->limits || watch->ledger || watch->trace ? work->p : dot; /* without these nobody reads dot again */
    at_fast_gate_row(&head, n, dot, work->s, work->z, p);
    tell(watch, &head, row, work, dot);
    if (run->limits) {
        const struct at_asynct_scores known = { .n = n,
                                                .dot = dot,
                                                .abs = work->second + i * work->stride,
                                                .k_abs = work->k_abs,
                                                .q_max = row->q_max,
                                                .k_max = work->k_max };
        at_asynct_limit_row(&run->asynct, &head, &known, work->s, work->z, work->dp);
        row->p_max = 0;
        row->live = 0;
        for (int64_t t = 0; t < n; t++) {
            double dp = work->dp[t];
            row->p_max = fmax(row->p_max, fabs(p[t]) + dp);
            row->live += p[t] != 0 || dp != 0;
        }
        at_fast_put_row(work, work->second, i, n, work->dp);
    }
    at_fast_put_row(work, work->first, i, n, p);
}

static at_status finish(const struct at_fast_run *run, const struct at_fast_work *work, int64_t i,
                        const struct at_fast_watch *watch) {
    const struct at_fast_row *row = &work->row[i];
    const int64_t d = run->problem->sizes.d;
    const struct at_eval *eval = run->eval;
    struct at_asynct_head head;
    struct at_place place = place_of(&row->at);
    at_asynct_head_init(run->problem, row->at.head, &head);
    const double gamma = head.gamma;
    double *o = work->o + i * d; /* a loop of its own: it vectorises */
    for (int64_t c = 0; c < d; c++)
        o[c] = 0.0 + gamma * o[c]; /* no -0 from nothing: sums start at +0 */
    if (eval->value[AT_ASYNCT_O])
        memcpy(eval->value[AT_ASYNCT_O] + row->index * d, o, (size_t)d * sizeof *o);
    struct at_asynct_sum sum = { .n = row->at.visible, .live = row->live, .p_max = row->p_max, .v_max = work->v_max };
    for (int64_t c = 0; (run->limits || watch->ledger) && c < d; c++) {
        sum.o = o[c];
        if (watch->ledger)
            at_ledger_note(watch->ledger, AT_STAGE_out, sum.o, &place);
        if (!run->limits)
            continue;
        sum.abs_pv = work->abs_sum[i * d + c];
        sum.err_pv = work->err_sum[i * d + c];
        eval->limit[AT_ASYNCT_O][row->index * d + c] = at_asynct_limit_out(&run->asynct, &head, &sum);
    }
    return AT_OK;
}

const struct at_fast_kind at_fast_asynct = { &at_op_asynct_attention, prepare, charges_zeros, weigh, finish };
