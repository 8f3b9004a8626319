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
 *    one element; the rounding of one weight of P all channels of its row: one unit, sum_c w_c v_c). If the a_r have mean
 *    zero, each given those before it, then by Hoeffding's inequality (Azuma's form)
 *        |part of S| <= sqrt(2 ln(2/delta) sum (u s_r)^2)    but for a probability of delta = 1e-12.
 *    Assumptions: the data are drawn from smooth densities (AT_DATA_CONTINUOUS), so that where in its cell of the grid a
 *    value lies has nothing to do with the others. Values that are alike err alike: equal weights of a row are not among the
 *    a_r, and outputs of one request and channel that round to the same number (queries whose weights are the same, heads
 *    that share one key) are one unit, as large as all of them together.
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

/* Multiply-adds that going through P may take; the rows looked at are as many. */
static const double SAMPLE_WORK = 4e7;
static const double DELTA = 1e-12, DENSITY_SLOPE = 4;

struct look {
    const struct at_answer *a;
    const struct at_numerics *numerics;
    const struct at_tensor *got;
    const double *limit;
    int tensor;
    double u_out;          /* unit roundoff of the output's format */
    struct at_roundings r; /* arrays of the whole tensor */
    int64_t step;          /* one row of so many is looked at */
    double *memory;
};

/* Sums of one group. */
struct sums {
    double size[AT_MOMENT_COUNT], rest[AT_MOMENT_COUNT], square[AT_MOMENT_COUNT], mean[AT_MOMENT_COUNT];
    double norm[AT_MOMENT_COUNT];
};

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

/* Rows are picked so that every head has its share of them. */
static int is_looked_at(const struct look *x, int64_t row) {
    const int64_t heads = heads_of(x);
    return x->step == 1 || (row + (heads ? row / heads : 0)) % x->step == 0;
}

static at_status round_rows(void *context, int64_t begin, int64_t end, int worker) {
    const struct look *x = context;
    const struct at_problem *p = x->a->problem;
    struct at_roundings mine = x->r;
    (void)worker;
    if (x->step == 1)
        return p->op->roundings(p, x->numerics, begin, end, &mine);
    for (int64_t row = begin; row < end; row++)
        if (is_looked_at(x, row))
            AT_TRY(p->op->roundings(p, x->numerics, row, row + 1, &mine));
    return AT_OK;
}

/* The operator's own roundings into x->r, where it has any. */
static at_status look_inside(struct look *x, int threads) {
    const struct at_op *op = x->a->problem->op;
    const size_t n = (size_t)x->a->count[x->tensor], rows = (size_t)x->a->rows;
    x->step = 1;
    if (!op->roundings)
        return AT_OK;
    x->r = (struct at_roundings){ .tensor = x->tensor, .exact = x->a->value[x->tensor] };
    AT_TRY(op->roundings(x->a->problem, x->numerics, 0, 0, &x->r));
    if (x->r.u == 0)
        return AT_OK;
    x->memory = calloc(n + 2 * AT_MOMENT_COUNT * rows + 1, sizeof *x->memory);
    if (!x->memory)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the roundings of %zu elements", n);
    x->r.share = x->memory;
    for (int m = 0; m < AT_MOMENT_COUNT; m++) {
        x->r.sum[m] = x->memory + n + (size_t)(2 * m) * rows;
        x->r.square[m] = x->r.sum[m] + rows;
    }
    x->step = choose_step(x->a);
    return at_parallel(x->a->rows, x->a->rows / ((int64_t)threads * 8) + 1, threads, round_rows, x);
}

/* Half the spacing of the output's numbers where the kernel's value of element i before its rounding can be. */
static double half_spacing(const struct look *x, int64_t i) {
    const double want = fabs(x->a->value[x->tensor][i]);
    return x->u_out > 0 ? fmin(x->u_out * want, at_ulp(x->got->format, want + x->limit[i]) / 2) : 0;
}

