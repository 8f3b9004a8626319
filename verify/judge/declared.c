/* The neighbours of a declaration, modelled on some rows of a case and given to the comparison.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/declared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/attention.h"
#include "verify/judge/batch.h"
#include "verify/judge/compare.h"
#include "verify/runner/poison.h"

/* An order of summation: what no sum shows to be another, no equal launch or other batch can show either. */
static const uint64_t ORDER = AT_DECLARES(qk_lanes) | AT_DECLARES(qk_run) | AT_DECLARES(qk_tree) |
                              AT_DECLARES(l_lanes) | AT_DECLARES(l_run) | AT_DECLARES(l_tree) | AT_DECLARES(block) |
                              AT_DECLARES(pv_chunk) | AT_DECLARES(pv_spread) | AT_DECLARES(split);
/* What a declaration without an order still says: the formats that its limit is made of. Its exponential is none of them:
 * what another one is off by is less than what the sum in its argument may be. */
static const uint64_t FORMATS =
    AT_DECLARES(qk_unit) | AT_DECLARES(pv_unit) | AT_DECLARES(p) | AT_DECLARES(scale_on) | AT_DECLARES(gamma_on);

enum at_refuted at_declared_refuted(const struct at_op *op, const struct at_numerics *declared, int field) {
    switch (field) {
    case AT_FIELD_free_order:
        return AT_REFUTED_NOT;
    case AT_FIELD_repeats:
        return declared->repeats ? AT_REFUTED_RELAUNCH : AT_REFUTED_NOT;
    case AT_FIELD_batch_invariant:
        return declared->batch_invariant && op->batch != AT_DIM_NONE ? AT_REFUTED_BATCHES : AT_REFUTED_NOT;
    case AT_FIELD_tail:
        return op->kind == AT_KIND_ATTENTION ? AT_REFUTED_POISON : AT_REFUTED_NOT;
    default:
        if (!(op->declares >> field & 1) || (declared->free_order && !(FORMATS >> field & 1)))
            return AT_REFUTED_NOT;
        return AT_REFUTED_MODEL;
    }
}

/* One evaluation's arrays, as large as the outputs: operators write rows in place. */
struct values {
    double *of[AT_MAX_TENSORS];
};

struct trial {
    const struct at_problem *problem;
    const struct at_numerics *declared; /* whose neighbours are numbered the same on every problem */
    struct at_numerics here;            /* what it means on this one's activations */
    int n_outputs, outputs[AT_MAX_TENSORS];
    int64_t count[AT_MAX_TENSORS];
    struct values want, limit, model, interval, got, got_interval;
    struct at_tensor kernel[AT_MAX_TENSORS]; /* what a kernel with the neighbour's arithmetic leaves */
    int64_t n_rows, *row;
};

static void release_values(struct values *v) {
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        free(v->of[t]);
}

static void close_trial(struct trial *t) {
    release_values(&t->want);
    release_values(&t->limit);
    release_values(&t->model);
    release_values(&t->interval);
    release_values(&t->got);
    release_values(&t->got_interval);
    for (int i = 0; i < AT_MAX_TENSORS; i++)
        free(t->kernel[i].data);
    free(t->row);
}

static at_status open_values(const struct trial *t, struct values *v) {
    for (int o = 0; o < t->n_outputs; o++) {
        v->of[t->outputs[o]] = calloc((size_t)t->count[t->outputs[o]] + 1, sizeof(double));
        if (!v->of[t->outputs[o]])
            return AT_FAIL(AT_NO_MEMORY, "no memory for %lld modelled values", (long long)t->count[t->outputs[o]]);
    }
    return AT_OK;
}

static int ends_request(const struct at_problem *p, int64_t row, int64_t rows) {
    return row + 1 == rows ||
           (p->op->request_of_row && p->op->request_of_row(p, row) != p->op->request_of_row(p, row + 1));
}

/* 1 while there is room for one more row. */
static int take_row(struct trial *t, int64_t row, double *work) {
    *work -= t->problem->op->row_work(t->problem, row);
    if (t->n_rows > 0 && *work < 0)
        return 0;
    t->row[t->n_rows++] = row;
    return 1;
}

/* Rows in the order in which they are looked at: those that end requests, the last first, then ever finer grids. */
static at_status choose_rows(struct trial *t, double work) {
    const int64_t rows = t->problem->op->rows(t->problem);
    int64_t step = 1;
    t->row = malloc(((size_t)rows + 1) * sizeof *t->row);
    if (!t->row)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld rows", (long long)rows);
    for (int64_t row = rows - 1; row >= 0; row--)
        if (ends_request(t->problem, row, rows) && !take_row(t, row, &work))
            return AT_OK;
    while (step < rows)
        step *= 2;
    for (int64_t before = 0; step > 0; before = step, step /= 2) /* what was on the grid before has been taken */
        for (int64_t row = 0; row < rows; row += step)
            if ((!before || row % before) && !ends_request(t->problem, row, rows) && !take_row(t, row, &work))
                return AT_OK;
    return AT_OK;
}

