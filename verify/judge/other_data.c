/* Launches on other data in the memory of the judged launch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/other_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/attention.h"
#include "attest/buffer.h"
#include "datasets/fill/pool.h"
#include "verify/judge/relaunch.h"

/* Numbers of launches, above those of relaunch.c and redraw.c; the turn of the data above those of redraw.c. */
enum { LATE_LAUNCH = 32, DATA_LAUNCH = 33, DATA_TURN = 2 };
enum { ROWS = 64, LATE_ROWS = 16, LATE_PLACES = 8, LARGEST_OF = 4096 };

/* Rows that are looked at, with exact values and limits of all outputs (whole tensors, of which only these rows count). */
struct rows {
    int64_t row[ROWS];
    int n;
    struct at_eval eval;
};

static void rows_close(struct rows *r) {
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        free(r->eval.value[t]);
        free(r->eval.limit[t]);
    }
    r->eval = (struct at_eval){ .ledger = NULL };
}

static int is_output(const struct at_answer *a, int t) {
    for (int o = 0; o < a->n_outputs; o++)
        if (a->outputs[o] == t)
            return 1;
    return 0;
}

static at_status evaluate(const struct at_job *j, const struct at_problem *p, struct rows *r) {
    const struct at_answer *a = &j->context->answer;
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        if (!is_output(a, t))
            continue;
        r->eval.value[t] = calloc((size_t)a->count[t] + 1, sizeof(double));
        r->eval.limit[t] = calloc((size_t)a->count[t] + 1, sizeof(double));
        if (!r->eval.value[t] || !r->eval.limit[t])
            return AT_FAIL(AT_NO_MEMORY, "no memory for %lld outputs", (long long)a->count[t]);
        /* Of a cache, the evaluation of a row leaves elements out that are not its own. */
        for (int i = 0; i < r->n; i++) {
            int64_t first, count;
            p->op->row_span(p, t, r->row[i], &first, &count);
            for (int64_t k = first; k < first + count; k++)
                r->eval.value[t][k] = (double)NAN;
        }
    }
    at_status status = AT_OK;
    void *prepared = at_op_prepare(p);
    r->eval.prepared = prepared;
    for (int i = 0; i < r->n && status == AT_OK; i++)
        status = p->op->evaluate(p, &j->numerics, r->row[i], r->row[i] + 1, &r->eval);
    r->eval.prepared = NULL;
    free(prepared);
    if (status != AT_USAGE && status != AT_UNSUPPORTED)
        return status;
    at_error_clear(); /* a declaration that does not fit: the judgement says so, and nothing is accused here */
    return AT_OK;
}

static void add_row(struct rows *r, int64_t row) {
    for (int i = 0; i < r->n; i++)
        if (r->row[i] == row)
            return;
    if (r->n < ROWS)
        r->row[r->n++] = row;
}

static int same_bits(const struct at_tensor *a, const struct at_tensor *b, int64_t first, int64_t count) {
    const size_t bytes = at_format_info(a->format)->bytes;
    return memcmp((const char *)a->data + (size_t)first * bytes, (const char *)b->data + (size_t)first * bytes,
                  (size_t)count * bytes) == 0;
}

/* An element is accused when it is an ordinary number beyond a limit that there is: what overflows or is no number was
 * judged on the first data. must[t][i] (NULL: all): whether element i is asked about at all. `before`:
 * what the launch on the other data left. */
static void accuse(struct at_job *j, const struct rows *r, const struct at_outputs *got,
                   const struct at_outputs *before, double *const *must, const char *what) {
    const struct at_answer *a = &j->context->answer;
    const struct at_problem *p = &j->context->data.problem;
    for (int o = 0; o < a->n_outputs; o++) {
        const int t = a->outputs[o];
        int64_t wrong = 0, kept = 0, worst = -1, first, count;
        for (int k = 0; k < r->n; k++) {
            p->op->row_span(p, t, r->row[k], &first, &count);
            for (int64_t i = first; i < first + count; i++) {
                const double x = at_tensor_get(&got->tensors[t], i), want = r->eval.value[t][i];
                const double limit = r->eval.limit[t][i] * j->context->options->limit_factor;
                if ((must && !must[t][i]) || !isfinite(x) || !isfinite(want) || !isfinite(limit) ||
                    fabs(x - want) <= limit)
                    continue;
                worst = worst < 0 ? i : worst;
                wrong++;
                kept += same_bits(&got->tensors[t], &before->tensors[t], i, 1);
            }
        }
        if (!wrong || j->other_data[o][0])
            continue;
        snprintf(j->other_data[o], sizeof j->other_data[o],
                 "%s in the same memory, launched again %s: %lld elements of %d rows, element %lld is %.9g, want %.9g",
                 2 * kept > wrong ? "gives what it gave for other data" : "wrong on other data", what, (long long)wrong,
                 r->n, (long long)worst, at_tensor_get(&got->tensors[t], worst), r->eval.value[t][worst]);
    }
}

