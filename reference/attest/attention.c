/* Requests, rows and slots of the attention operators, and the checks that make them safe to index.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/attention.h"

#include <math.h>
#include <stddef.h>

static int64_t index_at(const struct at_problem *problem, int tensor, int64_t i) {
    return at_tensor_i32(&problem->tensors[tensor], i);
}

/* The request whose query tokens include `token`: the first that ends after it, so that requests
 * without queries are passed over. */
static int64_t request_of(const struct at_problem *problem, int64_t token) {
    int64_t low = 0, high = problem->sizes.b - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (index_at(problem, AT_ATTN_QUERY_START, middle + 1) > token)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Query i of sq sees keys t <= sk - sq + i when causal: the last query sees all. */
static int64_t visible_keys(int causal, int64_t sq, int64_t sk, int64_t i) {
    if (!causal)
        return sk;
    int64_t visible = sk - sq + i + 1;
    return visible < 0 ? 0 : visible;
}

struct at_attn_row at_attn_row(const struct at_problem *problem, int64_t row) {
    const struct at_sizes *sizes = &problem->sizes;
    struct at_attn_row at = { .token = row / sizes->h, .head = row % sizes->h };
    at.request = request_of(problem, at.token);
    at.kv_head = at.head / (sizes->h / sizes->hk);
    at.keys = index_at(problem, AT_ATTN_SEQ_LENS, at.request);
    int64_t first = index_at(problem, AT_ATTN_QUERY_START, at.request);
    int64_t sq = index_at(problem, AT_ATTN_QUERY_START, at.request + 1) - first;
    at.query = at.token - first;
    at.visible = visible_keys(problem->params.causal, sq, at.keys, at.query);
    return at;
}

int64_t at_attn_visible_top_left(const struct at_problem *problem, const struct at_attn_row *row) {
    if (!problem->params.causal)
        return row->visible;
    return row->query < row->keys ? row->query + 1 : row->keys;
}

int64_t at_attn_slot(const struct at_problem *problem, int64_t request, int64_t t) {
    const struct at_sizes *sizes = &problem->sizes;
    if (sizes->page == 0)
        return index_at(problem, AT_ATTN_KEY_START, request) + t;
    int64_t entry = request * sizes->max_pages + t / sizes->page;
    return index_at(problem, AT_ATTN_BLOCK_TABLE, entry) * sizes->page + t % sizes->page;
}

int64_t at_attn_kv_index(const struct at_problem *problem, int64_t request, int64_t t, int64_t kv_head) {
    const struct at_sizes *sizes = &problem->sizes;
    return (at_attn_slot(problem, request, t) * sizes->hk + kv_head) * sizes->d;
}

int64_t at_attn_rows(const struct at_problem *problem) { return problem->sizes.tokens * problem->sizes.h; }

/* d for q.k and d for p*v, each key. */
double at_attn_row_work(const struct at_problem *problem, int64_t row) {
    return 2.0 * (double)at_attn_row(problem, row).visible * (double)problem->sizes.d;
}

/* The index tensors are i32, and so is every count they can hold. */
static at_status check_size(const char *name, int64_t value, int64_t least) {
    if (value >= least && value <= INT32_MAX)
        return AT_OK;
    return AT_FAIL(AT_USAGE, "size %s is %lld, wanted %lld to %d", name, (long long)value, (long long)least, INT32_MAX);
}

/* rows * heads * d elements, of at most 8 bytes (a double beside each), must fit 64 bits. */
static at_status check_product(const char *name, int64_t rows, int64_t heads, int64_t d) {
    int64_t count;
    if (__builtin_mul_overflow(rows, heads, &count) || __builtin_mul_overflow(count, d, &count) ||
        __builtin_mul_overflow(count, (int64_t)8, &count))
        return AT_FAIL(AT_USAGE, "%s of %lld x %lld x %lld elements is beyond 64-bit sizes", name, (long long)rows,
                       (long long)heads, (long long)d);
    return AT_OK;
}

static at_status check_sizes(const struct at_sizes *sizes) {
    AT_TRY(check_size("b", sizes->b, 0));
    AT_TRY(check_size("h", sizes->h, 1));
    AT_TRY(check_size("hk", sizes->hk, 1));
    AT_TRY(check_size("d", sizes->d, 1));
    AT_TRY(check_size("tokens", sizes->tokens, 0));
    AT_TRY(check_size("slots", sizes->slots, 0));
    AT_TRY(check_size("page", sizes->page, 0));
    AT_TRY(check_size("max_pages", sizes->max_pages, 0));
    AT_TRY(check_size("max_sq", sizes->max_sq, 0));
    AT_TRY(check_size("max_sk", sizes->max_sk, 0));
    if (sizes->capacity < sizes->max_sk)
        return AT_FAIL(AT_USAGE, "capacity is %lld keys and max_sk is %lld, wanted no less", (long long)sizes->capacity,
                       (long long)sizes->max_sk);
    if (sizes->h % sizes->hk)
        return AT_FAIL(AT_USAGE, "h is %lld and hk is %lld, wanted hk to divide h", (long long)sizes->h,
                       (long long)sizes->hk);
    AT_TRY(check_product("q", sizes->tokens, sizes->h, sizes->d));
    AT_TRY(check_product("k", sizes->slots, sizes->hk, sizes->d));
    AT_TRY(check_product("block_table", sizes->b, sizes->max_pages, 1));
    if (sizes->page == 0 && sizes->max_pages != 0)
        return AT_FAIL(AT_USAGE, "max_pages is %lld with page 0, wanted 0: contiguous keys have no block table",
                       (long long)sizes->max_pages);
    if (sizes->page > 0 && sizes->slots % sizes->page)
        return AT_FAIL(AT_USAGE, "slots is %lld with page %lld, wanted whole pages", (long long)sizes->slots,
                       (long long)sizes->page);
    return AT_OK;
}

static at_status check_params(const struct at_problem *problem) {
    if (problem->dtype != AT_F32 && problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return AT_FAIL(AT_USAGE, "dtype is %d, wanted f32, f16 or bf16", (int)problem->dtype);
    if (!isfinite(problem->params.scale))
        return AT_FAIL(AT_USAGE, "scale is %g, wanted a finite number", (double)problem->params.scale);
    if (problem->params.causal != 0 && problem->params.causal != 1)
        return AT_FAIL(AT_USAGE, "causal is %d, wanted 0 or 1", (int)problem->params.causal);
    return AT_OK;
}

/* Format and shape as the operator's table and the sizes give them, and memory where there are elements. */
static at_status check_tensor(const struct at_tensor_spec *spec, const struct at_tensor *found,
                              const struct at_tensor *want) {
    if (found->format != want->format)
        return AT_FAIL(AT_USAGE, "tensor %s has format number %d, wanted %s", spec->name, (int)found->format,
                       at_format_info(want->format)->name);
    if (found->rank != want->rank)
        return AT_FAIL(AT_USAGE, "tensor %s has rank %d, wanted %d", spec->name, found->rank, want->rank);
    for (int r = 0; r < want->rank; r++)
        if (found->shape[r] != want->shape[r])
            return AT_FAIL(AT_USAGE, "tensor %s has %lld elements along dimension %d, wanted %lld", spec->name,
                           (long long)found->shape[r], r, (long long)want->shape[r]);
    if (at_tensor_count(want) > 0 && !found->data)
        return AT_FAIL(AT_USAGE, "tensor %s has no data, wanted %lld elements", spec->name,
                       (long long)at_tensor_count(want));
    return AT_OK;
}

static at_status check_tensors(const struct at_problem *problem) {
    struct at_problem want = *problem;
    if (!problem->op || problem->op->n_tensors < AT_ATTN_COMMON)
        return AT_FAIL(AT_BUG, "the problem's operator has no table of the %d attention tensors", AT_ATTN_COMMON);
    at_problem_shape(&want);
    for (int i = 0; i < AT_ATTN_COMMON; i++)
        AT_TRY(check_tensor(&problem->op->tensors[i], &problem->tensors[i], &want.tensors[i]));
    return AT_OK;
}

/* starts[0 .. b]: not negative, not descending, the last one `end`. */
static at_status check_starts(const struct at_problem *problem, int tensor, const char *name, int64_t end) {
    int64_t b = problem->sizes.b, before = 0;
    for (int64_t r = 0; r <= b; r++) {
        int64_t start = index_at(problem, tensor, r);
        if (start < before)
            return AT_FAIL(AT_USAGE, "%s[%lld] is %lld, wanted at least %lld: starts ascend from 0", name, (long long)r,
                           (long long)start, (long long)before);
        before = start;
    }
    if (before != end)
        return AT_FAIL(AT_USAGE, "%s[%lld] is %lld, wanted %lld: the last start is the end of all", name, (long long)b,
                       (long long)before, (long long)end);
    return AT_OK;
}

static at_status check_queries(const struct at_problem *problem) {
    const struct at_sizes *sizes = &problem->sizes;
    AT_TRY(check_starts(problem, AT_ATTN_QUERY_START, "query_start", sizes->tokens));
    if (index_at(problem, AT_ATTN_QUERY_START, 0) != 0)
        return AT_FAIL(AT_USAGE, "query_start[0] is %lld, wanted 0: every token has a request",
                       (long long)index_at(problem, AT_ATTN_QUERY_START, 0));
    for (int64_t r = 0; r < sizes->b; r++) {
        int64_t first = index_at(problem, AT_ATTN_QUERY_START, r);
        int64_t sq = index_at(problem, AT_ATTN_QUERY_START, r + 1) - first;
        if (sq > sizes->max_sq)
            return AT_FAIL(AT_USAGE, "request %lld has %lld query tokens, wanted at most max_sq = %lld", (long long)r,
                           (long long)sq, (long long)sizes->max_sq);
    }
    return AT_OK;
}

/* The block table of one request: pages of its keys in range, other entries in range or -1. */
static at_status check_pages(const struct at_problem *problem, int64_t request, int64_t keys) {
    const struct at_sizes *sizes = &problem->sizes;
    int64_t pages = sizes->slots / sizes->page, used = keys / sizes->page + (keys % sizes->page != 0);
    if (used > sizes->max_pages)
        return AT_FAIL(AT_USAGE, "request %lld has %lld keys on %lld pages of %lld, wanted at most max_pages = %lld",
                       (long long)request, (long long)keys, (long long)used, (long long)sizes->page,
                       (long long)sizes->max_pages);
    for (int64_t i = 0; i < sizes->max_pages; i++) {
        int64_t page = index_at(problem, AT_ATTN_BLOCK_TABLE, request * sizes->max_pages + i);
        int64_t least = i < used ? 0 : -1;
        if (page < least || page >= pages)
            return AT_FAIL(AT_USAGE, "block_table[%lld][%lld] is %lld, wanted %lld to %lld (%lld pages hold its keys)",
                           (long long)request, (long long)i, (long long)page, (long long)least, (long long)(pages - 1),
                           (long long)used);
    }
    return AT_OK;
}

static at_status check_keys(const struct at_problem *problem) {
    const struct at_sizes *sizes = &problem->sizes;
    if (sizes->page == 0)
        AT_TRY(check_starts(problem, AT_ATTN_KEY_START, "key_start", sizes->slots));
    for (int64_t r = 0; r < sizes->b; r++) {
        int64_t keys = index_at(problem, AT_ATTN_SEQ_LENS, r);
        if (keys < 0 || keys > sizes->max_sk)
            return AT_FAIL(AT_USAGE, "seq_lens[%lld] is %lld, wanted 0 to max_sk = %lld", (long long)r, (long long)keys,
                           (long long)sizes->max_sk);
        if (sizes->page > 0) {
            AT_TRY(check_pages(problem, r, keys));
            continue;
        }
        int64_t room = index_at(problem, AT_ATTN_KEY_START, r + 1) - index_at(problem, AT_ATTN_KEY_START, r);
        if (keys > room)
            return AT_FAIL(AT_USAGE, "seq_lens[%lld] is %lld, but key_start leaves the request %lld slots",
                           (long long)r, (long long)keys, (long long)room);
    }
    return AT_OK;
}

at_status at_attn_check(const struct at_problem *problem) {
    AT_TRY(check_sizes(&problem->sizes));
    AT_TRY(check_params(problem));
    AT_TRY(check_tensors(problem));
    AT_TRY(check_queries(problem));
    AT_TRY(check_keys(problem));
    return AT_OK;
}