/* What the declaration itself allows: its model's bits and interval; without an order, exact values and limits. */
static at_status judge_declared(struct trial *t) {
    struct at_eval eval = { 0 };
    const int modelled = !t->declared->free_order;
    memcpy(eval.value, modelled ? t->model.of : t->want.of, sizeof eval.value);
    memcpy(eval.limit, modelled ? t->interval.of : t->limit.of, sizeof eval.limit);
    for (int64_t i = 0; i < t->n_rows; i++) {
        const int64_t row = t->row[i];
        const struct at_op *op = t->problem->op;
        AT_TRY((modelled ? op->model : op->evaluate)(t->problem, &t->here, row, row + 1, &eval));
    }
    return AT_OK;
}

/* `modelled`: something is going to be modelled. */
static at_status open_trial(struct trial *t, double work, int modelled) {
    const struct at_op *op = t->problem->op;
    for (int i = 0; i < op->n_tensors; i++) {
        if (op->tensors[i].role == AT_IN)
            continue;
        t->outputs[t->n_outputs++] = i;
        t->kernel[i] = t->problem->tensors[i];
        t->kernel[i].data = NULL;
        t->count[i] = at_tensor_count(&t->kernel[i]);
        if (!op->declares || !modelled) /* outputs may be large */
            continue;
        t->kernel[i].data = calloc(1, (size_t)at_tensor_bytes(&t->kernel[i]) + 1);
        if (!t->kernel[i].data)
            return AT_FAIL(AT_NO_MEMORY, "no memory for %lld outputs", (long long)t->count[i]);
    }
    if (!op->declares || !modelled)
        return AT_OK;
    struct values *all[] = { &t->want, &t->limit, &t->model, &t->interval, &t->got, &t->got_interval };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        AT_TRY(open_values(t, all[i]));
    AT_TRY(choose_rows(t, work));
    return judge_declared(t);
}

/* Is element e rejected when a kernel leaves this value there? */
static int rejects(const struct at_comparison *c, int64_t e, double value) {
    at_store_code(c->got->format, c->got->data, (size_t)e, at_encode(c->got->format, value));
    return at_compare_rejects(c, e);
}

/* Would a kernel with the neighbour's arithmetic have been rejected in the row? Where the neighbour's value is a range (a C
 * library's exponential), no kernel may be let off: its middle and both ends are rejected, on one side of the model. Of
 * `ranged` fields the range is itself what the neighbour is told by, and its middle alone is looked at. */
static int is_rejected(struct trial *t, int64_t row, int ranged) {
    for (int o = 0; o < t->n_outputs; o++) {
        const int i = t->outputs[o];
        const int modelled = !t->declared->free_order;
        const struct at_comparison c = { .got = &t->kernel[i],
                                         .want = modelled ? t->model.of[i] : t->want.of[i],
                                         .limit = t->limit.of[i],
                                         .model = modelled ? t->model.of[i] : NULL,
                                         .interval = t->interval.of[i],
                                         .problem = t->problem,
                                         .numerics = &t->here,
                                         .tensor = i,
                                         .count = t->count[i] };
        int64_t first, count;
        t->problem->op->row_span(t->problem, i, row, &first, &count);
        for (int64_t e = first; e < first + count; e++) {
            const double mid = t->got.of[i][e], width = ranged ? 0 : t->got_interval.of[i][e];
            if (!rejects(&c, e, mid))
                continue;
            if (!(width > 0))
                return 1;
            const int below = mid + width<c.want[e], above = mid - width> c.want[e];
            if ((below || above) && rejects(&c, e, mid - width) && rejects(&c, e, mid + width))
                return 1;
        }
    }
    return 0;
}

/* A limit only says "not worse than": a neighbour whose own limit is nowhere wider claims no less. *is = -1 for those and
 * for neighbours that do not fit the problem. */
static at_status try_limit(struct trial *t, const struct at_numerics *neighbour, int *is) {
    struct at_eval eval = { 0 };
    memcpy(eval.limit, t->got.of, sizeof eval.limit);
    memcpy(eval.value, t->model.of, sizeof eval.value); /* which no order means is free */
    *is = -1;
    for (int64_t i = 0; i < t->n_rows && *is < 0; i++) {
        const struct at_op *op = t->problem->op;
        const at_status status = op->evaluate(t->problem, neighbour, t->row[i], t->row[i] + 1, &eval);
        if (status == AT_USAGE || status == AT_UNSUPPORTED)
            return AT_OK;
        AT_TRY(status);
        for (int o = 0; o < t->n_outputs; o++) {
            int64_t first, count;
            op->row_span(t->problem, t->outputs[o], t->row[i], &first, &count);
            for (int64_t e = first; e < first + count; e++)
                if (t->got.of[t->outputs[o]][e] > t->limit.of[t->outputs[o]][e])
                    *is = 0;
        }
    }
    return AT_OK;
}

