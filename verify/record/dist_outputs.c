/* A unit of a recording as a problem of score_counts, and its outputs as sums of a layer.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "score_counts/score_counts.h"
#include "verify/record/dist_device.h"
#include "verify/record/dist_worker.h"

/* The bits of both lists are the same. */
_Static_assert((int)AT_COUNTS_QUANTITIES == (int)AT_DIST_COUNT && (int)AT_COUNTS_OF_P == (int)AT_DIST_p &&
                   (int)AT_COUNTS_OF_SHARE0 == (int)AT_DIST_share0 && (int)AT_COUNTS_OF_RAW == (int)AT_DIST_raw,
               "quantities in one order");
_Static_assert((int)AT_COUNTS_PAGE == (int)AT_DIST_PAGE && (int)AT_COUNTS_TILE == (int)AT_DIST_TILE &&
                   (int)AT_COUNTS_STAGES == (int)AT_DIST_STAGES && (int)AT_CODE_SLOTS == (int)AT_DIST_SLOTS &&
                   (int)AT_COUNTS_DISTANCES == (int)AT_DIST_MAX_DISTANCES,
               "sizes of one meaning");

/* ---- the problem ---- */

static int what_of(const struct at_dist_unit *u, const struct at_dist_shape *shape) {
    int what = (int)shape->what | 1 << AT_DIST_raw | 1 << AT_DIST_scaled | 1 << AT_DIST_p | 1 << AT_DIST_out;
    if (!u->softmax)
        what |= 1 << AT_DIST_fir;
    if (u->first_query > 0) /* k and v were counted with the first queries */
        what &= ~AT_COUNTS_KV_BITS;
    return what;
}

static at_status fill_parameters(const struct at_dist_unit *u, struct at_dist_problem *out) {
    struct at_problem *p = &out->problem;
    const int64_t h = p->sizes.h, taps = p->sizes.taps;
    out->parameters = calloc((size_t)(h * (taps + 2)), sizeof *out->parameters);
    if (!out->parameters)
        return AT_FAIL(AT_NO_MEMORY, "no memory for parameters of %lld heads", (long long)h);
    float *sigma = out->parameters, *gamma = sigma + h, *tap = gamma + h;
    for (int64_t i = 0; i < h; i++) {
        sigma[i] = (float)u->heads[i].sigma;
        gamma[i] = (float)u->heads[i].gamma;
        for (int64_t j = 0; !u->softmax && j < taps; j++)
            tap[i * taps + j] = (float)u->heads[i].tap[j];
    }
    p->tensors[AT_COUNTS_SIGMA].data = sigma;
    p->tensors[AT_COUNTS_GAMMA].data = gamma;
    p->tensors[AT_COUNTS_TAPS].data = tap;
    return AT_OK;
}

static void set_sizes(const struct at_dist_unit *u, const struct at_dist_shape *shape, struct at_problem *p) {
    struct at_sizes *z = &p->sizes;
    const struct at_asynct_head *head = &u->heads[0];
    z->b = 1;
    z->h = shape->h;
    z->hk = shape->hk;
    z->d = u->d;
    z->tokens = z->max_sq = u->tile;
    z->slots = z->max_sk = z->capacity = u->keys;
    z->taps = u->softmax ? 1 : head->taps;
    p->params.scale = (float)head->scale;
    p->params.causal = u->causal;
    struct at_counts_own own = { .softmax = u->softmax,
                                 .bins = shape->bins,
                                 .what = what_of(u, shape),
                                 .behind = (int32_t)(u->queries - u->first_query - u->tile) };
    at_counts_planes(own.what, &own.quantities, &own.kv_quantities);
    at_counts_own_set(p, &own);
    if (u->softmax)
        return;
    p->params.relu_pre = head->relu_pre;
    p->params.edge = head->shrink ? AT_EDGE_SHRINK : AT_EDGE_ZERO;
    p->params.fir_form = head->pooled ? AT_FIR_POOLED : AT_FIR_TAPS;
    p->params.clip_min = (float)head->clip_min;
    p->params.clip_max = (float)head->clip_max;
}

