/* Errors that are small everywhere: sums over an output that roundings to nearest cannot make large.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every element may lie inside its limit and the whole be wrong: P cut off instead of rounded, an output times 1.003. Let
 * e_i = got_i - x_i, x_i exact, and S = sum w_i e_i, over a tensor and over each of its heads, for two weights: w_i = x_i
 * (S / sum x_i^2 is the slope of the output against the exact one, less 1) and w_i = 1 (S / n: the mean signed error).
 * The declaration says where a kernel rounds to nearest: the output to its format, P to numerics->p (op->roundings).
 * Of an error e_i
 *     u_o |x_i|      at most is the output's rounding (u_o: unit roundoff; f32 and f64 outputs: nothing is taken),
 *     share_i        at most is the rounding of P,
 *     rest_i = limit_i - u_o |x_i| - share_i   bounds all else, as the limit is a sum that has both as terms: free orders,
 *                    truncation of tensor cores, underflow, equal values, all that is of second order.
 *
 * D. What is not said to be rounded to nearest may err to one side: |its part of S| <= sum rest_i |w_i|. Where nothing is
 *    rounded to nearest, D is the sum of the limits, which no result exceeds whose elements are inside theirs: no test.
 * H. Roundings to nearest: error r moves S by s_r a_r, |a_r| <= u, s_r its size times what it moves (an output's rounding
 *    one element; the rounding of one weight of P all channels of its row: sum_c w_c v_c). If units of roundings are
 *    independent of each other, and a unit moves S by at most m_k and by nothing in the mean, then by Hoeffding's inequality
 *        |part of S| <= sqrt(2 ln(2/delta) sum m_k^2)    but for a probability of delta = 1e-12.
 *    Assumption: the data are drawn from smooth densities (AT_DATA_CONTINUOUS), so that where in its cell of the grid a
 *    value lies has nothing to do with others that are no neighbours of it. Values that are alike err alike, so what the
 *    units are has to be asked of the values: outputs of one request and channel that round to the same number (queries
 *    whose weights are the same, heads that share one key) are one unit, as large as all of them together. For weights the
 *    largest bound of these counts: each weight is a unit; each row is one, as large as weights that lie so close to each
 *    other can make it (alike.h); everything is one (twice that, as groups of weights that lie apart may be shifted apart:
 *    two of them would hide half).
 * B. A density with a slope inside a cell gives roundings a mean: for the density f of log x and g = max |f'/f| the mean
 *    of a_r is at most g (2u)^2 / 12 = g u^2 / 3. G = 4 is taken (N(0,1) within 2 sigma, and what scores of variance 1
 *    make of it): (4/3) u sum |u s_r|. For bf16 it is 5e-6 of each; for e4m3 it is what decides.
 * |S| <= D + H + B. An alarm is looked at with fresh data (redraw.c) before it is a verdict.
 *
 * A tensor that is too large for its P to be gone through again is tested on a spread of its rows. */
#include "verify/judge/aggregate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/judge/alike.h"

/* Multiply-adds that going through P may take; the rows looked at are as many. */
static const double SAMPLE_WORK = 4e7;
static const double DELTA = 1e-12, DENSITY_SLOPE = 4;

/* Units of roundings that are independent of each other: what they can move, its sum and the sum of its squares. */
struct units {
    double sum[AT_MOMENT_COUNT], square[AT_MOMENT_COUNT];
};

/* The rows of one head of one request, of those that are looked at. */
struct part {
    int64_t request, head; /* head -1: the tensor has none */
    int64_t begin, end;    /* places in look.order */
    struct units weights, rows;
    double u; /* unit roundoff of P's format */
    struct at_alike all[AT_MOMENT_COUNT];
};

struct place {
    int64_t request, head, row;
};

