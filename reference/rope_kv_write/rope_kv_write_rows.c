/* Rows of tokens and of slots that none writes: exact values with limits, the declared arithmetic, and ways of being wrong.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A token's queries and keys turn as rotation/ says, with its limits; values and what was in the cache are moved, with a limit
 * of 0. A fault of the write gives a slot another writer, or none: it is looked for among all tokens, of which the last counts. */
#include "rope_kv_write/rope_kv_write.h"

static const int MAPPING = AT_ROPE_KV_WRITE_SLOT_MAPPING;

/* Does any token write the slot? */
static int is_written(const struct at_problem *p, int64_t slot) {
    const int32_t *mapping = p->tensors[MAPPING].data;
    for (int64_t token = 0; token < p->sizes.tokens; token++)
        if (mapping[token] == slot)
            return 1;
    return 0;
}

int64_t at_rope_kv_write_slot(const struct at_problem *p, int64_t row) {
    if (row < p->sizes.tokens)
        return at_cache_slot_of(p, MAPPING, AT_CACHE_RIGHT, row);
    return is_written(p, row - p->sizes.tokens) ? -1 : row - p->sizes.tokens;
}

struct walk {
    struct at_rotation rotation;
    int fault; /* of the operator, AT_ROPE_RIGHT: none */
};

/* Where a token goes, by the fault. */
static int64_t slot_of(const struct walk *w, int64_t token) {
    const struct at_problem *p = w->rotation.problem;
    if (w->fault == AT_ROPE_KV_WRITE_SLOT_BEFORE)
        return at_cache_slot_of(p, MAPPING, AT_CACHE_RIGHT, token > 0 ? token - 1 : 0);
    return at_cache_slot_of(p, MAPPING, w->fault - AT_ROPE_KV_WRITE_OF_CACHE, token);
}

/* The token that the slot of a row is left by, -1: none. */
static int64_t writer_of(const struct walk *w, int64_t row, int64_t slot) {
    const int64_t tokens = w->rotation.problem->sizes.tokens;
    int64_t writer = -1;
    if (w->fault == AT_ROPE_KV_WRITE_OF_CACHE + AT_CACHE_NOT_WRITTEN)
        return -1;
    if (w->fault < AT_ROPE_KV_WRITE_OF_CACHE)
        return row < tokens ? row : -1;
    for (int64_t token = 0; token < tokens; token++)
        if (slot_of(w, token) == slot)
            writer = token;
    return writer;
}

static void put_slot(const struct walk *w, int64_t slot, int64_t writer) {
    const struct at_rotation *r = &w->rotation;
    const int64_t hk = r->problem->sizes.hk, n = hk * r->problem->sizes.d;
    const int swapped = w->fault == AT_ROPE_KV_WRITE_OF_CACHE + AT_CACHE_K_AND_V_SWAPPED;
    const int of_k = swapped ? AT_ROPE_KV_WRITE_V_CACHE : AT_ROPE_KV_WRITE_K_CACHE;
    const int of_v = swapped ? AT_ROPE_KV_WRITE_K_CACHE : AT_ROPE_KV_WRITE_V_CACHE;
    if (writer < 0) {
        at_rotation_keep(r, AT_ROPE_KV_WRITE_K_CACHE, slot * n, AT_ROPE_KV_WRITE_K_CACHE, slot * n, n);
        at_rotation_keep(r, AT_ROPE_KV_WRITE_V_CACHE, slot * n, AT_ROPE_KV_WRITE_V_CACHE, slot * n, n);
        return;
    }
    at_rotation_heads(r, AT_ROPE_KV_WRITE_K, writer, of_k, slot, hk, r->fault == AT_ROPE_K_COPIED ? 0 : hk);
    if (w->fault == AT_ROPE_KV_WRITE_V_ROTATED)
        at_rotation_heads(r, AT_ROPE_KV_WRITE_V, writer, of_v, slot, hk, hk);
    else
        at_rotation_keep(r, AT_ROPE_KV_WRITE_V, writer * n, of_v, slot * n, n);
}

/* Without a slot a token's queries are all that it has; the last fault leaves those out, too. */
static void put_queries(const struct walk *w, int64_t token) {
    const struct at_rotation *r = &w->rotation;
    const int64_t h = r->problem->sizes.h, n = h * r->problem->sizes.d;
    const int left_out = w->fault == AT_ROPE_KV_WRITE_ONLY_WRITTEN && slot_of(w, token) < 0;
    const int64_t turned = r->fault == AT_ROPE_HEADS_OF_K ? r->problem->sizes.hk : h;
    at_rotation_heads(r, AT_ROPE_KV_WRITE_Q, token, AT_ROPE_KV_WRITE_Q_OUT, token, h, turned);
    for (int64_t i = token * n; left_out && r->eval->value[AT_ROPE_KV_WRITE_Q_OUT] && i < (token + 1) * n; i++)
        r->eval->value[AT_ROPE_KV_WRITE_Q_OUT][i] = 0;
}

static at_status walk_rows(const struct at_problem *p, const struct at_numerics *numerics, int modelled, int fault,
                           int64_t row0, int64_t row1, struct at_eval *eval) {
    struct walk w = { .rotation = { .problem = p,
                                    .numerics = numerics,
                                    .eval = eval,
                                    .positions = AT_ROPE_KV_WRITE_POSITIONS,
                                    .table = AT_ROPE_KV_WRITE_COS_SIN,
                                    .modelled = modelled,
                                    .fault = fault < AT_ROPE_FAULTS ? fault : AT_ROPE_RIGHT },
                      .fault = fault };
    at_rotation_init(&w.rotation);
    if (row0 < p->sizes.tokens)
        at_rotation_begin(&w.rotation, row0);
    for (int64_t row = row0; row < row1; row++) {
        const int64_t slot = at_rope_kv_write_slot(p, row);
        if (row < p->sizes.tokens) {
            at_rotation_next(&w.rotation, row);
            put_queries(&w, row);
        }
        if (slot >= 0)
            put_slot(&w, slot, writer_of(&w, row, slot));
    }
    return AT_OK;
}

at_status at_rope_kv_write_evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0,
                                    int64_t row1, struct at_eval *eval) {
    return walk_rows(p, numerics, 0, AT_ROPE_RIGHT, row0, row1, eval);
}

at_status at_rope_kv_write_model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0,
                                 int64_t row1, struct at_eval *eval) {
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "rope_kv_write: no order is declared, so there is no modelled value");
    return walk_rows(p, numerics, 1, AT_ROPE_RIGHT, row0, row1, eval);
}

at_status at_rope_kv_write_decoy(const struct at_problem *p, const struct at_numerics *numerics, int which,
                                 int64_t row0, int64_t row1, struct at_eval *eval) {
    return walk_rows(p, numerics, 0, which, row0, row1, eval);
}
