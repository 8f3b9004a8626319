/* Requests, keys and number formats for the C baselines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/host/attention.h"

#include <string.h>

enum { PIECE_ALIGN = 64 };

const char *at_host_declines(const struct at_problem *problem, int decode) {
    if (problem->dtype != AT_F32 && problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "takes f32, f16 and bf16";
    if (decode && problem->sizes.max_sq > 1)
        return "decode takes at most one query a request";
    return NULL;
}

static int64_t index_at(const struct at_problem *problem, int tensor, int64_t i) {
    return ((const int32_t *)problem->tensors[tensor].data)[i];
}

struct at_host_request at_host_request(const struct at_problem *problem, int64_t index) {
    struct at_host_request r = { .index = index };
    r.token = index_at(problem, AT_ATTN_QUERY_START, index);
    r.sq = index_at(problem, AT_ATTN_QUERY_START, index + 1) - r.token;
    r.sk = index_at(problem, AT_ATTN_SEQ_LENS, index);
    return r;
}

int64_t at_host_visible(const struct at_problem *problem, const struct at_host_request *request, int64_t i) {
    if (!problem->params.causal)
        return request->sk;
    int64_t hidden = request->sq - 1 - i; /* the last query sees every key, each one before it one less */
    return hidden < request->sk ? request->sk - hidden : 0;
}

int64_t at_host_key_element(const struct at_problem *problem, const struct at_host_request *request, int64_t t,
                            int64_t g) {
    const struct at_sizes *z = &problem->sizes;
    int64_t slot;
    if (z->page > 0) {
        int64_t page = index_at(problem, AT_ATTN_BLOCK_TABLE, request->index * z->max_pages + t / z->page);
        slot = page * z->page + t % z->page;
    } else {
        slot = index_at(problem, AT_ATTN_KEY_START, request->index) + t;
    }
    return (slot * z->hk + g) * z->d;
}

void at_host_load_keys(const struct at_problem *problem, int tensor, const struct at_host_request *request, int64_t g,
                       int64_t first, int64_t n, float *out) {
    const int64_t d = problem->sizes.d;
    for (int64_t i = 0; i < n; i++)
        at_host_load(&problem->tensors[tensor], at_host_key_element(problem, request, first + i, g), d, out + i * d);
}

void at_host_load_query(const struct at_problem *problem, int64_t token, int64_t head, float *out) {
    const struct at_sizes *z = &problem->sizes;
    at_host_load(&problem->tensors[AT_ATTN_Q], (token * z->h + head) * z->d, z->d, out);
}

void at_host_load(const struct at_tensor *tensor, int64_t first, int64_t n, float *out) {
    const uint16_t *codes = (const uint16_t *)tensor->data + first;
    if (tensor->format == AT_F32)
        memcpy(out, (const float *)tensor->data + first, (size_t)n * sizeof *out);
    else if (tensor->format == AT_F16)
        for (int64_t i = 0; i < n; i++)
            out[i] = at_f32_from_f16(codes[i]);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = at_f32_from_bf16(codes[i]);
}

void at_host_store(const struct at_tensor *tensor, int64_t first, int64_t n, const float *values) {
    uint16_t *codes = (uint16_t *)tensor->data + first;
    if (tensor->format == AT_F32)
        memcpy((float *)tensor->data + first, values, (size_t)n * sizeof *values);
    else if (tensor->format == AT_F16)
        for (int64_t i = 0; i < n; i++)
            codes[i] = at_f16_from_f32(values[i]);
    else
        for (int64_t i = 0; i < n; i++)
            codes[i] = at_bf16_from_f32(values[i]);
}

float at_host_round(enum at_format format, float x) {
    if (format == AT_F16)
        return at_f32_from_f16(at_f16_from_f32(x));
    if (format == AT_BF16)
        return at_f32_from_bf16(at_bf16_from_f32(x));
    return x;
}

void *at_host_take(struct at_host_arena *arena, int64_t count, int64_t bytes_each) {
    void *piece = arena->base ? arena->base + arena->used : NULL;
    arena->used += (count * bytes_each + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
    return piece;
}