struct look {
    const struct at_answer *a;
    const struct at_numerics *numerics;
    const struct at_tensor *got;
    const double *limit;
    int tensor;
    double u_out, u_p;   /* unit roundoff of the output's format; of P's, 0: none */
    double *share;       /* [elements] of the limit: what is charged for rounding P; NULL: nothing */
    int64_t step;        /* one row of so many is looked at */
    struct place *order; /* rows that are looked at, by request and head */
    struct part *parts;
    int64_t rows, part_count;
};

/* Sums of one group: the tensor, or a head of it. */
struct sums {
    double size[AT_MOMENT_COUNT], rest[AT_MOMENT_COUNT], mean[AT_MOMENT_COUNT], norm[AT_MOMENT_COUNT];
    struct units outputs, weights, rows; /* rows: a unit is what the weights of a row can move together */
    struct at_alike all[AT_MOMENT_COUNT];
};

static void add_unit(struct units *u, int m, double moved) {
    u->sum[m] += fabs(moved);
    u->square[m] += moved * moved;
}

static void add_units(struct units *u, const struct units *more) {
    for (int m = 0; m < AT_MOMENT_COUNT; m++) {
        u->sum[m] += more->sum[m];
        u->square[m] += more->square[m];
    }
}

/* The head that a row's elements belong to; -1 where the tensor has none. */
static int64_t head_of(const struct look *x, int64_t first) {
    const struct at_tensor *t = &x->a->problem->tensors[x->tensor];
    const struct at_tensor_spec *spec = &x->a->problem->op->tensors[x->tensor];
    for (int d = t->rank - 1; d >= 0; d--) {
        if (spec->dims[d] == AT_DIM_h)
            return first % t->shape[d];
        first /= t->shape[d];
    }
    return -1;
}

static int64_t heads_of(const struct look *x) {
    const struct at_tensor *t = &x->a->problem->tensors[x->tensor];
    for (int d = 0; d < t->rank; d++)
        if (x->a->problem->op->tensors[x->tensor].dims[d] == AT_DIM_h)
            return t->shape[d];
    return 0;
}

/* 1 when every element is a number inside its limit: only then has the sum something to add. */
static int all_inside(const struct look *x, int *outside) {
    int inside = 1;
    for (int64_t i = 0; i < x->a->count[x->tensor]; i++) {
        const double error = fabs(at_tensor_get(x->got, i) - x->a->value[x->tensor][i]);
        *outside |= x->limit[i] < INFINITY && !(error <= x->limit[i]);
        inside &= x->limit[i] < INFINITY && error <= x->limit[i];
    }
    return inside;
}

static int64_t choose_step(const struct at_answer *a) {
    double work = 0;
    for (int64_t r = 0; r < a->rows; r++)
        work += a->problem->op->row_work(a->problem, r);
    return work > SAMPLE_WORK ? (int64_t)ceil(work / SAMPLE_WORK) : 1;
}

/* ---- the roundings of weights ---- */

static int by_place(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->request != y->request)
        return x->request < y->request ? -1 : 1;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Rows are picked so that every head has its share of them. */
static at_status order_rows(struct look *x) {
    const struct at_problem *p = x->a->problem;
    const int64_t heads = heads_of(x);
    x->order = malloc(((size_t)x->a->rows + 1) * sizeof *x->order);
    if (!x->order)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the order of %lld rows", (long long)x->a->rows);
    for (int64_t row = 0, first, count; row < x->a->rows; row++) {
        if (x->step > 1 && (row + (heads ? row / heads : 0)) % x->step != 0)
            continue;
        p->op->row_span(p, x->tensor, row, &first, &count);
        const int64_t request = p->op->request_of_row ? p->op->request_of_row(p, row) : 0;
        if (count)
            x->order[x->rows++] = (struct place){ request, head_of(x, first), row };
    }
    qsort(x->order, (size_t)x->rows, sizeof *x->order, by_place);
    return AT_OK;
}

struct row_sums {
    struct part *part;
    struct at_alike alike[AT_MOMENT_COUNT];
};

