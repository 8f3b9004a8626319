/* The exact value of AsyncT attention in double, with limits, intermediates and ledger.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "asynct_attention/asynct_attention.h"
#include "asynct_attention/rows.h"

/* Scratch of one evaluation: arrays over the keys of a row, and sums over the channels. */
struct scratch {
    const struct at_problem *problem;
    const struct at_asynct_limit *limit; /* NULL: no limits wanted */
    struct at_eval *eval;
    double *dot, *abs, *k_abs;   /* [max_sk]; dot is the one allocation */
    double *s, *z, *p, *dp;      /* [max_sk] */
    double *o, *abs_pv, *err_pv; /* [d] */
};

/* <q, k_t>; when limits are wanted also the sums of magnitudes they need. */
static void scores(struct scratch *x, const struct at_asynct_input *in, struct at_asynct_scores *out) {
    const int64_t d = x->problem->sizes.d;
    *out = (struct at_asynct_scores){ in->row.visible, x->dot, x->abs, x->k_abs, 0, 0 };
    at_asynct_dots(in->q, in->k, in->row.visible, d, x->dot);
    for (int64_t t = 0; x->limit && t < in->row.visible; t++) {
        const double *q = in->q, *k = in->k + t * d;
        double abs = 0, k_abs = 0, k_max = out->k_max;
        for (int64_t i = 0; i < d; i++) {
            abs += fabs(q[i] * k[i]);
            k_abs += fabs(k[i]);
            if (fabs(k[i]) > k_max && isfinite(k[i]))
                k_max = fabs(k[i]);
        }
        x->abs[t] = abs;
        x->k_abs[t] = k_abs;
        out->k_max = k_max;
    }
    for (int64_t i = 0; i < d; i++)
        out->q_max = fmax(out->q_max, isfinite(in->q[i]) ? fabs(in->q[i]) : 0);
}

/* o = gamma * sum of p_t v_t over p_t != 0: a row of V whose p is 0 is not read. */
static void output(struct scratch *x, const struct at_asynct_input *in, double gamma) {
    const int64_t d = x->problem->sizes.d;
    for (int64_t c = 0; c < d; c++)
        x->o[c] = 0;
    for (int64_t t = 0; t < in->row.visible; t++)
        if (x->p[t] != 0)
            at_asynct_add(gamma * x->p[t], in->v + t * d, d, x->o);
}

/* Limits of the row's d outputs, into limits[0 .. d-1]. */
static void limits(struct scratch *x, const struct at_asynct_input *in, const struct at_asynct_head *head,
                   double *limits) {
    const int64_t d = x->problem->sizes.d;
    struct at_asynct_sum sum = { .n = in->row.visible };
    for (int64_t c = 0; c < d; c++)
        x->abs_pv[c] = x->err_pv[c] = 0;
    for (int64_t t = 0; t < in->row.visible; t++) {
        const double p = x->p[t], dp = x->dp[t], *v = in->v + t * d;
        double *abs_pv = x->abs_pv, *err_pv = x->err_pv, v_max = sum.v_max;
        const int multiplied = dp != 0 || x->limit->multiplies_zeros;
        sum.p_max = fmax(sum.p_max, fabs(p) + dp);
        sum.live += p != 0 || dp != 0;
        for (int64_t c = 0; c < d; c++) {
            const double size = fabs(v[c]);
            if (size > v_max && isfinite(size))
                v_max = size;
            if (p != 0)
                abs_pv[c] += fabs(p) * size;
            if (multiplied)
                err_pv[c] += dp * size;
        }
        sum.v_max = v_max;
    }
    for (int64_t c = 0; c < d; c++) {
        sum.o = x->o[c];
        sum.abs_pv = x->abs_pv[c];
        sum.err_pv = x->err_pv[c];
        limits[c] = at_asynct_limit_out(x->limit, head, &sum);
    }
}