static at_status launch(struct at_job *j, const struct at_problem *p, uint64_t number, const char *on,
                        const char *where, struct at_outputs *got) {
    struct at_run_reply reply;
    AT_TRY(at_guarded_launch(j->runner, j->variant, p, AT_POISON_JUDGED, NULL, at_job_seed(j, number),
                             at_job_time_limit(j), &reply, got));
    AT_TRY(at_job_check_ran(j, &reply, on));
    at_job_keep_dirt(j, got, where);
    return AT_OK;
}

/* ---- one late element ---- */

struct late {
    struct at_problem problem; /* with a copy of the tensor's data */
    int tensor;
    int64_t element;
    double *must[AT_MAX_TENSORS]; /* 1: the output element must change */
    struct rows rows;
};

static void late_close(struct late *l) {
    if (l->tensor >= 0)
        free(l->problem.tensors[l->tensor].data);
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        free(l->must[t]);
    memset(l->must, 0, sizeof l->must);
    rows_close(&l->rows);
    l->tensor = -1;
}

/* Inputs whose values may be any: no indices, tables, parameters. */
static int may_change(const struct at_problem *p, int t) {
    const enum at_fill fill = p->op->tensors[t].fill;
    return p->op->tensors[t].role == AT_IN && p->tensors[t].data && p->tensors[t].format != AT_I32 &&
           at_tensor_count(&p->tensors[t]) > 0 && !at_pool_is_large(p, t) &&
           (fill == AT_FILL_QUERIES || fill == AT_FILL_KEYS || fill == AT_FILL_VALUES || fill == AT_FILL_ROWS ||
            fill == AT_FILL_RESIDUAL || fill == AT_FILL_LEFT || fill == AT_FILL_RIGHT ||
            fill == AT_FILL_RIGHT_COLUMNS || fill == AT_FILL_ELEMENTS);
}

static int is_key_or_value(const struct at_problem *p, int t) {
    return p->op->kind == AT_KIND_ATTENTION &&
           (p->op->tensors[t].fill == AT_FILL_KEYS || p->op->tensors[t].fill == AT_FILL_VALUES);
}

/* The element, and the rows it may show in: of keys and values the last key that the last query sees, of its heads; else one
 * of the tensor's last. -1: the last request has no key, the tensor no element. */
static int64_t late_element(const struct at_problem *p, int t, uint64_t draw, struct rows *rows) {
    const int64_t all = p->op->rows(p), n = at_tensor_count(&p->tensors[t]);
    rows->n = 0;
    if (!is_key_or_value(p, t) || !p->op->request_of_row) {
        for (int64_t row = all - 1; row >= 0 && row >= all - LATE_ROWS; row--)
            add_row(rows, row);
        const uint64_t places = n < LATE_PLACES ? (uint64_t)n : LATE_PLACES;
        return places ? n - 1 - (int64_t)(draw % places) : -1;
    }
    const int64_t request = p->op->request_of_row(p, all - 1),
                  keys = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], request);
    const int64_t group = p->sizes.h / p->sizes.hk, kv_head = (int64_t)(draw % (uint64_t)p->sizes.hk);
    if (keys < 1)
        return -1;
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++)
        add_row(rows, all - p->sizes.h + head);
    const int64_t channel = (int64_t)(draw / (uint64_t)p->sizes.hk % (uint64_t)p->sizes.d);
    return at_attn_kv_index(p, request, keys - 1, kv_head) + channel;
}

/* Of the last elements of the tensor. */
static double largest(const struct at_tensor *x) {
    const int64_t n = at_tensor_count(x);
    double most = 0;
    for (int64_t i = n > LARGEST_OF ? n - LARGEST_OF : 0; i < n; i++) {
        const double size = fabs(at_tensor_get(x, i));
        if (isfinite(size) && size > most)
            most = size;
    }
    return most > 0 ? most : 1;
}

