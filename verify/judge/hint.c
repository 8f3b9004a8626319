/* Neighbours of a declaration, modelled on the rows that are wrong: a kernel that does what a neighbour says is declared wrongly, not
 * computed wrongly.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/hint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "verify/judge/neighbours.h"

enum { ROWS = 3, ELEMENTS_LEAST = 16 };
static const double WORK = 3e5; /* multiply-adds of the rows, of one neighbour */

/* Fields that people get wrong about their own kernels; of the order of a sum only how it is cut. */
static const int fields[] = { AT_FIELD_p,        AT_FIELD_qk_unit, AT_FIELD_pv_unit, AT_FIELD_scale_on,
                              AT_FIELD_qk_lanes, AT_FIELD_split,   AT_FIELD_block };

/* The first rows that have a wrong element; none where they cost too much. */
static int wrong_rows(const struct at_evidence *e, int64_t row[ROWS]) {
    const struct at_problem *p = e->answer->problem;
    double work = 0;
    int n = 0;
    for (int64_t r = 0, rows = p->op->rows(p); r < rows && n < ROWS; r++) {
        int64_t first = 0, count = 0, wrong = 0;
        p->op->row_span(p, e->tensor, r, &first, &count);
        for (int64_t i = first; i < first + count && !wrong; i++)
            wrong = at_compare_rejects(e->comparison, i);
        if (!wrong)
            continue;
        work += p->op->row_work(p, r);
        if (work > WORK)
            break;
        row[n++] = r;
    }
    return n;
}

/* Every element of those rows is within the limits of a declaration without an order. */
static int allows(const struct at_evidence *e, const struct at_numerics *neighbour, const int64_t *row, int n,
                  double *value, double *limit) {
    const struct at_problem *p = e->answer->problem;
    struct at_eval eval = { 0 };
    eval.value[e->tensor] = value;
    eval.limit[e->tensor] = limit;
    for (int r = 0; r < n; r++) {
        int64_t first = 0, count = 0;
        if (p->op->evaluate(p, neighbour, row[r], row[r] + 1, &eval) != AT_OK)
            return 0;
        p->op->row_span(p, e->tensor, row[r], &first, &count);
        for (int64_t i = first; i < first + count; i++)
            if (!(fabs(at_tensor_get(e->comparison->got, i) - e->comparison->want[i]) <= limit[i]))
                return 0;
    }
    return n > 0;
}

/* Of limits alone: most kernels round P to the format of their inputs, and who declares none is held to P in f32. Not any
 * looser format: its limits would take faults, too. */
static int hint_limits(const struct at_evidence *e, const int64_t *row, int n, double *value, double *limit, char *text,
                       size_t size) {
    const struct at_problem *p = e->answer->problem;
    struct at_numerics rounded = *e->numerics;
    if (!(p->op->declares >> AT_FIELD_p & 1) || e->numerics->p != AT_F32 || (p->dtype != AT_F16 && p->dtype != AT_BF16))
        return 0;
    rounded.p = p->dtype;
    if (!allows(e, &rounded, row, n, value, limit))
        return 0;
    return snprintf(text, size,
                    "the first wrong rows are within the limits of p=%s; p=input says that P has the inputs' format",
                    at_format_info(p->dtype)->name) > 0;
}

/* Every element of those rows is the neighbour's, to the bit or within its interval, and enough of them say something. */
static int gives(const struct at_evidence *e, const struct at_numerics *neighbour, const int64_t *row, int n,
                 double *value, double *interval) {
    const struct at_problem *p = e->answer->problem;
    struct at_eval eval = { 0 };
    int64_t telling = 0;
    eval.value[e->tensor] = value;
    eval.limit[e->tensor] = interval;
    for (int r = 0; r < n; r++) {
        int64_t first = 0, count = 0;
        if (p->op->model(p, neighbour, row[r], row[r] + 1, &eval) != AT_OK)
            return 0;
        p->op->row_span(p, e->tensor, row[r], &first, &count);
        for (int64_t i = first; i < first + count; i++) {
            const double got = at_tensor_get(e->comparison->got, i);
            if (!(fabs(got - value[i]) <= interval[i])) /* what is not finite says nothing of a declaration */
                return 0;
            telling += got < 0 || got > 0;
        }
    }
    return telling >= ELEMENTS_LEAST;
}

void at_hint_declaration(const struct at_evidence *e, char *text, size_t size) {
    const struct at_op *op = e->answer->problem->op;
    int64_t row[ROWS];
    text[0] = 0;
    const int limits_alone = e->numerics->free_order;
    if (e->comparison->bits || (!limits_alone && (!e->judgement->has_model || !op->model)))
        return;
    const int n = wrong_rows(e, row);
    double *value = n ? calloc((size_t)e->comparison->count + 1, sizeof *value) : NULL;
    double *interval = n ? calloc((size_t)e->comparison->count + 1, sizeof *interval) : NULL;
    if (value && interval && limits_alone)
        hint_limits(e, row, n, value, interval, text, size);
    for (size_t f = 0; value && interval && !limits_alone && !text[0] && f < sizeof fields / sizeof *fields; f++) {
        struct at_neighbours near = { 0 };
        const struct at_numerics_field field = at_numerics_field_at(fields[f]);
        if (op->declares >> fields[f] & 1)
            at_neighbours(e->numerics, fields[f], &near);
        size_t at = 0;
        for (int i = 0; i < near.n && at < size; i++) { /* all that it may be: rounding leaves some alike */
            const int is = at_numerics_get(&near.of[i], fields[f]);
            if (!gives(e, &near.of[i], row, n, value, interval))
                continue;
            if (!at)
                at = (size_t)snprintf(text, size, "its bits are those of %s=", field.name);
            else
                at += (size_t)snprintf(text + at, size - at, " or ");
            if (at < size && field.words)
                at += (size_t)snprintf(text + at, size - at, "%s", field.words[is].name);
            else if (at < size)
                at += (size_t)snprintf(text + at, size - at, "%d", is);
        }
    }
    free(value);
    free(interval);
    at_error_clear(); /* neighbours that have no model here left their reasons */
}
