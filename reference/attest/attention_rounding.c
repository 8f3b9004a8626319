/* What rounding P to nearest can do to the outputs of an attention operator: `roundings` of its descriptor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that rounds P to a narrower format has w_t (1 + a_t) + b_t in place of the weight w_t of key t, |a_t| <= u and
 * b_t = 0 where w_t is a normal number (b_t is underflow, which errs to one side, and stays with the limit). To first order
 * o_c moves by sum_t a_t w_t v_tc: the error of one key moves all channels of its row together, element c by at most
 * u |w_t| |v_tc|. What is of second order stays with the limit too, which charges u for weights with their errors.
 *
 * A weight that stands at an end of a gate which is a number of P's format is rounded to itself: exact, and what the
 * limit charges for it is charged for nothing (keys whose score is within its error of the end apart, which are as few as
 * that is small). */
#include <math.h>
#include <stdlib.h>

#include "attest/attention.h"

struct walk {
    const struct at_problem *problem;
    const struct at_attn_weights *weights;
    struct at_roundings *out;
    enum at_format format;            /* of P */
    int64_t request, kv_head, loaded; /* keys of v that are there */
    double *v;                        /* [max_sk d] */
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

/* The rounding of key t's weight p: at most `size` of it. */
static void add_key(const struct walk *w, int64_t row, double p, double size, int64_t key, int is_exact) {
    const int64_t d = w->problem->sizes.d;
    const double *v = w->v + key * d, *x = w->out->exact + row * d;
    double *share = w->out->share + row * d, moved[AT_MOMENT_COUNT] = { 0 };
    for (int64_t c = 0; c < d; c++) {
        share[c] += fabs(size * v[c]);
        moved[AT_MOMENT_SLOPE] += size * x[c] * v[c];
        moved[AT_MOMENT_MEAN] += size * v[c];
    }
    if (!is_exact)
        w->out->rounding(w->out->context, row, p, moved);
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
    const double factor = w->weights->factor ? w->weights->factor[at.head] : 1, size = w->out->u * factor;
    load_values(w, &at);
    for (int64_t t = 0; t < n; t++)
        if (p[t] != 0 && isfinite(p[t]))
            add_key(w, row, p[t], size * p[t], t, stands_at_an_end(w->weights, p[t]) && is_of_format(w, p[t], factor));
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
    if (!w.v)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for values of %zu keys of head size %zu", keys, d);
    AT_TRY_OUT(problem->op->evaluate(problem, NULL, row0, row1, &eval));
out:
    free(w.v);
    return status;
}