static void add_weight(void *context, int64_t row, double value, const double moved[AT_MOMENT_COUNT]) {
    struct row_sums *sums = context;
    (void)row;
    for (int m = 0; m < AT_MOMENT_COUNT; m++) {
        add_unit(&sums->part->weights, m, moved[m]);
        at_alike_add(&sums->alike[m], value, sums->part->u, moved[m]);
    }
}

static at_status go_through_parts(void *context, int64_t begin, int64_t end, int worker) {
    const struct look *x = context;
    const struct at_problem *p = x->a->problem;
    (void)worker;
    for (struct part *part = x->parts + begin; part < x->parts + end; part++) {
        struct at_roundings r = { .tensor = x->tensor, .exact = x->a->value[x->tensor], .share = x->share };
        r.rounding = add_weight;
        for (int64_t i = part->begin; i < part->end; i++) {
            struct row_sums sums = { .part = part };
            r.context = &sums;
            AT_TRY(p->op->roundings(p, x->numerics, x->order[i].row, x->order[i].row + 1, &r));
            for (int m = 0; m < AT_MOMENT_COUNT; m++) {
                add_unit(&part->rows, m, at_alike_worst(&sums.alike[m]));
                at_alike_merge(&part->all[m], &sums.alike[m]);
            }
        }
    }
    return AT_OK;
}

/* The operator's own roundings, where it has any. */
static at_status look_inside(struct look *x, int threads) {
    const struct at_op *op = x->a->problem->op;
    struct at_roundings r = { .tensor = x->tensor };
    if (op->roundings)
        AT_TRY(op->roundings(x->a->problem, x->numerics, 0, 0, &r));
    x->u_p = r.u;
    x->step = x->u_p > 0 ? choose_step(x->a) : 1;
    AT_TRY(order_rows(x));
    if (x->u_p == 0)
        return AT_OK;
    x->share = calloc((size_t)x->a->count[x->tensor] + 1, sizeof *x->share);
    x->parts = calloc((size_t)x->rows + 1, sizeof *x->parts);
    if (!x->share || !x->parts)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the roundings of %lld rows", (long long)x->rows);
    for (int64_t i = 0; i < x->rows; i++) {
        const struct place *at = &x->order[i];
        if (i == 0 || at->request != at[-1].request || at->head != at[-1].head)
            x->parts[x->part_count++] =
                (struct part){ .request = at->request, .head = at->head, .begin = i, .u = x->u_p };
        x->parts[x->part_count - 1].end = i + 1;
    }
    return at_parallel(x->part_count, x->part_count / ((int64_t)threads * 8) + 1, threads, go_through_parts, x);
}

static void add_parts(const struct look *x, int64_t heads, struct sums *s) {
    for (const struct part *part = x->parts; part < x->parts + x->part_count; part++) {
        struct sums *const groups[] = { &s[0], heads > 1 ? &s[1 + part->head] : NULL };
        for (int g = 0; g < 2 && groups[g]; g++) {
            add_units(&groups[g]->weights, &part->weights);
            add_units(&groups[g]->rows, &part->rows);
            for (int m = 0; m < AT_MOMENT_COUNT; m++)
                at_alike_merge(&groups[g]->all[m], &part->all[m]);
        }
    }
}

/* ---- sums over elements ---- */

/* Half the spacing of the output's numbers where the kernel's value of element i before its rounding can be. */
static double half_spacing(const struct look *x, int64_t i) {
    const double want = fabs(x->a->value[x->tensor][i]);
    return x->u_out > 0 ? fmin(x->u_out * want, at_ulp(x->got->format, want + x->limit[i]) / 2) : 0;
}

