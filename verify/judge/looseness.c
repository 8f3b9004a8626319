/* How much a claim allows: the limits of a declaration over those of plain f32 arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/looseness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8 };
/* Multiply-adds of these rows, evaluated twice: beyond it they would cost as much as the verdict. */
static const double MAX_WORK = 5e6;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What is no matter of precision stays as it is declared. */
static struct at_numerics plain(const struct at_numerics *declared) {
    struct at_numerics n = at_numerics_default();
    n.free_order = 1;
    n.clamp = declared->clamp;
    n.fir_order = declared->fir_order;
    n.gamma_on = declared->gamma_on;
    n.guard = AT_GUARD_NONE;
    n.pv_zero = declared->pv_zero;
    n.tail = declared->tail;
    return n;
}

struct row {
    int64_t row;
    double work;
};

static int by_work(const void *a, const void *b) {
    const struct row *x = a, *y = b;
    return x->work != y->work ? (x->work > y->work ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

/* Rows at even distances, ends among them; their number. Where these take long, the one of middle work alone: a claim that is made
 * of large problems only must not go unmeasured. */
static int choose(const struct at_answer *a, int64_t rows[ROWS]) {
    struct row some[ROWS];
    int n = 0, idle = 0;
    double work = 0;
    for (int i = 0; i < ROWS && i < a->rows; i++) {
        const int64_t row = a->rows <= ROWS ? i : i * (a->rows - 1) / (ROWS - 1);
        some[i] = (struct row){ row, a->problem->op->row_work(a->problem, row) };
        work += some[i].work;
        idle += !(some[i].work > 0);
        rows[n++] = row;
    }
    if (work <= MAX_WORK)
        return n;
    qsort(some, (size_t)n, sizeof *some, by_work);
    rows[0] = some[idle + (n - idle) / 2].row;
    return 1;
}

static at_status limits_of(const struct at_answer *a, const struct at_numerics *n, const int64_t *rows, int n_rows,
                           struct at_eval *eval) {
    for (int o = 0; o < a->n_outputs; o++) {
        const int t = a->outputs[o];
        eval->value[t] = calloc((size_t)a->count[t] + 1, sizeof(double));
        eval->limit[t] = calloc((size_t)a->count[t] + 1, sizeof(double));
        if (!eval->value[t] || !eval->limit[t])
            return AT_FAIL(AT_NO_MEMORY, "no memory for %lld limits", (long long)a->count[t]);
    }
    for (int i = 0; i < n_rows; i++)
        AT_TRY(a->problem->op->evaluate(a->problem, n, rows[i], rows[i] + 1, eval));
    return AT_OK;
}

static void release(struct at_eval *eval) {
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        free(eval->value[t]);
        free(eval->limit[t]);
    }
}

static at_status median(const struct at_answer *a, int t, const int64_t *rows, int n_rows, const struct at_eval *loose,
                        const struct at_eval *tight, double *result) {
    double *ratio = calloc((size_t)a->count[t] + 1, sizeof *ratio);
    int64_t n = 0;
    if (!ratio)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld ratios", (long long)a->count[t]);
    for (int i = 0; i < n_rows; i++) {
        int64_t first, count;
        a->problem->op->row_span(a->problem, t, rows[i], &first, &count);
        for (int64_t k = first; k < first + count && n < a->count[t]; k++)
            if (isfinite(loose->limit[t][k]) && isfinite(tight->limit[t][k]) && tight->limit[t][k] > 0)
                ratio[n++] = loose->limit[t][k] / tight->limit[t][k];
    }
    if (n) {
        qsort(ratio, (size_t)n, sizeof *ratio, by_value);
        *result = ratio[n / 2];
    }
    free(ratio);
    return AT_OK;
}

at_status at_looseness(const struct at_answer *a, const struct at_numerics *numerics,
                       double looseness[AT_MAX_TENSORS]) {
    const struct at_numerics tightest = plain(numerics);
    struct at_eval loose = { .ledger = NULL }, tight = { .ledger = NULL };
    void *prepared = NULL;
    int64_t rows[ROWS];
    at_status status = AT_OK;
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        looseness[t] = (double)NAN;
    const int n = numerics->free_order && !a->problem->op->bits ? choose(a, rows) : 0;
    if (n == 0)
        return AT_OK;
    loose.prepared = tight.prepared = prepared = at_op_prepare(a->problem);
    status = limits_of(a, numerics, rows, n, &loose);
    if (status == AT_OK)
        status = limits_of(a, &tightest, rows, n, &tight);
    for (int o = 0; o < a->n_outputs && status == AT_OK; o++)
        status = median(a, a->outputs[o], rows, n, &loose, &tight, &looseness[a->outputs[o]]);
    if (status == AT_USAGE ||
        status == AT_UNSUPPORTED) { /* the operator has no such arithmetic: nothing to compare with */
        at_error_clear();
        status = AT_OK;
    }
    release(&loose);
    release(&tight);
    free(prepared);
    return status;
}
