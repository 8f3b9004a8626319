/* What must hold before a time counts, and what a time is measured against.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "datasets/fill/random.h"
#include "verify/bench/bench.h"

enum { ROWS = 64, MIN_ROWS = 8, TIMEOUT_SECONDS = 120 };
/* Multiply-adds up to which every row is checked: norms and cache writes, where a fault may well be in few rows. */
static const double ALL_ROWS_WORK = 2e8;
/* And multiply-adds of the rows of a sample, but for MIN_ROWS of them: minutes of modelled arithmetic. */
static const double SAMPLE_WORK = 5e9;

double at_bench_scores(const struct at_problem *p) { return p->op->scores ? p->op->scores(p) : (double)NAN; }

double at_bench_flops(const struct at_problem *p) { return p->op->flops ? p->op->flops(p) : (double)NAN; }

double at_bench_bytes(const struct at_problem *p) {
    double sum = 0;
    for (int t = 0; t < p->op->n_tensors; t++) {
        const struct at_tensor *x = &p->tensors[t];
        if (x->rank == 0)
            continue;
        const int64_t count = p->op->moved ? p->op->moved(p, t) : at_tensor_count(x);
        sum += (double)count * (double)at_format_info(x->format)->bytes;
    }
    return sum;
}

/* Outputs of the evaluation in full size; only the rows of the sample are filled. */
struct sample {
    struct at_eval eval;
    int64_t rows, n;
    int64_t row[ROWS]; /* where n is less than rows; else all are looked at */
};

static int64_t sampled_row(const struct sample *s, int64_t i) { return s->n < s->rows ? s->row[i] : i; }

static void add(struct sample *s, int64_t *n, int64_t row) {
    for (int64_t i = 0; i < *n; i++)
        if (s->row[i] == row)
            return;
    if (*n < s->n)
        s->row[(*n)++] = row;
}

static int ends_request(const struct at_problem *p, int64_t row) {
    return p->op->request_of_row && p->op->request_of_row(p, row) != p->op->request_of_row(p, row + 1);
}

/* The first row and the last; of those beside an end of a request up to half of the sample, from one on that is drawn; the
 * rest is drawn. Any fixed choice is known to a kernel, which may then be right there alone. */
static void choose(const struct at_problem *p, uint64_t seed, struct sample *s) {
    const struct at_random random = { seed, at_random_stream("rows", 0) };
    const int64_t half = s->n / 2, from = at_random_below(&random, 0, s->rows);
    int64_t n = 0;
    add(s, &n, 0);
    add(s, &n, s->rows - 1);
    for (int64_t i = 0; i + 1 < s->rows && n + 1 < half; i++) {
        const int64_t row = (from + i) % (s->rows - 1);
        if (ends_request(p, row)) {
            add(s, &n, row);
            add(s, &n, row + 1);
        }
    }
    for (uint64_t i = 1; n < s->n; i++)
        add(s, &n, at_random_below(&random, i, s->rows));
}

static void release(struct sample *s) {
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        free(s->eval.value[t]);
        free(s->eval.limit[t]);
    }
}

static at_status take(const struct at_problem *p, uint64_t seed, struct sample *s) {
    memset(s, 0, sizeof *s);
    s->rows = p->op->rows(p);
    double work = 0;
    for (int64_t r = 0; r < s->rows; r++)
        work += p->op->row_work(p, r);
    s->n = s->rows < ROWS || work <= ALL_ROWS_WORK ? s->rows : ROWS;
    while (s->n > MIN_ROWS && s->n < s->rows && (double)s->n * work / (double)s->rows > SAMPLE_WORK)
        s->n--;
    if (s->n < s->rows)
        choose(p, seed, s);
    for (int t = 0; t < p->op->n_tensors; t++) {
        const size_t n = (size_t)at_tensor_count(&p->tensors[t]) + 1;
        if (p->op->tensors[t].role == AT_IN)
            continue;
        s->eval.value[t] = calloc(n, sizeof(double));
        s->eval.limit[t] = calloc(n, sizeof(double));
        if (!s->eval.value[t] || !s->eval.limit[t])
            return AT_FAIL(AT_NO_MEMORY, "no memory for %zu outputs", n);
    }
    return AT_OK;
}

/* Elements of a row against value and limit; modelled: equal to the bit where the limit is 0, NaNs of one class. */
static void compare_row(const struct at_problem *p, const struct at_outputs *outputs, const struct sample *s,
                        int64_t row, int modelled, struct at_bench_row *out) {
    for (int t = 0; t < p->op->n_tensors; t++) {
        int64_t first, count;
        if (!s->eval.value[t])
            continue;
        p->op->row_span(p, t, row, &first, &count);
        for (int64_t i = first; i < first + count; i++) {
            const double got = at_tensor_get(&outputs->tensors[t], i), want = s->eval.value[t][i];
            const double limit = s->eval.limit[t][i];
            const int same = got == want || (isnan(got) && isnan(want));
            out->compared++;
            out->wrong += !same && !(fabs(got - want) <= limit);
            out->model_compared += modelled;
            out->model_equal += modelled && same;
        }
    }
}

struct comparing {
    const struct at_problem *p;
    const struct at_outputs *outputs;
    struct at_numerics here;
    struct sample s;
    int modelled;
    struct at_bench_row *row; /* under `lock` */
    pthread_mutex_t lock;
};

