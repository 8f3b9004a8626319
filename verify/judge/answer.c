/* Exact values, limits and modelled values of a case, over threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/answer.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "datasets/fill/random.h"
#include "fast/fast.h"

struct evaluation {
    const struct at_problem *problem;
    const struct at_numerics *numerics;
    enum at_evaluation what;
    const struct at_eval *eval;
    pthread_mutex_t merge;
};

static at_status evaluate_chunk(void *context, int64_t begin, int64_t end, int worker) {
    struct evaluation *e = context;
    struct at_eval mine = *e->eval;
    struct at_ledger ledger;
    (void)worker;
    at_ledger_init(&ledger);
    if (mine.ledger)
        mine.ledger = &ledger;
    const struct at_op *op = e->problem->op;
    if (e->what == AT_EVALUATE_MODEL)
        AT_TRY(op->model(e->problem, e->numerics, begin, end, &mine));
    else
        AT_TRY(op->evaluate(e->problem, e->numerics, begin, end, &mine));
    if (e->eval->ledger) {
        pthread_mutex_lock(&e->merge);
        at_ledger_merge(e->eval->ledger, &ledger);
        pthread_mutex_unlock(&e->merge);
    }
    return AT_OK;
}

at_status at_evaluate_rows(const struct at_problem *problem, const struct at_numerics *numerics,
                           enum at_evaluation what, int threads, struct at_eval *eval) {
    struct at_eval mine = *eval;
    struct evaluation e = { problem, numerics, what, &mine, PTHREAD_MUTEX_INITIALIZER };
    void *prepared = at_op_prepare(problem);
    mine.prepared = prepared;
    int64_t rows = problem->op->rows(problem), chunk = rows / ((int64_t)threads * 8) + 1;
    at_status status = at_parallel(rows, chunk, threads, evaluate_chunk, &e);
    pthread_mutex_destroy(&e.merge);
    free(prepared);
    return status;
}

static at_status doubles(int64_t n, double **out) {
    *out = calloc((size_t)n + 1, sizeof **out);
    return *out ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for %lld reference values", (long long)n);
}

static at_status fast_values(struct at_answer *a, int threads, uint64_t seed, struct at_eval *eval) {
    enum { SAMPLES = 64 };
    a->fast_tier = 1;
    AT_TRY(at_fast_evaluate(a->problem, NULL, threads, eval, NULL, NULL, NULL));
    return at_fast_cross_check(a->problem, eval, SAMPLES, seed, &a->fast_ratio);
}

static at_status bits_of_outputs(struct at_answer *a) {
    for (int o = 0; o < a->n_outputs; o++) {
        const int t = a->outputs[o];
        const size_t bytes = (size_t)a->count[t] * at_format_info(a->problem->tensors[t].format)->bytes;
        a->bits[t] = calloc(1, bytes + 1);
        a->computed[t] = calloc((size_t)a->count[t] + 1, 1);
        if (!a->bits[t] || !a->computed[t])
            return AT_FAIL(AT_NO_MEMORY, "no memory for %zu bytes of codes", bytes);
        if (a->count[t])
            a->problem->op->bits(a->problem, t, a->bits[t], a->computed[t]);
    }
    return AT_OK;
}

at_status at_answer_open(const struct at_problem *problem, int threads, uint64_t seed, struct at_answer *a) {
    at_status status = AT_OK;
    struct at_eval eval = { 0 };
    const struct at_op *op = problem->op;
    memset(a, 0, sizeof *a);
    a->problem = problem;
    a->decoy_split = -1;
    a->rows = op->rows(problem);
    at_ledger_init(&a->ledger);
    a->has_ledger = op->has_ledger;
    for (int t = 0; t < op->n_tensors; t++) {
        if (op->tensors[t].role == AT_IN || (op->tensors[t].optional && !problem->tensors[t].rank))
            continue;
        struct at_tensor shape_only = problem->tensors[t];
        int64_t n = 1;
        for (int i = 0; i < shape_only.rank; i++)
            n *= shape_only.shape[i];
        a->outputs[a->n_outputs++] = t;
        a->count[t] = shape_only.rank ? n : 0;
        AT_TRY_OUT(doubles(a->count[t], &a->value[t]));
        eval.value[t] = a->value[t];
    }
    if (a->has_ledger)
        eval.ledger = &a->ledger;
    if (at_fast_supports(problem))
        AT_TRY_OUT(fast_values(a, threads, seed, &eval));
    else
        AT_TRY_OUT(at_evaluate_rows(problem, NULL, AT_EVALUATE_EXACT, threads, &eval));
    if (op->bits)
        AT_TRY_OUT(bits_of_outputs(a));
out:
    if (status != AT_OK)
        at_answer_close(a);
    return status;
}

void at_answer_close(struct at_answer *a) {
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        free(a->value[t]);
        free(a->bits[t]);
        free(a->computed[t]);
    }
    for (int i = 0; i < a->n_decoys; i++)
        for (int t = 0; t < AT_MAX_TENSORS; t++)
            free(a->decoys[i].value[t]);
    free(a->sample);
    memset(a, 0, sizeof *a);
}

static at_status limits(struct at_answer *a, const struct at_numerics *numerics, int threads, struct at_judgement *j) {
    struct at_eval eval = { 0 };
    at_status status = AT_OK;
    double *scratch[AT_MAX_TENSORS] = { 0 };
    for (int o = 0; o < a->n_outputs; o++) {
        int t = a->outputs[o];
        AT_TRY_OUT(doubles(a->count[t], &j->limit[t]));
        AT_TRY_OUT(doubles(a->count[t], &scratch[t]));
        eval.limit[t] = j->limit[t];
        eval.value[t] = scratch[t];
    }
    /* The limit includes the reference's own error, so it must come from the tier that gave the values. */
    if (a->fast_tier)
        AT_TRY_OUT(at_fast_evaluate(a->problem, numerics, threads, &eval, NULL, NULL, NULL));
    else
        AT_TRY_OUT(at_evaluate_rows(a->problem, numerics, AT_EVALUATE_EXACT, threads, &eval));