static void add_row(const struct look *x, int64_t row, struct sums *s) {
    int64_t first, count;
    x->a->problem->op->row_span(x->a->problem, x->tensor, row, &first, &count);
    for (int64_t i = first; i < first + count; i++) {
        const double want = x->a->value[x->tensor][i], error = at_tensor_get(x->got, i) - want;
        const double rounding = x->u_out * fabs(want);
        const double rest = fmax(0, x->limit[i] - rounding - (x->r.share ? x->r.share[i] : 0));
        const double half = half_spacing(x, i);
        const double weight[AT_MOMENT_COUNT] = { [AT_MOMENT_SLOPE] = want, [AT_MOMENT_MEAN] = 1 };
        for (int m = 0; m < AT_MOMENT_COUNT; m++) {
            const double moved = half * fabs(weight[m]);
            s->size[m] += error * weight[m];
            s->rest[m] += rest * fabs(weight[m]);
            s->mean[m] += DENSITY_SLOPE / 3 * x->u_out * moved;
            s->norm[m] += weight[m] * weight[m];
        }
    }
    for (int m = 0; x->r.share && m < AT_MOMENT_COUNT; m++) {
        s->square[m] += x->r.square[m][row];
        s->mean[m] += DENSITY_SLOPE / 3 * x->r.u * x->r.sum[m][row];
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
            s[of_head ? 1 + cells[i].head : 0].square[m] += sum[m] * sum[m];
    }
}

/* The cells of channel c of every row that is looked at; their number. */
static int64_t gather_channel(const struct look *x, int64_t c, struct cell *cells, int64_t *widest) {
    const struct at_problem *p = x->a->problem;
    int64_t n = 0;
    for (int64_t row = 0, first, count; row < x->a->rows; row++) {
        if (!is_looked_at(x, row))
            continue;
        p->op->row_span(p, x->tensor, row, &first, &count);
        *widest = count > *widest ? count : *widest;
        if (c >= count)
            continue;
        const double half = half_spacing(x, first + c);
        cells[n++] = (struct cell){
            .request = p->op->request_of_row ? p->op->request_of_row(p, row) : 0,
            .head = head_of(x, first),
            .got = fabs(at_tensor_get(x->got, first + c)),
            .moved = { [AT_MOMENT_SLOPE] = half * fabs(x->a->value[x->tensor][first + c]), [AT_MOMENT_MEAN] = half },
        };
    }
    return n;
}

static at_status add_output_roundings(const struct look *x, int64_t heads, struct sums *s) {
    struct cell *cells = malloc(((size_t)x->a->rows + 1) * sizeof *cells);
    if (!cells)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a channel of %lld rows", (long long)x->a->rows);
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

static struct at_bias bias_of(const struct sums *s, int m) {
    const double share = sqrt(2 * log(2 / DELTA) * s->square[m]);
    return (struct at_bias){ .size = s->size[m], .bound = s->rest[m] + share + s->mean[m], .norm = s->norm[m] };
}

static void add_group(const struct sums *s, int64_t head, struct at_aggregate *out) {
    for (int m = 0; m < AT_MOMENT_COUNT; m++) {
        const struct at_bias b = bias_of(s, m);
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
    for (int64_t row = 0; row < x->a->rows; row++) {
        int64_t first, count;
        if (!is_looked_at(x, row))
            continue;
        x->a->problem->op->row_span(x->a->problem, x->tensor, row, &first, &count);
        add_row(x, row, &s[0]);
        if (heads > 1 && count)
            add_row(x, row, &s[1 + head_of(x, first)]);
    }
    const at_status status = add_output_roundings(x, heads, s);
    for (int64_t g = 0; status == AT_OK && g < (heads > 1 ? heads + 1 : 1); g++)
        add_group(&s[g], g - 1, out);
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
    if (x.u_out > 0 || x.r.u > 0)
        AT_TRY_OUT(add_up(&x, out));
out:
    free(x.memory);
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