/* Rows of a sample are elements of their own in the evaluation's arrays. */
static at_status compare_some(void *context, int64_t begin, int64_t end, int worker) {
    struct comparing *c = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t r = sampled_row(&c->s, i);
        AT_TRY((c->modelled ? c->p->op->model : c->p->op->evaluate)(c->p, &c->here, r, r + 1, &c->s.eval));
        pthread_mutex_lock(&c->lock);
        compare_row(c->p, c->outputs, &c->s, r, c->modelled, c->row);
        pthread_mutex_unlock(&c->lock);
    }
    return AT_OK;
}

static at_status compare_rows(const struct at_problem *p, const struct at_numerics *numerics,
                              const struct at_outputs *outputs, uint64_t rows_seed, struct at_bench_row *row) {
    struct comparing c = { .p = p,
                           .outputs = outputs,
                           .here = at_numerics_on(numerics, p->dtype),
                           .row = row,
                           .lock = PTHREAD_MUTEX_INITIALIZER };
    c.modelled = !c.here.free_order;
    void *prepared = at_op_prepare(p);
    at_status status = take(p, rows_seed, &c.s);
    c.s.eval.prepared = prepared;
    if (status == AT_OK)
        status = at_parallel(c.s.n, 1, at_threads(), compare_some, &c);
    row->rows_checked = c.s.n;
    release(&c.s);
    free(prepared);
    pthread_mutex_destroy(&c.lock);
    return status;
}

static void tell(struct at_bench_row *row, enum at_state state, const char *what, const char *why) {
    snprintf(row->verdict, sizeof row->verdict, "%s%.360s", what, why);
    snprintf(row->state, sizeof row->state, "%s", at_state_name(state));
}

static int tell_dirty(const struct at_outputs *outputs, const char *what, struct at_bench_row *row) {
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        if (outputs->dirty[t][0]) {
            tell(row, AT_STATE_DIRTY, what, outputs->dirty[t]);
            row->wrong = 1;
            return 1;
        }
    return 0;
}

at_status at_bench_judge_timed(const struct at_problem *problem, const struct at_numerics *numerics,
                               const struct at_outputs *outputs, uint64_t rows_seed, struct at_bench_row *row) {
    struct at_bench_row *timed;
    at_status status = AT_OK;
    char text[256];
    if (tell_dirty(outputs, "DIRTY when timed: ", row))
        return AT_OK;
    timed = calloc(1, sizeof *timed);
    if (!timed)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a row");
    AT_TRY_OUT(compare_rows(problem, numerics, outputs, rows_seed, timed));
    row->timed_compared = timed->compared;
    row->wrong = timed->wrong;
    if (timed->wrong) {
        snprintf(text, sizeof text, "%lld of %lld elements of %lld rows that a timed launch left (--rows-seed %lld)",
                 (long long)timed->wrong, (long long)timed->compared, (long long)timed->rows_checked,
                 (long long)rows_seed);
        tell(row, AT_STATE_WRONG, "WRONG when timed: ", text);
    }
out:
    free(timed);
    return status;
}

at_status at_bench_verify(struct at_runner *runner, int variant, const struct at_problem *problem, uint64_t seed,
                          uint64_t rows_seed, struct at_bench_row *row) {
    struct at_numerics numerics;
    struct at_run_reply reply;
    struct at_outputs outputs = { 0 };
    at_status status = at_declared_on(runner, variant, problem, &numerics);
    if (status == AT_OK)
        status = at_guarded_launch(runner, variant, problem, AT_POISON_JUDGED, NULL, seed, TIMEOUT_SECONDS, &reply,
                                   &outputs);
    if (at_numerics_format(&numerics, row->numerics, sizeof row->numerics) !=
        AT_OK) /* the line's, where it was asked in vain */
        row->numerics[0] = 0;
    row->compared = row->wrong = row->model_compared = row->model_equal = 0;
    if (status == AT_CRASHED || status == AT_HUNG || status == AT_PROTOCOL) {
        tell(row,
             status == AT_HUNG      ? AT_STATE_HUNG
             : status == AT_CRASHED ? AT_STATE_CRASHED
                                    : AT_STATE_ERROR,
             "", at_error_message());
        row->wrong = 1;
        return AT_OK;
    }
    AT_TRY(status);
    if (reply.outcome != AT_RAN) {
        const int declined = reply.outcome == AT_RUN_UNSUPPORTED;
        tell(row, declined ? AT_STATE_UNSUPPORTED : AT_STATE_ERROR,
             declined ? "UNSUPPORTED: " : "failed: ", reply.reason);
        row->wrong = !declined;
        return AT_OK;
    }
    if (!tell_dirty(&outputs, "DIRTY: ", row))
        status = compare_rows(problem, &numerics, &outputs, rows_seed, row);
    if (row->wrong && !row->verdict[0]) {
        char text[192];
        snprintf(text, sizeof text, "%lld of %lld elements of %lld rows (--rows-seed %lld)", (long long)row->wrong,
                 (long long)row->compared, (long long)row->rows_checked, (long long)rows_seed);
        tell(row, AT_STATE_WRONG, "WRONG: ", text);
    } else if (!row->wrong) {
        tell(row, AT_STATE_PASS, row->model_compared ? "MODEL-EXACT" : "within its limits", "");
    }
    at_outputs_release(&outputs);
    return status;
}
