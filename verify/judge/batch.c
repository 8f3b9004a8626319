/* Gathering requests (or tokens) of a problem into a smaller or reordered one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/batch.h"

#include <stdlib.h>
#include <string.h>

#include "attest/attention.h"

static int is_attention(const struct at_problem *p) { return at_op_tensor_index(p->op, "seq_lens") >= 0; }

/* Where a token goes in the cache, whose rows are the operator's; -2 for an operator without one. */
static int64_t cache_slot(const struct at_problem *p, int64_t token) {
    const int mapping = at_op_tensor_index(p->op, "slot_mapping");
    return mapping < 0 ? -2 : at_tensor_i32(&p->tensors[mapping], token);
}

/* A product is gathered by rows of its first factor. */
static int is_product(const struct at_problem *p) { return p->op->tensors[0].dims[0] == AT_DIM_m; }

int64_t at_batch_units(const struct at_problem *p) {
    return is_attention(p) ? p->sizes.b : is_product(p) ? p->sizes.m : p->sizes.tokens;
}

static int64_t start_of(const struct at_problem *p, int tensor, int64_t r) {
    return at_tensor_i32(&p->tensors[tensor], r);
}

void at_batch_rows(const struct at_problem *p, int64_t u, int64_t *first, int64_t *count) {
    if (!is_attention(p)) {
        const int64_t slot = cache_slot(p, u);
        *first = slot >= 0 ? slot : u;
        *count = slot != -1; /* a token without a slot leaves nothing to compare */
        return;
    }
    *first = start_of(p, AT_ATTN_QUERY_START, u) * p->sizes.h;
    *count = start_of(p, AT_ATTN_QUERY_START, u + 1) * p->sizes.h - *first;
}

/* Copies `count` leading-dimension rows from row `from` of src to row `to` of dst. */
static void copy_rows(struct at_tensor *dst, int64_t to, const struct at_tensor *src, int64_t from, int64_t count) {
    int64_t row = (int64_t)at_format_info(src->format)->bytes;
    for (int i = 1; i < src->rank; i++)
        row *= src->shape[i];
    if (count > 0 && row > 0)
        memcpy((char *)dst->data + to * row, (const char *)src->data + from * row, (size_t)(count * row));
}

static void attention_sizes(const struct at_problem *p, struct at_batch_part *part) {
    struct at_sizes *s = &part->problem.sizes;
    s->b = part->n;
    s->tokens = s->max_sq = s->max_sk = 0;
    int64_t keys = 0;
    for (int64_t i = 0; i < part->n; i++) {
        int64_t r = part->requests[i];
        int64_t sq = start_of(p, AT_ATTN_QUERY_START, r + 1) - start_of(p, AT_ATTN_QUERY_START, r);
        int64_t sk = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r);
        s->tokens += sq;
        keys += sk;
        s->max_sq = sq > s->max_sq ? sq : s->max_sq;
        s->max_sk = sk > s->max_sk ? sk : s->max_sk;
    }
    if (s->page == 0)
        s->slots = keys;
}

/* Tensors are placed one after another in one block, each on a 64-byte boundary. */
static at_status place_inputs(const struct at_problem *p, struct at_batch_part *part) {
    int64_t total = 0, offset[AT_MAX_TENSORS];
    for (int t = 0; t < p->op->n_tensors; t++) {
        struct at_tensor *dst = &part->problem.tensors[t];
        dst->data = NULL;
        offset[t] = total;
        if (p->op->tensors[t].role == AT_OUT || dst->rank == 0)
            continue;
        int64_t bytes = (int64_t)at_format_info(dst->format)->bytes;
        for (int i = 0; i < dst->rank; i++)
            bytes *= dst->shape[i];
        total += (bytes + 63) / 64 * 64 + 64;
    }
    part->memory = calloc(1, (size_t)total + 64);
    if (!part->memory)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a batch of %lld units", (long long)part->n);
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role != AT_OUT && part->problem.tensors[t].rank)
            part->problem.tensors[t].data = (char *)part->memory + offset[t];
    return AT_OK;
}

