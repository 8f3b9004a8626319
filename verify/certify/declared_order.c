/* What two declarations say of one row in two problems: the same bits, other bits, or nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/certify/certify_measure.h"

/* A row's values as a declaration has them, of the whole output. */
struct modelled {
    struct at_problem problem; /* with outputs of f32 in place of narrower ones */
    struct at_eval eval;
    int exact; /* every element to the bit */
};

static void release(struct modelled *m) {
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        free(m->eval.value[t]);
        free(m->eval.limit[t]);
    }
}

static void widen(const struct at_problem *from, struct at_problem *to) {
    *to = *from;
    for (int t = 0; t < to->op->n_tensors; t++)
        if (to->op->tensors[t].role == AT_OUT && at_format_info(to->tensors[t].format)->bytes < 4)
            to->tensors[t].format = AT_F32;
}

static at_status model(const struct at_problem *given, const struct at_numerics *numerics, int64_t row,
                       struct modelled *m) {
    const struct at_problem *p = &m->problem;
    int64_t from, count;
    *m = (struct modelled){ .exact = !numerics->free_order && numerics->repeats && given->op->model };
    widen(given, &m->problem);
    for (int t = 0; t < p->op->n_tensors && m->exact; t++) {
        const size_t n = (size_t)at_tensor_count(&p->tensors[t]) + 1;
        if (p->op->tensors[t].role == AT_IN)
            continue;
        m->eval.value[t] = calloc(n, sizeof(double));
        m->eval.limit[t] = calloc(n, sizeof(double));
        if (!m->eval.value[t] || !m->eval.limit[t])
            return AT_FAIL(AT_NO_MEMORY, "no memory for modelled values");
    }
    if (!m->exact)
        return AT_OK;
    const struct at_numerics here = at_numerics_on(numerics, given->dtype);
    const at_status status = p->op->model(p, &here, row, row + 1, &m->eval);
    if (status == AT_UNSUPPORTED || status == AT_USAGE) { /* no order here, or none that fits the case */
        at_error_clear();
        m->exact = 0;
        return AT_OK;
    }
    AT_TRY(status);
    for (int t = 0; t < p->op->n_tensors; t++) {
        if (!m->eval.limit[t])
            continue;
        p->op->row_span(p, t, row, &from, &count);
        for (int64_t i = 0; i < count; i++)
            m->exact &= m->eval.limit[t][from + i] <= 0;
    }
    return AT_OK;
}

static int equal(const struct modelled *x, int64_t x_row, const struct modelled *y, int64_t y_row) {
    const struct at_problem *a = &x->problem, *b = &y->problem;
    for (int t = 0; t < a->op->n_tensors; t++) {
        int64_t from, count, to, other;
        if (!x->eval.value[t])
            continue;
        a->op->row_span(a, t, x_row, &from, &count);
        b->op->row_span(b, t, y_row, &to, &other);
        for (int64_t i = 0; i < count; i++)
            if (at_encode(a->tensors[t].format, x->eval.value[t][from + i]) !=
                at_encode(b->tensors[t].format, y->eval.value[t][to + i]))
                return 0;
    }
    return 1;
}

at_status at_declared_compare(const struct at_problem *a, const struct at_numerics *a_numerics, int64_t a_row,
                              const struct at_problem *b, const struct at_numerics *b_numerics, int64_t b_row,
                              enum at_declared_order *order) {
    at_status status = AT_OK;
    struct modelled x = { 0 }, y = { 0 };
    *order = AT_DECLARED_NOTHING;
    AT_TRY_OUT(model(a, a_numerics, a_row, &x));
    if (x.exact)
        AT_TRY_OUT(model(b, b_numerics, b_row, &y));
    if (x.exact && y.exact)
        *order = equal(&x, a_row, &y, b_row) ? AT_DECLARED_SAME : AT_DECLARED_OTHER;
out:
    release(&x);
    release(&y);
    return status;
}