static void note(const struct scratch *x, const struct at_asynct_input *in, const struct at_asynct_head *head) {
    struct at_ledger *ledger = x->eval->ledger;
    const double low = at_asynct_clamp(head, -INFINITY), high = at_asynct_clamp(head, INFINITY);
    struct at_place place = { in->row.request, in->row.head, in->row.query, 0, -1 };
    for (int64_t t = 0; t < in->row.visible; t++) {
        place.k = t;
        at_ledger_note(ledger, AT_STAGE_score, x->dot[t], &place);
        at_ledger_note(ledger, AT_STAGE_scaled, x->s[t], &place);
        at_ledger_note(ledger, AT_STAGE_gate_in, x->z[t], &place);
        at_ledger_note(ledger, AT_STAGE_p, x->p[t], &place);
        ledger->clamped_low += x->z[t] < low;
        ledger->clamped_high += x->z[t] > high;
    }
    place.k = -1;
    for (int64_t c = 0; c < x->problem->sizes.d; c++)
        at_ledger_note(ledger, AT_STAGE_out, x->o[c], &place);
}

static void trace(const struct scratch *x, int64_t row, int64_t n) {
    const struct at_eval *eval = x->eval;
    eval->trace(eval->trace_context, row, AT_STAGE_score, n, x->dot);
    eval->trace(eval->trace_context, row, AT_STAGE_scaled, n, x->s);
    eval->trace(eval->trace_context, row, AT_STAGE_gate_in, n, x->z);
    eval->trace(eval->trace_context, row, AT_STAGE_p, n, x->p);
}

static at_status evaluate_row(void *context, const struct at_asynct_input *in) {
    struct scratch *x = context;
    const int64_t d = x->problem->sizes.d, row = in->row.token * x->problem->sizes.h + in->row.head;
    struct at_asynct_head head;
    struct at_asynct_scores known;
    at_asynct_head_init(x->problem, in->row.head, &head);
    scores(x, in, &known);
    at_asynct_gate_row(&head, known.n, x->dot, x->s, x->z, x->p);
    output(x, in, head.gamma);
    if (x->eval->value[AT_ASYNCT_O])
        for (int64_t c = 0; c < d; c++)
            x->eval->value[AT_ASYNCT_O][row * d + c] = x->o[c];
    if (x->limit) {
        at_asynct_limit_row(x->limit, &head, &known, x->s, x->z, x->dp);
        limits(x, in, &head, x->eval->limit[AT_ASYNCT_O] + row * d);
    }
    if (x->eval->ledger)
        note(x, in, &head);
    if (x->eval->trace)
        trace(x, row, known.n);
    return AT_OK;
}

at_status at_asynct_evaluate_with(const struct at_problem *problem, const struct at_asynct_limit *limit, int64_t row0,
                                  int64_t row1, struct at_eval *eval) {
    const size_t keys = (size_t)problem->sizes.max_sk, d = (size_t)problem->sizes.d;
    struct scratch x = { .problem = problem, .limit = eval->limit[AT_ASYNCT_O] ? limit : NULL, .eval = eval };
    x.dot = malloc((7 * keys + 3 * d) * sizeof *x.dot);
    if (!x.dot)
        return AT_FAIL(AT_NO_MEMORY, "a row of %zu keys and %zu channels", keys, d);
    double **arrays[] = { &x.abs, &x.k_abs, &x.s, &x.z, &x.p, &x.dp, &x.o };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        *arrays[i] = x.dot + (i + 1) * keys;
    x.abs_pv = x.o + d;
    x.err_pv = x.abs_pv + d;
    at_status status = at_asynct_walk(problem, row0, row1, evaluate_row, &x);
    free(x.dot);
    return status;
}

at_status at_asynct_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                             int64_t row1, struct at_eval *eval) {
    struct at_asynct_limit limit;
    if (!eval->limit[AT_ASYNCT_O])
        return at_asynct_evaluate_with(problem, NULL, row0, row1, eval);
    AT_TRY(at_asynct_limit_init(problem, numerics, &limit));
    return at_asynct_evaluate_with(problem, &limit, row0, row1, eval);
}
