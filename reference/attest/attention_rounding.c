/* What rounding P to nearest can do to the outputs of an attention operator: `roundings` of its descriptor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that rounds P to a narrower format has w_t (1 + a_t) + b_t in place of the weight w_t of key t, |a_t| <= u and
 * b_t = 0 where w_t is a normal number (b_t is underflow, which errs to one side, and stays with the limit). To first order
 * o_c moves by sum_t a_t w_t v_tc: the error of one key moves all channels of its row together, element c by at most
 * u |w_t| |v_tc|. What is of second order stays with the limit too, which charges u for weights with their errors.
 *
 * Left out are keys whose weight another key of the row has to the bit, and weights that stand at an end of a gate: all
 * of them err alike, in every row. An end that is a number of P's format is rounded to itself, and what the limit charges
 * for it is charged for nothing (keys whose score is within its error of the end apart, which are as few as that is
 * small). */
#include <math.h>
#include <stdlib.h>

#include "attest/attention.h"

struct weight {
    double p;
    int64_t key;
};

struct walk {
    const struct at_problem *problem;
    const struct at_attn_weights *weights;
    struct at_roundings *out;
    enum at_format format;            /* of P */
    int64_t request, kv_head, loaded; /* keys of v that are there */
    double *v;                        /* [max_sk d] */
    struct weight *sorted;            /* [max_sk] */
};

static void load_values(struct walk *w, const struct at_attn_row *at) {
    const int64_t d = w->problem->sizes.d;
    const struct at_tensor *v = &w->problem->tensors[AT_ATTN_V];
    if (w->request != at->request || w->kv_head != at->kv_head)
        w->loaded = 0;
    w->request = at->request;
    w->kv_head = at->kv_head;
    for (; w->loaded < at->visible; w->loaded++) {
        const int64_t first = at_attn_kv_index(w->problem, at->request, w->loaded, at->kv_head);
        at_decode_array(v->format, (size_t)d, (const char *)v->data + (size_t)first * at_format_info(v->format)->bytes,
                        w->v + w->loaded * d);
    }
}

static int by_value(const void *a, const void *b) {
    const double x = ((const struct weight *)a)->p, y = ((const struct weight *)b)->p;
    return (x > y) - (x < y);
}

/* One key's rounding error: at most `size` of the weight; 0 when `is_exact`. */
static void add_key(const struct walk *w, int64_t row, double size, int64_t key, int is_exact) {
    const int64_t d = w->problem->sizes.d;
    const double *v = w->v + key * d, *x = w->out->exact + row * d;
    double *share = w->out->share + row * d, moved[AT_MOMENT_COUNT] = { 0 };
    for (int64_t c = 0; c < d; c++) {
        share[c] += size * fabs(v[c]);
        moved[AT_MOMENT_SLOPE] += x[c] * v[c];
        moved[AT_MOMENT_MEAN] += v[c];
    }
    for (int m = 0; m < AT_MOMENT_COUNT && !is_exact; m++) {
        w->out->sum[m][row] += size * fabs(moved[m]);
        w->out->square[m][row] += size * moved[m] * (size * moved[m]);
    }
}

static int stands_at_an_end(const struct at_attn_weights *weights, double p) {
    return weights->has_ends && (p == weights->ends[0] || p == weights->ends[1]);
}

/* Is what is rounded in place of p a number of the format already? */
static int is_of_format(const struct walk *w, double p, double factor) {
    const double x = w->weights->factor_first ? factor * p : p;
    return at_round(w->format, x) == x;
}

static void visit(void *context, int64_t row, enum at_stage stage, int64_t n, const double *p) {
    struct walk *w = context;
    if (stage != AT_STAGE_p)
        return;
    const struct at_attn_row at = at_attn_row(w->problem, row);
    const double factor = w->weights->factor ? w->weights->factor[at.head] : 1, size = w->out->u * fabs(factor);
    int64_t count = 0;
    load_values(w, &at);
    for (int64_t t = 0; t < n; t++) {
        if (p[t] == 0 || isnan(p[t]))
            continue;
        if (!stands_at_an_end(w->weights, p[t]))
            w->sorted[count++] = (struct weight){ p[t], t };
        else if (is_of_format(w, p[t], factor))
            add_key(w, row, size * fabs(p[t]), t, 1);
    }
    qsort(w->sorted, (size_t)count, sizeof *w->sorted, by_value);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && w->sorted[end].p == w->sorted[i].p;)
            end++;
        if (end == i + 1)
            add_key(w, row, size * fabs(w->sorted[i].p), w->sorted[i].key, 0);
    }
}

at_status at_attn_roundings(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                            int64_t row1, const struct at_attn_weights *weights, struct at_roundings *out) {
    const enum at_format p = (enum at_format)numerics->p;
    const size_t keys = (size_t)problem->sizes.max_sk, d = (size_t)problem->sizes.d;
    at_status status = AT_OK;
    struct walk w = { .problem = problem, .weights = weights, .out = out, .format = p, .request = -1 };
    struct at_eval eval = { .trace = visit, .trace_context = &w };
    /* f32 says "none narrower" */
    out->u = p == AT_F32 || p == AT_F64 || out->tensor != weights->output ? 0 : at_format_info(p)->u;
    if (out->u == 0)
        return AT_OK;
    w.v = malloc((keys * d + 1) * sizeof *w.v);
    w.sorted = malloc((keys + 1) * sizeof *w.sorted);
    if (!w.v || !w.sorted)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for values of %zu keys of head size %zu", keys, d);
    AT_TRY_OUT(problem->op->evaluate(problem, NULL, row0, row1, &eval));
out:
    free(w.v);
    free(w.sorted);
    return status;
}