/* *is = 1 when the comparison tells the neighbour from the declaration, on the first row that does; -1: no model. */
static at_status try_neighbour(struct trial *t, const struct at_numerics *neighbour, int ranged, int *is) {
    struct at_numerics ordered = *neighbour;
    struct at_eval eval = { 0 };
    ordered.free_order = 0; /* of a declaration without an order, a kernel that has some order */
    memcpy(eval.value, t->got.of, sizeof eval.value);
    memcpy(eval.limit, t->got_interval.of, sizeof eval.limit);
    *is = t->n_rows > 0 ? 0 : -1; /* nothing to model anything on */
    if (t->declared->free_order)
        AT_TRY(try_limit(t, neighbour, is));
    for (int64_t i = 0; i < t->n_rows && *is == 0; i++) {
        const at_status status = t->problem->op->model(t->problem, &ordered, t->row[i], t->row[i] + 1, &eval);
        if (status == AT_USAGE || status == AT_UNSUPPORTED) {
            *is = -1;
            return AT_OK;
        }
        AT_TRY(status);
        *is = is_rejected(t, t->row[i], ranged);
    }
    return AT_OK;
}

static at_status try_field(struct trial *t, int field, struct at_declared_test *test) {
    struct at_neighbours near;
    at_neighbours(t->declared, field, &near);
    for (int i = 0; i < near.n; i++) {
        int is;
        const struct at_numerics neighbour = at_numerics_on(&near.of[i], t->problem->dtype);
        if (memcmp(&neighbour, &t->here, sizeof neighbour) == 0) /* another one on other activations */
            continue;
        AT_TRY(try_neighbour(t, &neighbour, field == AT_FIELD_exp || field == AT_FIELD_lse || field == AT_FIELD_tanh,
                             &is));
        test->has_model[field] |= (unsigned)(is >= 0) << i;
        test->rejected[field] |= (unsigned)(is > 0) << i;
    }
    if (test->has_model[field])
        test->modelled |= UINT64_C(1) << field;
    if (test->rejected[field])
        test->tested |= UINT64_C(1) << field;
    return AT_OK;
}

/* Rows of keys that no request owns, which poison is laid into. */
static int has_poison(const struct at_problem *p) {
    int64_t owned = 0;
    for (int64_t r = 0; r < p->sizes.b; r++)
        owned += at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r);
    return p->sizes.slots > owned && owned > 0;
}

static int has_elements(const struct trial *t) {
    for (int o = 0; o < t->n_outputs; o++)
        if (t->count[t->outputs[o]])
            return 1;
    return 0;
}

/* Fields that launches decide: here the launches are made, and if bits could differ, they would. An operator without an
 * order to declare has no sum that another order could change. */
static void try_launches(const struct trial *t, struct at_declared_test *test) {
    const uint64_t orders = t->problem->op->declares & ORDER;
    const int shows_order = !orders || t->declared->free_order || (test->tested & orders);
    for (int f = 0; f < AT_FIELD_COUNT; f++) {
        int is = 0;
        switch (at_declared_refuted(t->problem->op, t->declared, f)) {
        case AT_REFUTED_RELAUNCH:
            is = has_elements(t) && shows_order;
            break;
        case AT_REFUTED_BATCHES:
            is = has_elements(t) && shows_order && at_batch_units(t->problem) > 1;
            break;
        case AT_REFUTED_POISON:
            if (!at_has_unowned(t->problem))
                continue; /* every row of keys has an owner, whatever is declared */
            is = has_elements(t) && has_poison(t->problem);
            break;
        default:
            continue;
        }
        test->modelled |= UINT64_C(1) << f;
        test->tested |= (uint64_t)is << f;
    }
}

/* Of the wanted fields, those that the models must run for: a field with neighbours, and launches that want to know
 * whether an order shows. */
static uint64_t modelled_of(const struct at_problem *problem, const struct at_numerics *declared, uint64_t wanted) {
    uint64_t modelled = 0;
    for (int f = 0; f < AT_FIELD_COUNT; f++) {
        const enum at_refuted by = at_declared_refuted(problem->op, declared, f);
        struct at_neighbours near;
        if (!(wanted >> f & 1))
            continue;
        if (by == AT_REFUTED_MODEL)
            at_neighbours(declared, f, &near);
        if (by == AT_REFUTED_RELAUNCH || by == AT_REFUTED_BATCHES || (by == AT_REFUTED_MODEL && near.n > 0))
            modelled |= UINT64_C(1) << f;
    }
    return modelled;
}

at_status at_declared_try(const struct at_problem *problem, const struct at_numerics *declared, uint64_t wanted,
                          double work, struct at_declared_test *test) {
    at_status status = AT_OK;
    struct trial t = { .problem = problem, .declared = declared, .here = at_numerics_on(declared, problem->dtype) };
    memset(test, 0, sizeof *test);
    if (problem->op->declares_on) /* what the model does not read here has no other value to tell it from */
        wanted &= problem->op->declares_on(problem);
    AT_TRY_OUT(open_trial(&t, work, modelled_of(problem, declared, wanted) != 0));
    for (int f = 0; f < AT_FIELD_COUNT; f++)
        if ((wanted >> f & 1) && at_declared_refuted(problem->op, declared, f) == AT_REFUTED_MODEL)
            AT_TRY_OUT(try_field(&t, f, test));
    try_launches(&t, test);
out:
    close_trial(&t);
    return status;
}
