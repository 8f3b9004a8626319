/* Where each new token of a batch goes in the cache: slot[i] = table[r][t / page] * page + t % page for new token i, key t
 * of request r; contiguous, key_start[r] + t. Tokens behind those of the last request are padding, whose slot is -1.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A request's new tokens are its last keys: token i of request r is key seq_lens[r] - query_start[r+1] + i. All are whole
 * numbers, exact value and modelled value are the same, every limit is 0. kv_write and rope_kv_write read the result. */
#include "slot_mapping/slot_mapping.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "query_start", AT_IN, AT_FORMAT_I32, { AT_DIM_b_plus_1 }, "first new token of each request, and the end", AT_FILL_QUERY_START },
    { "seq_lens", AT_IN, AT_FORMAT_I32, { AT_DIM_b }, "keys of each request, new ones included", AT_FILL_SEQ_LENS },
    { "key_start", AT_IN, AT_FORMAT_I32, { AT_DIM_b_plus_1 }, "slot of each request's first key; absent with pages", AT_FILL_KEY_START },
    { "block_table", AT_IN, AT_FORMAT_I32, { AT_DIM_b, AT_DIM_max_pages }, "pages of each request; absent without", AT_FILL_BLOCK_TABLE },
    { "slot_mapping", AT_OUT, AT_FORMAT_I32, { AT_DIM_tokens }, "row of the cache of each token; -1: padding" },
};
static const struct at_decoy_spec decoys[AT_SLOT_FAULTS] = {
    [AT_SLOT_PADDING_MAPPED]   = { "padding_mapped", "padding goes to slot 0" },
    [AT_SLOT_PREFIX_FORGOTTEN] = { "prefix_forgotten", "new tokens are the first keys of their request" },
    [AT_SLOT_NEXT_SLOT]        = { "next_slot", "each token goes to the slot after its own" },
    [AT_SLOT_PAGE_START]       = { "page_start", "each token goes to the first slot of its page" },
    [AT_SLOT_FIRST_PAGE]       = { "first_page", "the page is the first of the request" },
    [AT_SLOT_OTHER_REQUEST]    = { "other_request", "the page is one of the next request" },
    [AT_SLOT_TABLE_IGNORED]    = { "table_ignored", "column c of the table counts as page c of the cache" },
};
/* clang-format on */

static int64_t start_of(const struct at_problem *p, int tensor, int64_t r) {
    return at_tensor_i32(&p->tensors[tensor], r);
}

static int64_t keys_of(const struct at_problem *p, int64_t r) { return start_of(p, AT_SLOT_SEQ_LENS, r); }

static int64_t queries_of(const struct at_problem *p, int64_t r) {
    return start_of(p, AT_SLOT_QUERY_START, r + 1) - start_of(p, AT_SLOT_QUERY_START, r);
}