at_status at_dist_problem_make(const struct at_dist_unit *u, const struct at_dist_shape *shape,
                               struct at_dist_problem *out) {
    struct at_problem *p = &out->problem;
    at_status status = AT_OK;
    *out = (struct at_dist_problem){ .keys = (int32_t)u->keys };
    at_problem_init(p, &at_op_score_counts, u->format);
    set_sizes(u, shape, p);
    at_problem_shape(p);
    out->starts[0][1] = (int32_t)u->tile;
    out->starts[1][1] = (int32_t)u->keys;
    const void *const inputs[] = { u->q, u->k, u->v };
    for (int i = 0; i < 3; i++) /* nobody writes to an input */
        memcpy(&p->tensors[AT_ATTN_Q + i].data, &inputs[i], sizeof inputs[i]);
    p->tensors[AT_ATTN_QUERY_START].data = out->starts[0];
    p->tensors[AT_ATTN_KEY_START].data = out->starts[1];
    p->tensors[AT_ATTN_SEQ_LENS].data = &out->keys;
    AT_TRY_OUT(fill_parameters(u, out));
    if (p->op->check(p) != AT_OK)
        AT_FAIL_OUT(AT_UNSUPPORTED, "request %lld is no problem of score_counts: %.300s", (long long)u->request,
                    at_error_message());
out:
    if (status != AT_OK)
        at_dist_problem_release(out);
    return status;
}

void at_dist_problem_release(struct at_dist_problem *problem) {
    free(problem->parameters);
    *problem = (struct at_dist_problem){ 0 };
}

/* ---- its outputs ---- */

static int64_t pages_of(int64_t keys) { return (keys + AT_DIST_PAGE - 1) / AT_DIST_PAGE; }

/* What sizes alone say: visible (query, key), (query, page), tiles. */
struct totals {
    uint64_t pairs, pages, tiles;
};

static struct totals totals_of(const struct at_dist_unit *u) {
    struct totals t = { 0, 0, 0 };
    for (int64_t i = u->first_query; i < u->first_query + u->tile; i++) {
        const int64_t n = at_dist_visible(u, i);
        t.pairs += (uint64_t)n;
        t.pages += (uint64_t)pages_of(n);
        if (i % AT_DIST_TILE == AT_DIST_TILE - 1 || i == u->queries - 1)
            t.tiles += (uint64_t)pages_of(n);
    }
    return t;
}

/* The planes that the shape has, of one head. */
static void take_counts(const struct at_problem *p, const struct at_tensor *tensors, const struct at_dist_layer *layer,
                        int kv, int64_t head, struct at_dist_local *local) {
    const struct at_tensor *t = &tensors[kv ? AT_COUNTS_KV_COUNTS : AT_COUNTS_COUNTS];
    const int64_t planes = kv ? at_counts_own_of(p).kv_quantities : at_counts_own_of(p).quantities;
    for (int i = 0; i < AT_DIST_COUNT; i++) {
        const int plane = at_counts_plane(at_counts_own_of(p).what, i);
        local->counts[i] = NULL;
        if (plane >= 0 && (AT_COUNTS_KV_BITS >> i & 1) == kv && at_dist_has(&layer->shape, (enum at_dist_what)i))
            local->counts[i] = (uint32_t *)t->data + (head * planes + plane) * AT_DIST_SLOTS;
    }
}