/* Marks in l->must what must change: by more than what both values may be off. */
static int64_t must_change(const struct at_job *j, const struct rows *before, struct late *l) {
    const struct at_answer *a = &j->context->answer;
    const double factor = j->context->options->limit_factor;
    int64_t marked = 0, first, count;
    for (int o = 0; o < a->n_outputs; o++) {
        const int t = a->outputs[o];
        for (int k = 0; k < before->n; k++) {
            l->problem.op->row_span(&l->problem, t, before->row[k], &first, &count);
            for (int64_t i = first; i < first + count; i++) {
                const double moved = fabs(l->rows.eval.value[t][i] - before->eval.value[t][i]);
                const double limits = factor * (l->rows.eval.limit[t][i] + before->eval.limit[t][i]);
                l->must[t][i] = isfinite(moved) && isfinite(limits) && moved > limits;
                marked += l->must[t][i] != 0;
            }
        }
    }
    return marked;
}

/* Tries values in the element until one must show; *found = 0 when none does. Keeps no exact value: they are computed again
 * when the kernel has run. */
static at_status try_values(struct at_job *j, struct late *l, const struct rows *before, int *found) {
    static const double factors[] = { 4, -4, 64, -64 };
    const struct at_tensor *x = &l->problem.tensors[l->tensor];
    const double most = largest(x), was = at_tensor_get(x, l->element);
    *found = 0;
    for (size_t f = 0; f < sizeof factors / sizeof *factors && !*found; f++) {
        at_store_code(x->format, x->data, (size_t)l->element, at_encode(x->format, factors[f] * most));
        const double now = at_tensor_get(x, l->element);
        if (!isfinite(now) || now == was)
            continue;
        l->rows = *before;
        l->rows.eval = (struct at_eval){ .ledger = NULL };
        at_status status = evaluate(j, &l->problem, &l->rows);
        *found = status == AT_OK && must_change(j, before, l) > 0;
        rows_close(&l->rows);
        AT_TRY(status);
    }
    return AT_OK;
}

/* The tensor with the most elements that has not been tried; of equals the last. -1: none is left. */
static int next_tensor(const struct at_problem *p, unsigned tried) {
    int best = -1;
    for (int t = 0; t < p->op->n_tensors; t++)
        if (may_change(p, t) && !(tried >> t & 1) &&
            (best < 0 || at_tensor_count(&p->tensors[t]) >= at_tensor_count(&p->tensors[best])))
            best = t;
    return best;
}

static at_status open_tensor(struct at_job *j, const struct at_problem *p, int t, struct late *l) {
    const size_t bytes = (size_t)at_tensor_bytes(&p->tensors[t]);
    const struct at_answer *a = &j->context->answer;
    l->problem = *p;
    l->problem.tensors[t].data = malloc(bytes + 1);
    l->tensor = t;
    for (int o = 0; o < AT_MAX_TENSORS; o++) {
        if (!is_output(a, o))
            continue;
        l->must[o] = calloc((size_t)a->count[o] + 1, sizeof(double));
        if (!l->must[o])
            return AT_FAIL(AT_NO_MEMORY, "no memory for %lld outputs", (long long)a->count[o]);
    }
    if (!l->problem.tensors[t].data)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %zu bytes of an input", bytes);
    memcpy(l->problem.tensors[t].data, p->tensors[t].data, bytes);
    return AT_OK;
}

/* l->tensor stays -1 when no element is found that matters. */
static at_status find_late(struct at_job *j, const struct at_problem *p, struct late *l) {
    const uint64_t draw = at_job_seed(j, LATE_LAUNCH);
    at_status status = AT_OK;
    int found = 0;
    unsigned tried = 0;
    for (int t; !found && status == AT_OK && (t = next_tensor(p, tried)) >= 0; tried |= 1u << t) {
        struct rows before = { .n = 0 };
        const int64_t element = late_element(p, t, draw, &before);
        if (element < 0)
            continue;
        AT_TRY(open_tensor(j, p, t, l));
        l->element = element;
        status = evaluate(j, p, &before);
        if (status == AT_OK)
            status = try_values(j, l, &before, &found);
        l->rows = before;
        rows_close(&l->rows);
        if (!found)
            late_close(l);
    }
    return status;
}