/* The request that a token belongs to; b: padding. Requests without tokens own none. */
static int64_t request_of(const struct at_problem *p, int64_t token) {
    int64_t low = 0, high = p->sizes.b;
    while (low < high) { /* the first whose end is behind the token */
        const int64_t middle = low + (high - low) / 2;
        if (start_of(p, AT_SLOT_QUERY_START, middle + 1) > token)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t page_of(const struct at_problem *p, int fault, int64_t r, int64_t column) {
    if (fault == AT_SLOT_TABLE_IGNORED)
        return column;
    if (fault == AT_SLOT_FIRST_PAGE)
        column = 0;
    if (fault == AT_SLOT_OTHER_REQUEST)
        r = (r + 1) % p->sizes.b;
    return start_of(p, AT_SLOT_BLOCK_TABLE, r * p->sizes.max_pages + column);
}

static int64_t slot_of(const struct at_problem *p, int fault, int64_t token) {
    const int64_t r = request_of(p, token), page = p->sizes.page;
    if (r == p->sizes.b)
        return fault == AT_SLOT_PADDING_MAPPED ? 0 : -1;
    int64_t t = token - start_of(p, AT_SLOT_QUERY_START, r);
    if (fault != AT_SLOT_PREFIX_FORGOTTEN)
        t += keys_of(p, r) - queries_of(p, r);
    if (page == 0) {
        const int64_t from = fault == AT_SLOT_OTHER_REQUEST ? (r + 1) % p->sizes.b : r;
        return start_of(p, AT_SLOT_KEY_START, from) + t + (fault == AT_SLOT_NEXT_SLOT);
    }
    const int64_t within = fault == AT_SLOT_PAGE_START ? 0 : t % page;
    return page_of(p, fault, r, t / page) * page + within + (fault == AT_SLOT_NEXT_SLOT);
}

static at_status map(const struct at_problem *p, int fault, int64_t row0, int64_t row1, struct at_eval *eval) {
    for (int64_t token = row0; token < row1; token++) {
        if (eval->value[AT_SLOT_MAPPING])
            eval->value[AT_SLOT_MAPPING][token] = (double)slot_of(p, fault, token);
        if (eval->limit[AT_SLOT_MAPPING])
            eval->limit[AT_SLOT_MAPPING][token] = 0;
    }
    return AT_OK;
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    (void)numerics;
    return map(p, AT_SLOT_RIGHT, row0, row1, eval);
}

static at_status decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                       int64_t row1, struct at_eval *eval) {
    (void)numerics;
    return map(p, which, row0, row1, eval);
}

/* ---- what is a problem ---- */

static at_status check_sizes(const struct at_problem *p) {
    const struct at_sizes *s = &p->sizes;
    if (s->b < 0 || s->tokens < 0 || s->slots < 0 || s->page < 0 || s->max_pages < 0)
        return AT_FAIL(AT_USAGE,
                       "slot_mapping: b, tokens, slots, page, max_pages are %lld, %lld, %lld, %lld, %lld, wanted 0 or "
                       "more",
                       (long long)s->b, (long long)s->tokens, (long long)s->slots, (long long)s->page,
                       (long long)s->max_pages);
    if (s->page > 0 && s->slots % s->page)
        return AT_FAIL(AT_USAGE, "slot_mapping: %lld slots are not whole pages of %lld", (long long)s->slots,
                       (long long)s->page);
    return AT_OK;
}

static at_status check_tensor(const struct at_problem *p, int t, int64_t wanted) {
    const struct at_tensor *x = &p->tensors[t];
    if (at_tensor_count(x) != wanted)
        return AT_FAIL(AT_USAGE, "slot_mapping: tensor %s has %lld elements, wanted %lld", tensors[t].name,
                       (long long)at_tensor_count(x), (long long)wanted);
    if (wanted > 0 && tensors[t].role == AT_IN && !x->data)
        return AT_FAIL(AT_USAGE, "slot_mapping: tensor %s has no data", tensors[t].name);
    return AT_OK;
}

static at_status check_request(const struct at_problem *p, int64_t r) {
    const struct at_sizes *s = &p->sizes;
    const int64_t first = start_of(p, AT_SLOT_QUERY_START, r), queries = queries_of(p, r), keys = keys_of(p, r);
    if (queries < 0 || first + queries > s->tokens)
        return AT_FAIL(AT_USAGE, "slot_mapping: request %lld has tokens %lld to %lld, wanted 0 to %lld, ascending",
                       (long long)r, (long long)first, (long long)(first + queries), (long long)s->tokens);
    if (keys < queries)
        return AT_FAIL(AT_USAGE, "slot_mapping: request %lld has %lld keys, wanted at least its %lld new tokens",
                       (long long)r, (long long)keys, (long long)queries);
    if (s->page == 0) {
        const int64_t start = start_of(p, AT_SLOT_KEY_START, r);
        if (start < 0 || start + keys > s->slots)
            return AT_FAIL(AT_USAGE, "slot_mapping: request %lld has slots %lld to %lld, wanted 0 to %lld",
                           (long long)r, (long long)start, (long long)(start + keys), (long long)s->slots);
        return AT_OK;
    }
    for (int64_t t = keys - queries; t < keys; t++) {
        const int64_t column = t / s->page;
        const int64_t page = column < s->max_pages ? page_of(p, AT_SLOT_RIGHT, r, column) : -1;
        if (page < 0 || page >= s->slots / s->page)
            return AT_FAIL(AT_USAGE,
                           "slot_mapping: request %lld has page %lld in column %lld, wanted 0 to %lld in %lld columns",
                           (long long)r, (long long)page, (long long)column, (long long)(s->slots / s->page - 1),
                           (long long)s->max_pages);
    }
    return AT_OK;
}

static at_status check(const struct at_problem *p) {
    const struct at_sizes *s = &p->sizes;
    const int64_t table = s->page > 0 ? s->b * s->max_pages : 0;
    AT_TRY(check_sizes(p));
    AT_TRY(check_tensor(p, AT_SLOT_QUERY_START, s->b + 1));
    AT_TRY(check_tensor(p, AT_SLOT_SEQ_LENS, s->b));
    AT_TRY(check_tensor(p, AT_SLOT_KEY_START, s->page > 0 ? 0 : s->b + 1));
    AT_TRY(check_tensor(p, AT_SLOT_BLOCK_TABLE, table));
    AT_TRY(check_tensor(p, AT_SLOT_MAPPING, s->tokens));
    if (start_of(p, AT_SLOT_QUERY_START, 0) != 0)
        return AT_FAIL(AT_USAGE, "slot_mapping: query_start[0] is %lld, wanted 0",
                       (long long)start_of(p, AT_SLOT_QUERY_START, 0));
    for (int64_t r = 0; r < s->b; r++)
        AT_TRY(check_request(p, r));
    return AT_OK;
}

/* ---- rows ---- */

static int64_t rows(const struct at_problem *p) { return p->sizes.tokens; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)p, (void)tensor;
    *first = row;
    *count = 1;
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)p, (void)row;
    return 1;
}

