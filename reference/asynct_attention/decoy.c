/* AsyncT attention made wrong in one way at a time, exactly otherwise.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each fault is one that a real kernel can have. Sums run in the order of the reference, so that elements
 * that a fault does not touch are equal to the reference's to the bit. */
#include <math.h>
#include <stdlib.h>

#include "asynct_attention/asynct_attention.h"
#include "asynct_attention/rows.h"

struct decoy {
    const struct at_problem *problem;
    enum at_asynct_decoy kind;
    int64_t split, splits; /* declared keys per partial, 0: none */
    double *values;        /* of the whole output */
    double *s, *p;         /* [max_sk]; s is the allocation */
};

/* Where the filter's history begins for key t: the start of t's split. Where the declared split leaves the row
 * whole, and for variants that declare none, splits are halves of the row in whole tiles of 16 keys. */
static int64_t history(const struct decoy *x, int64_t visible, int64_t t) {
    if (x->kind != AT_ASYNCT_HALO_FORGOTTEN)
        return 0;
    int64_t split = at_partial_keys(x->split, x->splits, visible);
    if (split == 0 || split >= visible)
        split = (visible / 2 + 15) / 16 * 16;
    return split > 0 ? t / split * split : 0;
}

/* p of the first n keys, s ready. */
static void gate(const struct decoy *x, const struct at_asynct_head *head, int64_t visible, int64_t n) {
    for (int64_t t = 0; t < n; t++) {
        double z = at_asynct_fir(head, x->s, t, history(x, visible, t));
        if (x->kind == AT_ASYNCT_FIR_SHIFTED)
            z = t > 0 ? at_asynct_fir(head, x->s, t - 1, 0) : 0.0;
        /* the divisor of a pooled FIR stays when its last tap goes */
        if (x->kind == AT_ASYNCT_TAP_DROPPED && head->taps > 1 && t >= head->taps - 1) {
            int last = head->taps - 1;
            double w = head->pooled ? -head->sigma / (double)head->taps : head->tap[last];
            z -= w * at_asynct_relu(head, x->s[t - last]);
        }
        x->p[t] = x->kind == AT_ASYNCT_GATE_UNCLAMPED ? z : at_asynct_clamp(head, z);
    }
}

/* The row of V that key t reads. */
static int64_t partner(const struct decoy *x, int64_t t, int64_t n) {
    int64_t other = t ^ 1;
    return x->kind == AT_ASYNCT_V_SWAPPED && other < n ? other : t;
}

static at_status decoy_row(void *context, const struct at_asynct_input *in) {
    struct decoy *x = context;
    const int64_t d = x->problem->sizes.d, row = in->row.token * x->problem->sizes.h + in->row.head;
    int64_t n = in->row.visible;
    n += x->kind == AT_ASYNCT_HIDDEN_KEY_ADDED && n < in->row.keys;
    n -= x->kind == AT_ASYNCT_LAST_KEY_DROPPED && n > 0;
    n = x->kind == AT_ASYNCT_MASK_MISSING    ? in->row.keys
        : x->kind == AT_ASYNCT_MASK_TOP_LEFT ? at_attn_visible_top_left(x->problem, &in->row)
                                             : n;
    struct at_asynct_head head;
    at_asynct_head_init(x->problem, in->row.head, &head);
    if (x->kind == AT_ASYNCT_NO_SCALE)
        head.scale = 1;
    at_asynct_dots(in->q, in->k, n, d, x->s);
    for (int64_t t = 0; t < n; t++)
        x->s[t] *= head.scale;
    gate(x, &head, in->row.visible, n);
    double *o = x->values + row * d;
    for (int64_t c = 0; c < d; c++)
        o[c] = 0;
    for (int64_t t = 0; t < n; t++)
        if (x->p[t] != 0)
            at_asynct_add(head.gamma * x->p[t], in->v + partner(x, t, n) * d, d, o);
    return AT_OK;
}

at_status at_asynct_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int decoy, int64_t row0,
                          int64_t row1, struct at_eval *eval) {
    if (decoy < 0 || decoy >= AT_ASYNCT_DECOYS)
        return AT_FAIL(AT_BUG, "decoy %d of asynct_attention, which has %d", decoy, AT_ASYNCT_DECOYS);
    if (!eval->value[AT_ASYNCT_O])
        return AT_OK;
    const size_t keys = (size_t)problem->sizes.max_sk;
    struct decoy x = { problem,
                       (enum at_asynct_decoy)decoy,
                       numerics ? numerics->split : 0,
                       numerics ? numerics->splits : 0,
                       eval->value[AT_ASYNCT_O],
                       NULL,
                       NULL };
    x.s = malloc((2 * keys + 1) * sizeof *x.s);
    if (!x.s)
        return AT_FAIL(AT_NO_MEMORY, "a row of %zu keys", keys);
    x.p = x.s + keys;
    at_status status = at_asynct_walk(problem, row0, row1, decoy_row, &x);
    free(x.s);
    return status;
}
