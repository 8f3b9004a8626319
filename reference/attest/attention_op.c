/* What a verifier asks of attention operators: parts of a batch, rows that belong together, values that count.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "attest/attention.h"

static int64_t start_of(const struct at_problem *p, int tensor, int64_t r) {
    return at_tensor_i32(&p->tensors[tensor], r);
}

static int64_t queries_of(const struct at_problem *p, int64_t r) {
    return start_of(p, AT_ATTN_QUERY_START, r + 1) - start_of(p, AT_ATTN_QUERY_START, r);
}

static int64_t keys_of(const struct at_problem *p, int64_t r) {
    return at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r);
}

/* ---- parts of a batch ---- */

void at_attn_part_sizes(const struct at_problem *p, const int64_t *requests, int64_t n, struct at_problem *part) {
    struct at_sizes *s = &part->sizes;
    s->b = n;
    s->tokens = s->max_sq = s->max_sk = 0;
    int64_t keys = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t sq = queries_of(p, requests[i]), sk = keys_of(p, requests[i]);
        s->tokens += sq;
        keys += sk;
        s->max_sq = sq > s->max_sq ? sq : s->max_sq;
        s->max_sk = sk > s->max_sk ? sk : s->max_sk;
    }
    if (s->page == 0)
        s->slots = keys;
}

unsigned at_attn_part_fill(const struct at_problem *p, const int64_t *requests, int64_t n, struct at_problem *part) {
    const struct at_tensor *from = p->tensors;
    struct at_tensor *to = part->tensors;
    const int paged = p->sizes.page > 0;
    int32_t query = 0, key = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t r = requests[i], sq = queries_of(p, r);
        const int32_t sk = (int32_t)keys_of(p, r);
        ((int32_t *)to[AT_ATTN_QUERY_START].data)[i] = query;
        ((int32_t *)to[AT_ATTN_SEQ_LENS].data)[i] = sk;
        at_tensor_copy_rows(&to[AT_ATTN_Q], query, &from[AT_ATTN_Q], start_of(p, AT_ATTN_QUERY_START, r), sq);
        if (paged) {
            at_tensor_copy_rows(&to[AT_ATTN_BLOCK_TABLE], i, &from[AT_ATTN_BLOCK_TABLE], r, 1);
        } else {
            const int64_t first = start_of(p, AT_ATTN_KEY_START, r);
            ((int32_t *)to[AT_ATTN_KEY_START].data)[i] = key;
            at_tensor_copy_rows(&to[AT_ATTN_K], key, &from[AT_ATTN_K], first, sk);
            at_tensor_copy_rows(&to[AT_ATTN_V], key, &from[AT_ATTN_V], first, sk);
        }
        query += (int32_t)sq;
        key += sk;
    }
    ((int32_t *)to[AT_ATTN_QUERY_START].data)[n] = query;
    if (!paged)
        ((int32_t *)to[AT_ATTN_KEY_START].data)[n] = key;
    const unsigned all = (1u << AT_ATTN_COMMON) - 1, keys = 1u << AT_ATTN_K | 1u << AT_ATTN_V;
    return paged ? all & ~keys : all;
}

void at_attn_unit_rows(const struct at_problem *p, int64_t r, int64_t *first, int64_t *count) {
    *first = start_of(p, AT_ATTN_QUERY_START, r) * p->sizes.h;
    *count = start_of(p, AT_ATTN_QUERY_START, r + 1) * p->sizes.h - *first;
}

/* ---- rows that belong together ---- */

int64_t at_attn_request_of_row(const struct at_problem *p, int64_t row) { return at_attn_row(p, row).request; }

int64_t at_attn_next_head_row(const struct at_problem *p, int64_t row) {
    const int64_t h = p->sizes.h;
    return row / h * h + (row % h + 1) % h;
}

/* ---- values that count ---- */

/* Keys and values of every request; what lies past seq_lens or in nobody's page is poison, which counts for nothing. */
static int keys_finite(const struct at_problem *p) {
    for (int64_t r = 0; r < p->sizes.b; r++)
        for (int64_t t = 0, n = keys_of(p, r); t < n; t++) {
            const int64_t first = at_attn_kv_index(p, r, t, 0), count = p->sizes.hk * p->sizes.d;
            if (!at_tensor_finite(&p->tensors[AT_ATTN_K], first, count) ||
                !at_tensor_finite(&p->tensors[AT_ATTN_V], first, count))
                return 0;
        }
    return 1;
}

int at_attn_inputs_finite(const struct at_problem *p) {
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role != AT_OUT && t != AT_ATTN_K && t != AT_ATTN_V && p->tensors[t].data &&
            !at_tensor_finite(&p->tensors[t], 0, at_tensor_count(&p->tensors[t])))
            return 0;
    return keys_finite(p);
}

/* ---- what a time is set against ---- */

double at_attn_flops(const struct at_problem *p) {
    double sum = 0;
    for (int64_t row = 0, rows = at_attn_rows(p); row < rows; row++)
        sum += 4.0 * (double)at_attn_row(p, row).visible * (double)p->sizes.d;
    return sum;
}

int64_t at_attn_moved(const struct at_problem *p, int tensor) {
    int64_t keys = 0;
    if (tensor != AT_ATTN_K && tensor != AT_ATTN_V)
        return at_tensor_count(&p->tensors[tensor]);
    for (int64_t r = 0; r < p->sizes.b; r++)
        keys += keys_of(p, r);
    return keys * p->sizes.hk * p->sizes.d;
}
