/* Drawing inputs, the run in double, and what lies between it and the kernels'.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/stack/stack_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "datasets/fill/random.h"
#include "verify/judge/answer.h"

enum { PIECE = 4096 };

/* ---- inputs ---- */

struct draw {
    struct at_random random;
    double std;
    enum at_format format;
    struct at_stack_value *value;
};

static at_status draw_piece(void *context, int64_t begin, int64_t end, int worker) {
    const struct draw *d = context;
    (void)worker;
    for (int64_t i = begin; i < end; i += PIECE) {
        const int64_t n = end - i < PIECE ? end - i : PIECE;
        double *exact = d->value->exact + i;
        at_random_normals(&d->random, (uint64_t)i, n, exact);
        for (int64_t k = 0; k < n; k++) {
            at_store(d->format, d->value->stored, (size_t)(i + k), d->std * exact[k]);
            exact[k] = at_load(d->format, d->value->stored, (size_t)(i + k));
        }
    }
    return AT_OK;
}

static at_status draw_flow(const struct at_stack_plan *plan, const struct at_stack_flow *flow, int64_t layer,
                           struct at_stack_value *value) {
    const int64_t n = at_tensor_count(&flow->shape);
    double scale;
    AT_TRY(at_stack_number(plan->stack, flow->input->line, flow->input->scale, &scale));
    free(value->stored);
    free(value->exact);
    value->stored = calloc(1, (size_t)at_tensor_bytes(&flow->shape) + 1);
    value->exact = calloc((size_t)n + 1, sizeof *value->exact);
    if (!value->stored || !value->exact)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %s", flow->name);
    /* Weights, and what caches begin with, are of all turns. */
    const int of_turn = !flow->input->is_weight && !flow->input->is_cache;
    const uint64_t place = (uint64_t)(layer + 1) + (of_turn ? (uint64_t)plan->turn << 32 : 0);
    struct draw d = { .random = { plan->seed, at_random_stream(flow->name, place) },
                      .std = flow->input->is_weight ? 1 / sqrt(scale) : scale,
                      .format = flow->shape.format,
                      .value = value };
    return at_parallel(n, (int64_t)PIECE * 16, at_threads(), draw_piece, &d);
}

at_status at_stack_draw(const struct at_stack_plan *plan, enum at_stack_part part, int64_t layer,
                        struct at_stack_value *values) {
    for (int i = 0; i < plan->n_flows; i++)
        if (plan->flows[i].input && plan->flows[i].input->part == part)
            AT_TRY(draw_flow(plan, &plan->flows[i], layer, &values[i]));
    return AT_OK;
}

void at_stack_values_release(const struct at_stack_plan *plan, struct at_stack_value *values) {
    for (int i = 0; values && i < plan->n_flows; i++) {
        free(values[i].stored);
        free(values[i].exact);
    }
    free(values);
}

/* ---- the run in double ---- */

/* The same problem with activations and flows in double. Parameters of a format that the operator fixes stay as they are stored. */
static at_status widen(const struct at_stack_planned *step, const struct at_problem *data,
                       const struct at_stack_value *values, struct at_problem *wide, double *drawn[AT_MAX_TENSORS]) {
    const struct at_op *op = data->op;
    const struct at_scalar *scalar;
    *wide = *data;
    wide->dtype = AT_F64;
    for (int i = 0; (scalar = at_op_scalar_at(op, i)); i++)
        if (scalar->type == AT_SCALAR_FORMAT)
            at_scalar_set(wide, scalar, AT_F64);
    at_problem_shape(wide);
    for (int t = 0; t < op->n_tensors; t++) {
        const struct at_tensor *from = &data->tensors[t];
        if (step->in[t] >= 0 && from->format == AT_I32) { /* places and slots are what they are */
            wide->tensors[t].data = values[step->in[t]].stored;
            continue;
        }
        if (step->in[t] >= 0) { /* a flow, also where the operator has a format of its own for it: a state in f32 */
            wide->tensors[t].format = AT_F64;
            wide->tensors[t].data = values[step->in[t]].exact;
            continue;
        }
        if (!from->data || wide->tensors[t].format == from->format)
            continue;
        const int64_t n = at_tensor_count(from);
        drawn[t] = calloc((size_t)n + 1, sizeof *drawn[t]);
        if (!drawn[t])
            return AT_FAIL(AT_NO_MEMORY, "no memory for tensor %s in double", op->tensors[t].name);
        at_decode_array(from->format, (size_t)n, from->data, drawn[t]);
        wide->tensors[t].data = drawn[t];
    }
    return AT_OK;
}

at_status at_stack_evaluate(const struct at_stack_planned *step, const struct at_problem *data,
                            const struct at_stack_value *values, int threads, double *outputs[AT_MAX_TENSORS]) {
    at_status status = AT_OK;
    struct at_problem wide;
    struct at_eval eval = { 0 };
    double *drawn[AT_MAX_TENSORS] = { NULL };
    AT_TRY_OUT(widen(step, data, values, &wide, drawn));
    for (int t = 0; t < data->op->n_tensors; t++) {
        if (data->op->tensors[t].role == AT_IN)
            continue;
        eval.value[t] = outputs[t] = calloc((size_t)at_tensor_count(&wide.tensors[t]) + 1, sizeof *outputs[t]);
        if (!outputs[t])
            AT_FAIL_OUT(AT_NO_MEMORY, "no memory for tensor %s in double", data->op->tensors[t].name);
    }
    status = at_evaluate_rows(&wide, NULL, AT_EVALUATE_EXACT, threads, &eval);
out:
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        free(drawn[t]);
    return status;
}

/* ---- errors ---- */

struct sum {
    double squares, largest;
    int64_t n;
    int has_others; /* NaNs or infinities, which are not in the rest */
};

static void add(struct sum *s, double x) {
    s->has_others |= !isfinite(x);
    if (!isfinite(x))
        return;
    s->squares += x * x;
    s->largest = fabs(x) > s->largest ? fabs(x) : s->largest;
    s->n++;
}

static double rms(const struct sum *s) { return s->n ? sqrt(s->squares / (double)s->n) : 0; }

/* An error of an element that has no number is larger than any: what is left would read as next to none. */
static double error_rms(const struct sum *s) { return s->has_others ? INFINITY : rms(s); }
static double error_max(const struct sum *s) { return s->has_others ? INFINITY : s->largest; }

void at_stack_measure(const struct at_tensor *stored, const double *here, const double *exact,
                      struct at_stack_error *e) {
    struct sum all = { 0 }, kernel = { 0 }, entered = { 0 }, inherited = { 0 }, error = { 0 };
    const int64_t n = at_tensor_count(stored);
    memset(e, 0, sizeof *e);
    e->elements = n;
    for (int64_t i = 0; i < n; i++) {
        const double got = at_tensor_get(stored, i);
        e->nans += isnan(got) != 0;
        e->infinities += isinf(got) != 0;
        e->beyond += fabs(exact[i]) > at_format_info(AT_F16)->max;
        add(&all, exact[i]);
        add(&kernel, got);
        add(&error, got - exact[i]);
        if (here) {
            add(&entered, got - here[i]);
            add(&inherited, here[i] - exact[i]);
        }
    }
    e->rms = rms(&all);
    e->largest = e->infinities ? INFINITY : kernel.largest;
    e->entered_max = error_max(&entered);
    e->entered_rms = error_rms(&entered);
    e->inherited_rms = error_rms(&inherited);
    e->error_max = error_max(&error);
    e->error_rms = error_rms(&error);
}