static void gather_attention(const struct at_problem *p, struct at_batch_part *part) {
    struct at_tensor *to = part->problem.tensors;
    const struct at_tensor *from = p->tensors;
    int paged = p->sizes.page > 0;
    int32_t query = 0, key = 0;
    for (int64_t i = 0; i < part->n; i++) {
        int64_t r = part->requests[i], q0 = start_of(p, AT_ATTN_QUERY_START, r);
        int64_t sq = start_of(p, AT_ATTN_QUERY_START, r + 1) - q0;
        int32_t sk = at_tensor_i32(&from[AT_ATTN_SEQ_LENS], r);
        ((int32_t *)to[AT_ATTN_QUERY_START].data)[i] = query;
        ((int32_t *)to[AT_ATTN_SEQ_LENS].data)[i] = sk;
        copy_rows(&to[AT_ATTN_Q], query, &from[AT_ATTN_Q], q0, sq);
        if (paged) {
            copy_rows(&to[AT_ATTN_BLOCK_TABLE], i, &from[AT_ATTN_BLOCK_TABLE], r, 1);
        } else {
            ((int32_t *)to[AT_ATTN_KEY_START].data)[i] = key;
            copy_rows(&to[AT_ATTN_K], key, &from[AT_ATTN_K], start_of(p, AT_ATTN_KEY_START, r), sk);
            copy_rows(&to[AT_ATTN_V], key, &from[AT_ATTN_V], start_of(p, AT_ATTN_KEY_START, r), sk);
        }
        query += (int32_t)sq;
        key += sk;
    }
    ((int32_t *)to[AT_ATTN_QUERY_START].data)[part->n] = query;
    if (!paged)
        ((int32_t *)to[AT_ATTN_KEY_START].data)[part->n] = key;
}

/* Index tensors and, when contiguous, k and v depend on the batch; q is gathered with them. */
static int gathered_above(const struct at_problem *p, int t) {
    if (!is_attention(p))
        return 0;
    return t == AT_ATTN_Q || (t >= AT_ATTN_QUERY_START && t < AT_ATTN_COMMON) ||
           ((t == AT_ATTN_K || t == AT_ATTN_V) && p->sizes.page == 0);
}

at_status at_batch_gather(const struct at_problem *p, const int64_t *units, int64_t n, struct at_batch_part *part) {
    at_status status = AT_OK;
    memset(part, 0, sizeof *part);
    part->problem = *p;
    part->n = n;
    part->requests = malloc(((size_t)n + 1) * sizeof *part->requests);
    if (!part->requests)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a batch of %lld units", (long long)n);
    memcpy(part->requests, units, (size_t)n * sizeof *units);
    if (is_attention(p))
        attention_sizes(p, part);
    else if (is_product(p))
        part->problem.sizes.m = n;
    else
        part->problem.sizes.tokens = n;
    at_problem_shape(&part->problem);
    AT_TRY_OUT(place_inputs(p, part));
    if (is_attention(p))
        gather_attention(p, part);
    for (int t = 0; t < p->op->n_tensors; t++) {
        struct at_tensor *to = &part->problem.tensors[t];
        if (!to->data || gathered_above(p, t))
            continue;
        if (p->op->tensors[t].dims[0] == AT_DIM_tokens || p->op->tensors[t].dims[0] == AT_DIM_m) {
            for (int64_t i = 0; i < n; i++)
                copy_rows(to, i, &p->tensors[t], units[i], 1);
        } else {
            memcpy(to->data, p->tensors[t].data, (size_t)at_tensor_bytes(&p->tensors[t]));
        }
    }
out:
    if (status != AT_OK)
        at_batch_release(part);
    return status;
}

void at_batch_release(struct at_batch_part *part) {
    free(part->memory);
    free(part->requests);
    memset(part, 0, sizeof *part);
}
