/* The dump of one job: inputs, outputs, references, and every intermediate of the attention rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/dump.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/arrays.h"

enum { MAX_ARRAYS = 96 };

struct dump {
    struct at_array arrays[MAX_ARRAYS];
    double *owned[MAX_ARRAYS]; /* what was made here; NULL where the array is borrowed */
    int n;
    /* Intermediates: AT_STAGE_COUNT tables [rows, max_sk], NaN where a key is hidden. */
    double *stages[AT_STAGE_COUNT];
    int64_t rows, max_sk;
};

static struct at_array *add(struct dump *d, const char *group, const char *name, const char *long_name,
                            const char *axis0, int64_t n0, const char *axis1, int64_t n1, const double *data,
                            double *owned) {
    if (d->n == MAX_ARRAYS)
        return NULL;
    struct at_array *a = &d->arrays[d->n];
    memset(a, 0, sizeof *a);
    snprintf(a->group, sizeof a->group, "%s", group);
    snprintf(a->name, sizeof a->name, "%s", name);
    snprintf(a->units, sizeof a->units, "1");
    snprintf(a->long_name, sizeof a->long_name, "%s", long_name);
    snprintf(a->axes[0], sizeof a->axes[0], "%s", axis0);
    snprintf(a->axes[1], sizeof a->axes[1], "%s", axis1);
    a->format = AT_F64;
    a->rank = 2;
    a->shape[0] = n0;
    a->shape[1] = n1;
    a->data = data;
    d->owned[d->n++] = owned;
    return a;
}

/* A tensor's elements as doubles, [first dimension, all others]. */
static at_status add_tensor(struct dump *d, const char *group, const char *name, const char *long_name,
                            const struct at_tensor *t) {
    int64_t n = at_tensor_count(t), n0 = t->rank ? t->shape[0] : 0;
    char axis0[32], axis1[32];
    double *values = calloc((size_t)n + 1, sizeof *values);
    if (!values)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a dump");
    at_decode_array(t->format, (size_t)n, t->data, values);
    snprintf(axis0, sizeof axis0, "%.20s_row", name);
    snprintf(axis1, sizeof axis1, "%.20s_element", name);
    if (!add(d, group, name, long_name, axis0, n0, axis1, n0 ? n / n0 : 0, values, values)) {
        free(values);
        return AT_FAIL(AT_BUG, "a dump of more than %d arrays", MAX_ARRAYS);
    }
    return AT_OK;
}

static at_status add_outputs(struct dump *d, const struct at_answer *a, const struct at_judgement *j,
                             const struct at_outputs *outputs) {
    for (int o = 0; o < a->n_outputs; o++) {
        int t = a->outputs[o];
        const char *name = a->problem->op->tensors[t].name;
        int64_t n0 = a->problem->tensors[t].rank ? a->problem->tensors[t].shape[0] : 0, n1 = n0 ? a->count[t] / n0 : 0;
        AT_TRY(add_tensor(d, name, "got", "what the kernel wrote", &outputs->tensors[t]));
        add(d, name, "exact", "exact value of the operator on the stored inputs", "got_row", n0, "got_element", n1,
            a->value[t], NULL);
        add(d, name, "limit", "limit of |got - exact|", "got_row", n0, "got_element", n1, j->limit[t], NULL);
        if (j->has_model) {
            add(d, name, "model", "value of the declared arithmetic", "got_row", n0, "got_element", n1, j->model[t],
                NULL);
            add(d, name, "interval", "deviation from the model still allowed", "got_row", n0, "got_element", n1,
                j->interval[t], NULL);
        }
    }
    return AT_OK;
}

static void keep_stage(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values) {
    struct dump *d = context;
    if (d->stages[stage])
        memcpy(d->stages[stage] + row * d->max_sk, values, (size_t)n * sizeof *values);
}

/* Scores, FIR and P of the exact evaluation, and of the modelled one where there is one. */
static at_status add_stages(struct dump *d, const struct at_answer *a, const struct at_numerics *numerics,
                            int modelled) {
    static const enum at_stage kept[] = { AT_STAGE_score, AT_STAGE_scaled, AT_STAGE_gate_in, AT_STAGE_p };
    struct at_eval eval = { .trace = keep_stage, .trace_context = d };
    const struct at_op *op = a->problem->op;
    const char *group = modelled ? "stages_model" : "stages_exact";
    double *scratch[AT_MAX_TENSORS] = { 0 };
    at_status status = AT_OK;
    d->rows = a->rows;
    d->max_sk = a->problem->sizes.max_sk;
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
        size_t n = (size_t)(d->rows * d->max_sk);
        double *table = calloc(n + 1, sizeof *table);
        if (!table || !add(d, group, at_stage_name(kept[k]), at_stage_meaning(kept[k]), "row", d->rows, "key",
                           d->max_sk, table, table)) {
            free(table);
            return AT_FAIL(AT_NO_MEMORY, "no memory for a dump of %lld rows", (long long)d->rows);
        }
        for (size_t i = 0; i < n; i++)
            table[i] = NAN;
        d->stages[kept[k]] = table;
    }
    for (int o = 0; o < a->n_outputs; o++) {
        scratch[o] = calloc((size_t)a->count[a->outputs[o]] + 1, sizeof(double));
        if (!scratch[o])
            AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a dump");
        eval.value[a->outputs[o]] = scratch[o];
    }
    AT_TRY_OUT(at_evaluate_rows(a->problem, numerics, modelled ? AT_EVALUATE_MODEL : AT_EVALUATE_EXACT, 1, &eval));
out:
    for (int o = 0; o < op->n_tensors; o++)
        free(scratch[o]);
    memset(d->stages, 0, sizeof d->stages);
    return status;
}

at_status at_dump_job(const char *path, const struct at_answer *a, const struct at_judgement *j,
                      const struct at_outputs *outputs, const struct at_numerics *numerics) {
    at_status status = AT_OK;
    const struct at_problem *p = a->problem;
    struct dump *d = calloc(1, sizeof *d);
    if (!d)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a dump");
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role != AT_OUT && p->tensors[t].data)
            AT_TRY_OUT(add_tensor(d, "inputs", p->op->tensors[t].name, p->op->tensors[t].meaning, &p->tensors[t]));
    AT_TRY_OUT(add_outputs(d, a, j, outputs));
    if (a->has_ledger) {
        AT_TRY_OUT(add_stages(d, a, numerics, 0));
        if (j->has_model)
            AT_TRY_OUT(add_stages(d, a, numerics, 1));
    }
    AT_TRY_OUT(at_arrays_write(path, d->arrays, d->n));
out:
    for (int i = 0; i < d->n; i++)
        free(d->owned[i]);
    free(d);
    return status;
}