out:
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        free(scratch[t]);
    return status;
}

/* A modelled run into values (and intervals, unless NULL) of every output. */
static at_status model_into(struct at_answer *a, const struct at_numerics *numerics, int threads,
                            double *values[AT_MAX_TENSORS], double **intervals, struct at_ledger *ledger) {
    struct at_eval eval = { 0 };
    for (int o = 0; o < a->n_outputs; o++) {
        int t = a->outputs[o];
        AT_TRY(doubles(a->count[t], &values[t]));
        eval.value[t] = values[t];
        if (!intervals)
            continue;
        AT_TRY(doubles(a->count[t], &intervals[t]));
        eval.limit[t] = intervals[t];
    }
    eval.ledger = a->has_ledger ? ledger : NULL;
    return at_evaluate_rows(a->problem, numerics, AT_EVALUATE_MODEL, threads, &eval);
}

static int inputs_finite(const struct at_problem *p) {
    if (p->op->inputs_finite)
        return p->op->inputs_finite(p);
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role != AT_OUT && p->tensors[t].data &&
            !at_tensor_finite(&p->tensors[t], 0, at_tensor_count(&p->tensors[t])))
            return 0;
    return 1;
}

/* Is there an element without a limit? */
static int lacks_limit(const struct at_answer *a, const struct at_judgement *j) {
    for (int o = 0; o < a->n_outputs; o++)
        for (int64_t i = 0; i < a->count[a->outputs[o]]; i++)
            if (!(j->limit[a->outputs[o]][i] < INFINITY))
                return 1;
    return 0;
}

/* ---- modelled values of some rows ---- */

/* Beyond this many multiply-adds in all a case is modelled in part, where that is asked for. */
static const double MODEL_WORK = 4e7;

static int wants_part(const struct at_answer *a, int64_t model_rows) {
    double work = 0;
    for (int64_t r = 0; r < a->rows && work <= MODEL_WORK; r++)
        work += a->problem->op->row_work(a->problem, r);
    return model_rows > 0 && model_rows < a->rows && work > MODEL_WORK;
}

struct some_rows {
    const struct at_answer *a;
    const struct at_numerics *numerics;
    struct at_judgement *j;
    const int64_t *rows;
    const void *prepared;
};