/* `before`: what the launch on p left, which was the last. */
static at_status late_change(struct at_job *j, const struct at_problem *p, const struct at_outputs *before) {
    struct late l = { .tensor = -1 };
    struct at_outputs got = { 0 };
    char what[128];
    at_status status = find_late(j, p, &l);
    if (status != AT_OK || l.tensor < 0)
        goto out;
    snprintf(what, sizeof what, "with one element of %s changed (%lld of %lld)", p->op->tensors[l.tensor].name,
             (long long)l.element, (long long)at_tensor_count(&p->tensors[l.tensor]));
    AT_TRY_OUT(launch(j, &l.problem, LATE_LAUNCH, "the same problem with one element changed",
                      ", when launched again with one element changed", &got));
    AT_TRY_OUT(evaluate(j, &l.problem, &l.rows));
    accuse(j, &l.rows, &got, before, l.must, what);
out:
    late_close(&l);
    at_outputs_release(&got);
    return status;
}

/* ---- other data ---- */

static int same_shapes(const struct at_problem *p, const struct at_problem *q) {
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->tensors[t].rank != q->tensors[t].rank || !p->tensors[t].data != !q->tensors[t].data ||
            memcmp(p->tensors[t].shape, q->tensors[t].shape, sizeof p->tensors[t].shape) != 0)
            return 0;
    return 1;
}

/* Rows that are as they were on the data before, from either end, and some that are drawn; of few rows all. */
static void choose_rows(const struct at_job *j, const struct at_outputs *got, struct rows *r) {
    const struct at_answer *a = &j->context->answer;
    const struct at_problem *p = &j->context->data.problem;
    const int64_t rows = p->op->rows(p);
    for (int end = 0; end < 2; end++)
        for (int64_t i = 0, some = r->n + ROWS / 8; i < rows && r->n < some; i++) {
            const int64_t row = end ? rows - 1 - i : i;
            int64_t first, count, all = 0;
            int same = 1;
            for (int o = 0; o < a->n_outputs && same; o++, all += count) {
                p->op->row_span(p, a->outputs[o], row, &first, &count);
                same = same_bits(&got->tensors[a->outputs[o]], &j->outputs.tensors[a->outputs[o]], first, count);
            }
            if (same && all > 0)
                add_row(r, row);
        }
    for (int64_t row = 0; rows <= ROWS && row < rows; row++)
        add_row(r, row);
    for (uint64_t i = 0; rows > ROWS && i < ROWS / 4; i++) {
        const uint64_t parts[2] = { at_job_seed(j, DATA_LAUNCH), i };
        add_row(r, (int64_t)(at_hash_bytes(parts, sizeof parts, AT_HASH_START) % (uint64_t)rows));
    }
}

/* What rows of the judged launch say of a launch on data of another seed. */
static at_status judge_other_seed(struct at_job *j, const struct at_problem *p, const struct at_outputs *got) {
    struct rows rows = { .n = 0 };
    choose_rows(j, got, &rows);
    at_status status = evaluate(j, p, &rows);
    if (status == AT_OK)
        accuse(j, &rows, got, &j->outputs, NULL, "on data of another seed");
    rows_close(&rows);
    return status;
}

at_status at_job_other_data(struct at_job *j) {
    const struct at_problem *p = &j->context->data.problem;
    struct at_case_data data = { 0 };
    struct at_outputs got = { 0 };
    at_status status = AT_OK;
    int is_other = !j->context->is_given && at_case_is_drawn(j->context->item->c);
    if (p->op->admits || p->op->bits || p->op->rows(p) < 1)
        return AT_OK;
    if (is_other)
        AT_TRY_OUT(at_case_build_again(j->context->item->c, DATA_TURN, &data));
    is_other = is_other && same_shapes(p, &data.problem); /* of some cases the seed draws lengths */
    p = is_other ? &data.problem : p;
    AT_TRY_OUT(launch(j, p, DATA_LAUNCH, is_other ? "data of another seed" : "the same problem once more",
                      is_other ? ", when launched again on other data" : ", when launched once more", &got));
    if (is_other)
        AT_TRY_OUT(judge_other_seed(j, p, &got));
    AT_TRY_OUT(late_change(j, p, &got));
out:
    at_outputs_release(&got);
    at_case_data_release(&data);
    return status;
}