static void add_row(const struct look *x, const struct place *at, struct sums *s) {
    int64_t first, count;
    x->a->problem->op->row_span(x->a->problem, x->tensor, at->row, &first, &count);
    for (int64_t i = first; i < first + count; i++) {
        const double want = x->a->value[x->tensor][i], error = at_tensor_get(x->got, i) - want;
        const double rounding = x->u_out * fabs(want);
        const double rest = fmax(0, x->limit[i] - rounding - (x->share ? x->share[i] : 0));
        const double half = half_spacing(x, i);
        const double weight[AT_MOMENT_COUNT] = { [AT_MOMENT_SLOPE] = want, [AT_MOMENT_MEAN] = 1 };
        for (int m = 0; m < AT_MOMENT_COUNT; m++) {
            s->size[m] += error * weight[m];
            s->rest[m] += rest * fabs(weight[m]);
            s->mean[m] += DENSITY_SLOPE / 3 * x->u_out * half * fabs(weight[m]);
            s->norm[m] += weight[m] * weight[m];
        }
    }
}

/* ---- outputs that are rounded alike ---- */

struct cell {
    int64_t request, head;
    double got; /* magnitude */
    double moved[AT_MOMENT_COUNT];
};

static int by_cell(const void *a, const void *b) {
    const struct cell *x = a, *y = b;
    if (x->request != y->request)
        return x->request < y->request ? -1 : 1;
    if (x->got != y->got)
        return x->got < y->got ? -1 : 1;
    return (x->head > y->head) - (x->head < y->head);
}

/* Adds the square of the sum over each run of cells; of one run all are the same but for the head where `of_head`. */
static void add_runs(const struct cell *cells, int64_t n, int of_head, struct sums *s) {
    for (int64_t i = 0, end; i < n; i = end) {
        double sum[AT_MOMENT_COUNT] = { 0 };
        for (end = i; end < n && cells[end].request == cells[i].request && cells[end].got == cells[i].got &&
                      (!of_head || cells[end].head == cells[i].head);
             end++)
            for (int m = 0; m < AT_MOMENT_COUNT; m++)
                sum[m] += cells[end].moved[m];
        for (int m = 0; m < AT_MOMENT_COUNT; m++)
            add_unit(&s[of_head ? 1 + cells[i].head : 0].outputs, m, sum[m]);
    }
}

/* The cells of channel c of every row that is looked at; their number. */
static int64_t gather_channel(const struct look *x, int64_t c, struct cell *cells, int64_t *widest) {
    const struct at_problem *p = x->a->problem;
    int64_t n = 0;
    for (const struct place *at = x->order; at < x->order + x->rows; at++) {
        int64_t first, count;
        p->op->row_span(p, x->tensor, at->row, &first, &count);
        *widest = count > *widest ? count : *widest;
        if (c >= count)
            continue;
        const double half = half_spacing(x, first + c);
        cells[n++] = (struct cell){
            .request = at->request,
            .head = at->head,
            .got = fabs(at_tensor_get(x->got, first + c)),
            .moved = { [AT_MOMENT_SLOPE] = half * fabs(x->a->value[x->tensor][first + c]), [AT_MOMENT_MEAN] = half },
        };
    }
    return n;
}

static at_status add_output_roundings(const struct look *x, int64_t heads, struct sums *s) {
    struct cell *cells = malloc(((size_t)x->rows + 1) * sizeof *cells);
    if (!cells)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a channel of %lld rows", (long long)x->rows);
    int64_t widest = 1;
    for (int64_t c = 0; c < widest && x->u_out > 0; c++) {
        const int64_t n = gather_channel(x, c, cells, &widest);
        qsort(cells, (size_t)n, sizeof *cells, by_cell);
        add_runs(cells, n, 0, s);
        if (heads > 1)
            add_runs(cells, n, 1, s);
    }
    free(cells);
    return AT_OK;
}

static double hoeffding(double square) { return sqrt(2 * log(2 / DELTA) * square); }