static void take_ledger(const struct at_dist_unit *u, int64_t head, const double *fields, struct at_ledger_row *row) {
    *row = (struct at_ledger_row){ .count = (uint64_t)fields[AT_COUNTS_COUNT],
                                   .zero = (uint64_t)fields[AT_COUNTS_ZERO],
                                   .nan = (uint64_t)fields[AT_COUNTS_NAN],
                                   .inf = (uint64_t)fields[AT_COUNTS_INF],
                                   .above_65504 = (uint64_t)fields[AT_COUNTS_ABOVE],
                                   .to_inf = (uint64_t)fields[AT_COUNTS_TO_INF],
                                   .subnormal = (uint64_t)fields[AT_COUNTS_SUBNORMAL],
                                   .flushed = (uint64_t)fields[AT_COUNTS_FLUSHED],
                                   .max_abs = fields[AT_COUNTS_MAX_ABS],
                                   .has_first = fields[AT_COUNTS_HAS_FIRST] != 0 };
    if (row->has_first)
        row->first = (struct at_place){ u->request, head, u->first_query + (int64_t)fields[AT_COUNTS_FIRST_QUERY],
                                        (int64_t)fields[AT_COUNTS_FIRST_KEY], -1 };
}

static uint64_t counted(const uint32_t *counts) {
    uint64_t sum = 0;
    for (int64_t i = 0; counts && i < AT_DIST_SLOTS; i++)
        sum += counts[i];
    return sum;
}

static void take_sums(const struct at_dist_unit *u, const struct totals *t, int64_t head, const double *sums,
                      struct at_dist_local *local) {
    local->zero[AT_DIST_ZERO_element_zero] = (uint64_t)sums[AT_COUNTS_ELEMENT_ZERO];
    local->zero[AT_DIST_ZERO_element_total] = t->pairs;
    local->zero[AT_DIST_ZERO_tile_zero] = (uint64_t)sums[AT_COUNTS_TILE_ZERO];
    local->zero[AT_DIST_ZERO_tile_total] = t->tiles;
    for (int i = 0; i < AT_DIST_MAX_DISTANCES; i++)
        local->mass[i] = (uint64_t)sums[AT_COUNTS_MASS_HIGH + i] << 32 | (uint64_t)sums[AT_COUNTS_MASS_LOW + i];
    for (int s = 0; s < AT_DIST_STAGES; s++)
        take_ledger(u, head, sums + AT_COUNTS_LEDGER + s * AT_COUNTS_LEDGER_FIELDS, &local->ledger[s]);
    for (int i = AT_DIST_raw; i <= AT_DIST_p; i++)
        if (i != AT_DIST_fir || !u->softmax)
            local->tally[i].masked = (uint64_t)(u->tile * u->keys) - t->pairs;
    for (int i = AT_DIST_row_max; i <= AT_DIST_share0; i++)
        local->tally[i].n_empty = (uint64_t)u->tile - counted(local->counts[i]);
}

at_status at_dist_outputs_add(const struct at_dist_unit *u, const struct at_problem *p, struct at_tensor *tensors,
                              struct at_dist_layer *layer) {
    const struct totals t = totals_of(u);
    for (int64_t head = 0; head < p->sizes.h; head++) {
        struct at_dist_worker w = { 0 };
        take_counts(p, tensors, layer, 0, head, &w.local);
        take_sums(u, &t, head, (const double *)tensors[AT_COUNTS_SUMS].data + head * AT_HEAD_SUMS, &w.local);
        AT_TRY(at_dist_worker_flush(&w, 0, head, u->request, layer));
    }
    for (int64_t head = 0; head < p->sizes.hk; head++) {
        struct at_dist_worker w = { 0 };
        const double *sums = (const double *)tensors[AT_COUNTS_KV_SUMS].data + head * AT_KV_SUMS;
        take_counts(p, tensors, layer, 1, head, &w.local);
        w.local.zero[AT_DIST_ZERO_key_zero] = (uint64_t)sums[AT_COUNTS_KEY_ZERO];
        w.local.zero[AT_DIST_ZERO_key_total] = t.pairs;
        w.local.zero[AT_DIST_ZERO_page_zero] = (uint64_t)sums[AT_COUNTS_PAGE_ZERO];
        w.local.zero[AT_DIST_ZERO_page_total] = t.pages;
        AT_TRY(at_dist_worker_flush(&w, 1, head, u->request, layer));
    }
    return AT_OK;
}