/* A batch is cut by requests. The cache stays whole: their pages, or their first slots, stay what they are. */
static void part_sizes(const struct at_problem *p, const int64_t *requests, int64_t n, struct at_problem *part) {
    struct at_sizes *s = &part->sizes;
    s->b = n;
    s->tokens = s->max_sq = s->max_sk = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t sq = queries_of(p, requests[i]), sk = keys_of(p, requests[i]);
        s->tokens += sq;
        s->max_sq = sq > s->max_sq ? sq : s->max_sq;
        s->max_sk = sk > s->max_sk ? sk : s->max_sk;
    }
}

static unsigned part_fill(const struct at_problem *p, const int64_t *requests, int64_t n, struct at_problem *part) {
    int32_t *query_start = part->tensors[AT_SLOT_QUERY_START].data, *key_start = part->tensors[AT_SLOT_KEY_START].data;
    int32_t token = 0;
    for (int64_t i = 0; i < n; i++) {
        query_start[i] = token;
        token += (int32_t)queries_of(p, requests[i]);
        if (key_start)
            key_start[i] = (int32_t)start_of(p, AT_SLOT_KEY_START, requests[i]);
    }
    query_start[n] = token;
    if (key_start)
        key_start[n] = (int32_t)p->sizes.slots;
    return 1u << AT_SLOT_QUERY_START | 1u << AT_SLOT_KEY_START;
}

static void unit_rows(const struct at_problem *p, int64_t r, int64_t *first, int64_t *count) {
    *first = start_of(p, AT_SLOT_QUERY_START, r);
    *count = queries_of(p, r);
}

/* Of the table: an entry a token at most. */
static int64_t moved(const struct at_problem *p, int tensor) {
    const int64_t all = at_tensor_count(&p->tensors[tensor]);
    return tensor == AT_SLOT_BLOCK_TABLE && all > p->sizes.tokens ? p->sizes.tokens : all;
}

static const char *const keys[] = { "scenario", "shrink", "step",    "b",        "sq",   "sk",      "prefix", "page",
                                    "pool",     "deal",   "padding", "capacity", "seed", "require", "expect", NULL };
/* clang-format off */
static const struct at_factor batch = { .name = "batch", .meaning = "new tokens of requests", .classes = AT_CLASSES("b=3 sq=1/7/0", "b=1 sq=1", "b=4 sq=1", "b=2 sq=17/40", "b=5 sq=0/3/0", "b=9 sq=33,64"), .far = AT_CLASSES("b=300 sq=1/0/2", "b=1 sq=3000"), .any = "b=2 sq=1..400" };
static const struct at_factor cached = { .name = "cached", .meaning = "tokens there before, on and off a page", .classes = AT_CLASSES("prefix=20", "prefix=0", "prefix={page}", "prefix={2*page+1}", "prefix={2*page-1}", "prefix=0/300/7"), .any = "prefix=0..60" };
static const struct at_factor page = { .name = "page", .meaning = "tokens a page", .classes = AT_CLASSES("page=16", "page=0", "page=1,3", "page=7", "page=8,24", "page=64,128"), .any = "page=1..40" };
static const struct at_factor padding = { .name = "padding", .meaning = "tokens without a slot", .classes = AT_CLASSES("padding=0", "padding=1", "padding=3,5", "padding=255,256,300") };
static const struct at_factor room = { .name = "room", .meaning = "columns of the table beyond the lengths", .classes = AT_CLASSES("capacity=0", "capacity=700", "capacity=0 pool=9") };
static const struct at_factor *const domain[] = { &batch, &cached, &page, &padding, &room, NULL };
/* clang-format on */

const struct at_op at_op_slot_mapping = {
    .name = "slot_mapping",
    .summary = "row of a cache of each new token, from the pages and lengths of its request",
    .source = "000 §6.10",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_SLOT_FAULTS,
    .kind = AT_KIND_COPY,
    .uses = AT_USES(b) | AT_USES(tokens) | AT_USES(slots) | AT_USES(page) | AT_USES(max_pages) | AT_USES(max_sq) |
            AT_USES(max_sk) | AT_USES(capacity),
    .keys = keys,
    .domain = domain,
    .batch = AT_DIM_b,
    .part_sizes = part_sizes,
    .part_fill = part_fill,
    .unit_rows = unit_rows,
    .moved = moved,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = evaluate,
    .decoy = decoy,
};