/* H. A few rows move no more than all they have (of single roundings that is what the limits say of each element). */
static struct at_bias bias_of(const struct look *x, const struct sums *s, int m) {
    const double outputs = s->outputs.square[m];
    const double by_weight = hoeffding(outputs + s->weights.square[m]);
    const double by_row = fmin(hoeffding(outputs + s->rows.square[m]), hoeffding(outputs) + s->rows.sum[m]);
    const double together = hoeffding(outputs) + 2 * at_alike_worst(&s->all[m]);
    const double share = fmax(by_weight, fmax(by_row, together));
    const double mean = s->mean[m] + DENSITY_SLOPE / 3 * x->u_p * s->weights.sum[m];
    return (struct at_bias){ .size = s->size[m], .bound = s->rest[m] + share + mean, .norm = s->norm[m] };
}

static void add_group(const struct look *x, const struct sums *s, int64_t head, struct at_aggregate *out) {
    for (int m = 0; m < AT_MOMENT_COUNT; m++) {
        const struct at_bias b = bias_of(x, s, m);
        const double ratio = b.size == 0 ? 0 : fabs(b.size) / b.bound;
        if (head < 0 && m == AT_MOMENT_SLOPE)
            out->scale = b.norm > 0 ? 2 * b.bound / b.norm : INFINITY;
        out->moment_ratio[m] = ratio <= out->moment_ratio[m] ? out->moment_ratio[m] : ratio;
        if (ratio <= out->ratio)
            continue;
        out->ratio = ratio;
        out->worst = b;
        out->moment = (enum at_moment)m;
        out->head = head;
    }
}

static at_status add_up(const struct look *x, struct at_aggregate *out) {
    const int64_t heads = heads_of(x);
    struct sums *s = calloc((size_t)heads + 1, sizeof *s);
    if (!s)
        return AT_FAIL(AT_NO_MEMORY, "no memory for sums of %lld heads", (long long)heads);
    for (const struct place *at = x->order; at < x->order + x->rows; at++) {
        add_row(x, at, &s[0]);
        if (heads > 1)
            add_row(x, at, &s[1 + at->head]);
    }
    add_parts(x, heads, s);
    const at_status status = add_output_roundings(x, heads, s);
    for (int64_t g = 0; status == AT_OK && g < (heads > 1 ? heads + 1 : 1); g++)
        add_group(x, &s[g], g - 1, out);
    free(s);
    out->judged = status == AT_OK;
    return status;
}

at_status at_aggregate_judge(const struct at_answer *a, const struct at_numerics *numerics, int tensor,
                             const struct at_tensor *got, const double *limit, int threads, struct at_aggregate *out) {
    const struct at_format_info *format = at_format_info(got->format);
    struct look x = { .a = a, .numerics = numerics, .got = got, .limit = limit, .tensor = tensor };
    at_status status = AT_OK;
    *out = (struct at_aggregate){ .head = -1, .scale = INFINITY };
    if (a->count[tensor] == 0 || !all_inside(&x, &out->outside))
        return AT_OK;
    x.u_out = format->bytes < 4 ? format->u : 0;
    AT_TRY_OUT(look_inside(&x, threads));
    if (x.u_out > 0 || x.u_p > 0)
        AT_TRY_OUT(add_up(&x, out));
out:
    free(x.share);
    free(x.order);
    free(x.parts);
    return status;
}

void at_aggregate_say(const struct at_aggregate *a, char *text, size_t size) {
    const double size_of = a->worst.size / a->worst.norm, most = a->worst.bound / a->worst.norm;
    char where[48] = "";
    if (a->head >= 0)
        snprintf(where, sizeof where, " (head %lld)", (long long)a->head);
    if (a->moment == AT_MOMENT_SLOPE)
        snprintf(text, size, "biased: slope %.5g, %s %.5g by the declaration%s", 1 + size_of,
                 size_of > 0 ? "at most" : "at least", 1 + (size_of > 0 ? most : -most), where);
    else
        snprintf(text, size, "biased: mean error %.3g, at most %.3g by the declaration%s", size_of, most, where);
}
