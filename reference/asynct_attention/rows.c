/* Walking the rows of a problem with q, k and v decoded to double.
 * SPDX-License-Identifier: Apache-2.0 */
#include "asynct_attention/rows.h"

#include <stdlib.h>

struct walk {
    const struct at_problem *problem;
    int64_t row0, row1;
    at_status (*visit)(void *context, const struct at_asynct_input *input);
    void *context;
    double *q, *k, *v; /* one allocation, at q */
};

static void decode(const struct at_tensor *x, int64_t first, int64_t n, double *values) {
    const char *codes = x->data;
    at_decode_array(x->format, (size_t)n, codes + (size_t)first * at_format_info(x->format)->bytes, values);
}

static void decode_keys(struct walk *w, int64_t request, int64_t kv_head, int64_t keys) {
    const int64_t d = w->problem->sizes.d;
    for (int64_t t = 0; t < keys; t++) {
        int64_t first = at_attn_kv_index(w->problem, request, t, kv_head);
        decode(&w->problem->tensors[AT_ATTN_K], first, d, w->k + t * d);
        decode(&w->problem->tensors[AT_ATTN_V], first, d, w->v + t * d);
    }
}

/* Rows of tokens [token0, token1), all of one request, whose heads read kv_head. */
static at_status walk_head(struct walk *w, int64_t token0, int64_t token1, int64_t kv_head) {
    const struct at_sizes *sizes = &w->problem->sizes;
    const int64_t group = sizes->h / sizes->hk;
    int decoded = 0;
    for (int64_t token = token0; token < token1; token++)
        for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
            int64_t index = token * sizes->h + head;
            if (index < w->row0 || index >= w->row1)
                continue;
            struct at_asynct_input input = { at_attn_row(w->problem, index), w->q, w->k, w->v };
            if (!decoded)
                decode_keys(w, input.row.request, kv_head, input.row.keys);
            decoded = 1;
            decode(&w->problem->tensors[AT_ATTN_Q], index * sizes->d, sizes->d, w->q);
            AT_TRY(w->visit(w->context, &input));
        }
    return AT_OK;
}

static at_status walk_requests(struct walk *w) {
    const struct at_sizes *sizes = &w->problem->sizes;
    const struct at_tensor *query_start = &w->problem->tensors[AT_ATTN_QUERY_START];
    const int64_t token_end = (w->row1 - 1) / sizes->h + 1;
    for (int64_t token = w->row0 / sizes->h; token < token_end;) {
        int64_t request = at_attn_row(w->problem, token * sizes->h).request;
        int64_t end = at_tensor_i32(query_start, request + 1);
        end = end < token_end ? end : token_end;
        for (int64_t kv_head = 0; kv_head < sizes->hk; kv_head++)
            AT_TRY(walk_head(w, token, end, kv_head));
        token = end;
    }
    return AT_OK;
}

void at_asynct_dots(const double *restrict q, const double *restrict k, int64_t n, int64_t d, double *restrict dot) {
    enum { KEYS = 4 };
    int64_t t = 0;
    for (; t + KEYS <= n; t += KEYS) {
        const double *row = k + t * d;
        double sum[KEYS] = { 0 };
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < KEYS; j++)
                sum[j] += q[i] * row[j * d + i];
        for (int64_t j = 0; j < KEYS; j++)
            dot[t + j] = sum[j];
    }
    for (; t < n; t++) {
        dot[t] = 0;
        for (int64_t i = 0; i < d; i++)
            dot[t] += q[i] * k[t * d + i];
    }
}

void at_asynct_add(double weight, const double *restrict v, int64_t d, double *restrict o) {
    for (int64_t c = 0; c < d; c++)
        o[c] += weight * v[c];
}

at_status at_asynct_walk(const struct at_problem *problem, int64_t row0, int64_t row1,
                         at_status (*visit)(void *context, const struct at_asynct_input *input), void *context) {
    if (row0 >= row1)
        return AT_OK;
    const size_t keys = (size_t)problem->sizes.max_sk, d = (size_t)problem->sizes.d;
    struct walk w = { problem, row0, row1, visit, context, NULL, NULL, NULL };
    w.q = malloc((2 * keys + 1) * d * sizeof *w.q);
    if (!w.q)
        return AT_FAIL(AT_NO_MEMORY, "%zu decoded keys and values of head size %zu", keys, d);
    w.k = w.q + d;
    w.v = w.k + keys * d;
    at_status status = walk_requests(&w);
    free(w.q);
    return status;
}