static at_status model_one(void *context, int64_t begin, int64_t end, int worker) {
    const struct some_rows *s = context;
    struct at_eval eval = { .prepared = s->prepared };
    (void)worker;
    memcpy(eval.value, s->j->model, sizeof eval.value);
    memcpy(eval.limit, s->j->interval, sizeof eval.limit);
    for (int64_t i = begin; i < end; i++)
        AT_TRY(s->a->problem->op->model(s->a->problem, s->numerics, s->rows[i], s->rows[i] + 1, &eval));
    return AT_OK;
}

static void mark_row(const struct at_answer *a, int64_t row, struct at_judgement *j) {
    for (int o = 0; o < a->n_outputs; o++) {
        int64_t first, count;
        a->problem->op->row_span(a->problem, a->outputs[o], row, &first, &count);
        memset(j->modelled[a->outputs[o]] + first, 1, (size_t)count);
    }
}

/* The drawn rows, ascending, each once, and the last one: an end is where kernels err. */
static at_status model_some(struct at_answer *a, const struct at_numerics *numerics, int threads, int64_t n,
                            uint64_t seed, struct at_judgement *j) {
    at_status status = AT_OK;
    struct some_rows s = { a, numerics, j, NULL, NULL };
    int64_t *rows = calloc((size_t)n + 1, sizeof *rows), kept = 0;
    void *prepared = NULL;
    if (!rows)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld rows", (long long)n);
    for (int o = 0; o < a->n_outputs; o++) {
        const int t = a->outputs[o];
        AT_TRY_OUT(doubles(a->count[t], &j->model[t]));
        AT_TRY_OUT(doubles(a->count[t], &j->interval[t]));
        j->modelled[t] = calloc((size_t)a->count[t] + 1, 1);
        if (!j->modelled[t])
            AT_FAIL_OUT(AT_NO_MEMORY, "no memory for marks of %lld elements", (long long)a->count[t]);
    }
    const struct at_random random = { seed, at_random_stream("modelled rows", 0) };
    for (int64_t i = 0; i < n; i++) { /* one of each of n equal parts */
        const int64_t begin = a->rows * i / n, end = a->rows * (i + 1) / n;
        rows[kept++] = i + 1 == n ? a->rows - 1 : begin + at_random_below(&random, (uint64_t)i, end - begin);
        mark_row(a, rows[kept - 1], j);
    }
    s.rows = rows;
    s.prepared = prepared = at_op_prepare(a->problem);
    j->model_is_part = 1;
    status = at_parallel(kept, 1, threads, model_one, &s);
out:
    free(prepared);
    free(rows);
    return status;
}

at_status at_judgement_open(struct at_answer *a, const struct at_numerics *numerics, int threads, int64_t model_rows,
                            uint64_t seed, struct at_judgement *j) {
    at_status status = AT_OK;
    memset(j, 0, sizeof *j);
    at_ledger_init(&j->ledger);
    AT_TRY_OUT(limits(a, numerics, threads, j));
    if (!numerics->free_order) {
        if (wants_part(a, model_rows) && inputs_finite(a->problem) && !lacks_limit(a, j))
            AT_TRY_OUT(model_some(a, numerics, threads, model_rows, seed, j));
        else
            AT_TRY_OUT(model_into(a, numerics, threads, j->model, j->interval, &j->ledger));
        j->has_model = 1;
        goto out;
    }
    struct at_numerics some_order = *numerics;
    some_order.free_order = 0;
    if (!inputs_finite(a->problem)) {
        AT_TRY_OUT(model_into(a, &some_order, threads, j->classes, NULL, &j->ledger));
        j->has_classes = 1;
    } else if (lacks_limit(a, j)) {
        AT_TRY_OUT(model_into(a, &some_order, threads, j->overflow, NULL, NULL));
    }
out:
    if (status != AT_OK)
        at_judgement_close(j);
    return status;
}

void at_judgement_widen(const struct at_answer *a, double factor, struct at_judgement *j) {
    for (int o = 0; factor != 1 && o < a->n_outputs; o++) {
        int t = a->outputs[o];
        for (int64_t i = 0; i < a->count[t]; i++) {
            j->limit[t][i] *= factor;
            if (j->interval[t])
                j->interval[t][i] *= factor;
        }
    }
}

void at_judgement_close(struct at_judgement *j) {
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        free(j->limit[t]);
        free(j->model[t]);
        free(j->interval[t]);
        free(j->modelled[t]);
        free(j->classes[t]);
        free(j->overflow[t]);
    }
    memset(j, 0, sizeof *j);
}
