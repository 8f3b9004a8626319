/* The contents of a problem's input tensors but for its parameters (case_parameters.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/attention.h"
#include "attest/env.h"
#include "datasets/fill/pool.h"
#include "datasets/fill/rotary_table.h"
#include "datasets/fill/tc_patterns.h"

/* ---- indices ---- */

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* Page j of the keys, counted over all requests, is page (j * step + offset) mod pages of the pool: each once,
 * and with 1 < step never the neighbour above, so that a kernel which reads on past a page's end reads the keys
 * of somebody else or poison. Of a pool whose size the case gives, the last page is the first to be dealt. */
struct page_order {
    int64_t pages, step, offset;
};

static struct page_order page_order(const struct at_build *build) {
    const struct at_sizes *sizes = &build->problem->sizes;
    const struct at_random random = { (uint64_t)build->c->keys->seed, at_random_stream("pages", 0) };
    struct page_order o = { .pages = sizes->slots / sizes->page };
    o.offset = build->c->keys->pool < 0 ? at_random_below(&random, 0, o.pages) : o.pages - 1;
    o.step = o.pages > 3 ? 2 + at_random_below(&random, 1, o.pages - 3) : o.pages == 2 ? 1 : 2;
    while (o.pages > 2 && common_divisor(o.step, o.pages) != 1) /* pages - 1 always ends it */
        o.step = o.step + 1 < o.pages ? o.step + 1 : 2;
    return o;
}

static int64_t dealt_page(const struct page_order *o, int64_t j) { return (j * o->step + o->offset) % o->pages; }

/* Pages that hold keys of a request, and those that are dealt to it. */
static int64_t pages_used(const struct at_build *build, int64_t r) {
    const int64_t page = build->problem->sizes.page, keys = build->key_start[r + 1] - build->key_start[r];
    return page ? (keys + page - 1) / page : 0;
}
static int64_t pages_dealt(const struct at_build *build, int64_t r) {
    return build->c->keys->deal ? build->problem->sizes.max_pages : pages_used(build, r);
}

static void deal_pages(const struct at_build *build, struct at_tensor *table) {
    const struct at_sizes *sizes = &build->problem->sizes;
    const struct page_order order = page_order(build);
    int32_t *entries = table->data;
    for (int64_t r = 0, first = 0; r < sizes->b; first += pages_dealt(build, r++))
        for (int64_t column = 0; column < sizes->max_pages; column++)
            *entries++ = column < pages_used(build, r) ? (int32_t)dealt_page(&order, first + column) : -1;
}

/* The new tokens of a request are its last keys; padding has no slot. */
static void map_slots(const struct at_build *build, struct at_tensor *mapping) {
    const struct at_sizes *sizes = &build->problem->sizes;
    const struct page_order order = sizes->page ? page_order(build) : (struct page_order){ 0 };
    int32_t *slot = mapping->data, *end = slot + at_tensor_count(mapping);
    int64_t pages = 0; /* of the requests before */
    for (int64_t r = 0; r < sizes->b; r++) {
        const int64_t keys = build->key_start[r + 1] - build->key_start[r];
        const int64_t queries = build->query_start[r + 1] - build->query_start[r];
        for (int64_t t = keys - queries; t < keys; t++)
            *slot++ = sizes->page
                          ? (int32_t)(dealt_page(&order, pages + t / sizes->page) * sizes->page + t % sizes->page)
                          : (int32_t)(build->key_start[r] + t);
        pages += pages_dealt(build, r);
    }
    while (slot < end)
        *slot++ = -1;
}

/* Where in its request each new token stands. */
static void number_tokens(const struct at_build *build, struct at_tensor *positions) {
    int32_t *position = positions->data, *end = position + at_tensor_count(positions);
    for (int64_t r = 0; r < build->problem->sizes.b; r++) {
        const int64_t keys = build->key_start[r + 1] - build->key_start[r];
        for (int64_t t = keys - (build->query_start[r + 1] - build->query_start[r]); t < keys; t++)
            *position++ = (int32_t)t;
    }
    while (position < end)
        *position++ = 0;
}

static void fill_i32(struct at_tensor *tensor, int64_t n, const int64_t *values) {
    for (int64_t i = 0; tensor && i < n; i++)
        ((int32_t *)tensor->data)[i] = (int32_t)values[i];
}

/* Rows behind the last request are room for its next keys. */
static void fill_end(struct at_tensor *tensor, int64_t last, int64_t end) {
    if (tensor)
        ((int32_t *)tensor->data)[last] = (int32_t)end;
}

void at_fill_indices(const struct at_build *build) {
    const struct at_sizes *sizes = &build->problem->sizes;
    struct at_tensor *lengths = at_fill_tensor(build, AT_FILL_SEQ_LENS),
                     *table = at_fill_tensor(build, AT_FILL_BLOCK_TABLE);
    struct at_tensor *mapping = at_fill_tensor(build, AT_FILL_SLOT_MAPPING),
                     *positions = at_fill_tensor(build, AT_FILL_POSITIONS);
    fill_i32(at_fill_tensor(build, AT_FILL_QUERY_START), sizes->b + 1, build->query_start);
    fill_i32(at_fill_tensor(build, AT_FILL_KEY_START), sizes->b + 1, build->key_start);
    fill_end(at_fill_tensor(build, AT_FILL_KEY_START), sizes->b, sizes->slots);
    for (int64_t r = 0; lengths && r < sizes->b; r++)
        ((int32_t *)lengths->data)[r] = (int32_t)(build->key_start[r + 1] - build->key_start[r]);
    if (table)
        deal_pages(build, table);
    if (mapping)
        map_slots(build, mapping);
    if (positions)
        number_tokens(build, positions);
}

/* ---- generated rows ---- */

/* Rows [begin, end) of one activation tensor, for any worker. */
struct fill {
    const struct at_build *build;
    struct at_tensor *tensor;
    enum at_fill what;
    enum at_norm_part part;
    uint64_t stream;
};

static void store_row(const struct at_tensor *tensor, int64_t first, int64_t n, int64_t padded, const double *row) {
    char *at = (char *)tensor->data + (size_t)first * at_format_info(tensor->format)->bytes;
    at_encode_array(tensor->format, (size_t)n, row, at);
    if (padded > n)
        memset(at + (size_t)n * at_format_info(tensor->format)->bytes, 0,
               (size_t)(padded - n) * at_format_info(tensor->format)->bytes);
}

/* The request that item i of [0, start[b]) belongs to: the last that starts at or before it. */
static int64_t request_of(const int64_t *start, int64_t b, int64_t i) {
    int64_t low = 0, high = b - 1;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (start[middle] <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static at_status fill_rows(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct fill *fill = context;
    const struct at_build *build = fill->build;
    const struct at_problem *problem = build->problem;
    const struct at_data *data = &build->data;
    const int64_t *start = fill->what == AT_FILL_QUERIES ? build->query_start : build->key_start;
    double row[AT_DATA_MAX_D];
    for (int64_t i = begin; i < end; i++) {
        int64_t r = request_of(start, data->b, i), local = i - start[r];
        for (int64_t head = 0; head < (fill->what == AT_FILL_QUERIES ? data->h : data->hk); head++) {
            int64_t first = (i * data->h + head) * problem->sizes.d;
            if (fill->what == AT_FILL_QUERIES)
                at_data_query(build->c->keys->data, data, r, local, head, row);
            else
                first = at_attn_kv_index(problem, r, local, head);
            if (fill->what == AT_FILL_KEYS)
                at_data_key(build->c->keys->data, data, r, local, head, row);
            if (fill->what == AT_FILL_VALUES)
                at_data_value(build->c->keys->data, data, r, local, head, row);
            store_row(fill->tensor, first, data->d, problem->sizes.d, row);
        }
    }
    return AT_OK;
}

/* Norms: a row is the last dimension; long ones come in pieces of the heap. */
static at_status fill_norm_rows(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct fill *fill = context;
    const struct at_tensor *tensor = fill->tensor;
    int64_t n = tensor->shape[tensor->rank - 1];
    const struct at_data_family *family = fill->build->c->keys->data;
    if (family->codes) {
        char *first = (char *)tensor->data + (size_t)(begin * n) * at_format_info(tensor->format)->bytes;
        family->codes(&fill->build->data, fill->stream, tensor->format, begin * n, (end - begin) * n, first);
        return AT_OK;
    }
    double *row = malloc((size_t)n * sizeof *row);
    if (!row)
        return AT_FAIL(AT_NO_MEMORY, "a row of %lld channels", (long long)n);
    for (int64_t i = begin; i < end; i++) {
        family->norm(&fill->build->data, fill->stream, fill->part, i, n, row);
        store_row(tensor, i * n, n, n, row);
    }
    free(row);
    return AT_OK;
}

/* NaN in every slot, before the keys go to theirs: spare pages and tails of last pages keep it. */
static at_status poison(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct at_tensor *tensor = context;
    int64_t row = tensor->shape[1] * tensor->shape[2];
    uint64_t code = at_encode(tensor->format, (double)NAN);
    for (int64_t i = begin * row; i < end * row; i++)
        at_store_code(tensor->format, tensor->data, (size_t)i, code);
    return AT_OK;
}

/* Factors of a product: what queries and keys of one head are to each other, rows of any length. */
static at_status fill_factor_rows(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct fill *fill = context;
    const struct at_data *data = &fill->build->data;
    const struct at_data_family *family = fill->build->c->keys->data;
    double *row = malloc((size_t)data->d * sizeof *row);
    if (!row)
        return AT_FAIL(AT_NO_MEMORY, "a row of %lld factors", (long long)data->d);
    for (int64_t i = begin; i < end; i++) {
        (fill->what == AT_FILL_LEFT ? family->left : family->right)(data, 0, i, 0, row);
        if (fill->what != AT_FILL_RIGHT_COLUMNS)
            store_row(fill->tensor, i * data->d, data->d, data->d, row);
        for (int64_t l = 0; fill->what == AT_FILL_RIGHT_COLUMNS && l < data->d; l++) /* down a column */
            store_row(fill->tensor, l * fill->tensor->shape[1] + i, 1, 1, row + l);
    }
    free(row);
    return AT_OK;
}

enum { CHUNK = 64, ELEMENTS = 256 };

/* Of a large pool only what is near a page in use. */
static at_status poison_pool(const struct at_problem *problem, struct at_tensor *tensor) {
    struct at_pool_span *spans;
    int64_t n;
    at_status status = AT_OK;
    AT_TRY(at_pool_spans(problem, &spans, &n));
    if (at_pool_is_large(problem, AT_ATTN_K))
        for (int64_t i = 0; i < n && status == AT_OK; i++)
            status = poison(tensor, spans[i].first, spans[i].end, 0);
    else
        status = at_parallel(tensor->shape[0], CHUNK, at_threads(), poison, tensor);
    free(spans);
    return status;
}

static at_status fill_attention(const struct at_build *build, struct fill *fill) {
    const int is_query = fill->what == AT_FILL_QUERIES;
    if (!is_query && build->problem->sizes.slots > build->key_start[build->problem->sizes.b])
        AT_TRY(poison_pool(build->problem, fill->tensor));
    const int64_t rows = (is_query ? build->query_start : build->key_start)[build->problem->sizes.b];
    return at_parallel(rows, CHUNK, at_threads(), fill_rows, fill);
}

/* The argument of an elementwise function. */
static at_status fill_element_range(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct fill *fill = context;
    double x[ELEMENTS];
    for (int64_t i = begin; i < end; i += ELEMENTS) {
        const int64_t n = end - i < ELEMENTS ? end - i : ELEMENTS;
        fill->build->c->keys->data->elements(&fill->build->data, i, n, x);
        store_row(fill->tensor, i, n, n, x);
    }
    return AT_OK;
}

/* A table of positions: of the operator's own base. */
static at_status fill_rotary_rows(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct fill *fill = context;
    const struct at_case_keys *keys = fill->build->c->keys;
    const struct at_random random = { (uint64_t)keys->seed, at_random_stream("rotary", 0) };
    if (keys->data->exact)
        at_rotary_quarters(fill->tensor, &random, begin, end);
    else
        at_rotary_rows(fill->tensor, at_scalar_get(fill->build->problem, at_op_scalar(fill->build->c->op, "base")),
                       begin, end);
    return AT_OK;
}

/* Every tensor has a sequence of its own, but a residual continues that of what it is added to. */
static at_status fill_activation_rows(const struct at_build *build, int i, struct fill *fill) {
    const struct at_op *op = build->problem->op;
    const int is_residual = fill->what == AT_FILL_RESIDUAL, x = at_op_filled_index(op, AT_FILL_ROWS);
    const int64_t n = fill->tensor->shape[fill->tensor->rank - 1];
    fill->part = is_residual ? AT_NORM_RES : AT_NORM_X;
    fill->stream = at_random_stream(op->tensors[is_residual && x >= 0 ? x : i].name, 2);
    return at_parallel(at_tensor_count(fill->tensor) / n, CHUNK, at_threads(), fill_norm_rows, fill);
}

/* One tensor of the case's data family. */
static at_status fill_generated(const struct at_build *build, int i) {
    struct fill fill = { .build = build, .tensor = &build->problem->tensors[i], .what = build->c->op->tensors[i].fill };
    switch (fill.what) {
    case AT_FILL_QUERIES:
    case AT_FILL_KEYS:
    case AT_FILL_VALUES:
        return fill_attention(build, &fill);
    case AT_FILL_ROWS:
    case AT_FILL_RESIDUAL:
        return fill_activation_rows(build, i, &fill);
    case AT_FILL_LEFT:
    case AT_FILL_RIGHT:
    case AT_FILL_RIGHT_COLUMNS:
        return at_parallel(fill.tensor->shape[fill.what == AT_FILL_RIGHT_COLUMNS], CHUNK, at_threads(),
                           fill_factor_rows, &fill);
    case AT_FILL_ROTARY:
        return at_parallel(fill.tensor->shape[0], CHUNK, at_threads(), fill_rotary_rows, &fill);
    case AT_FILL_UNIFORM:
        at_choice_uniforms(&build->data, at_tensor_count(fill.tensor), fill.tensor->data);
        return AT_OK;
    case AT_FILL_ELEMENTS:
        return at_parallel(at_tensor_count(fill.tensor), CHUNK * ELEMENTS, at_threads(), fill_element_range, &fill);
    default:
        return AT_OK;
    }
}

/* ---- operands of one instruction ---- */

static at_status fill_pattern_rows(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct at_build *build = context;
    const struct at_case_keys *keys = build->c->keys;
    const struct at_scalar *instruction = at_op_scalar(build->c->op, "instruction");
    const int which = (int)at_scalar_get(build->problem, instruction);
    at_tc_pattern_rows(at_tc_instruction_at(which), (enum at_tc_stratum)keys->stratum, (uint64_t)keys->seed, begin, end,
                       at_fill_tensor(build, AT_FILL_PATTERN_A)->data, at_fill_tensor(build, AT_FILL_PATTERN_B)->data,
                       at_fill_tensor(build, AT_FILL_PATTERN_C)->data);
    return AT_OK;
}

/* ---- recorded rows ---- */

/* Rows of one tensor of the dataset, rounded once to the problem's type. */
static at_status fill_recorded(struct at_build *build, int which, struct at_tensor *tensor) {
    struct at_recorded *recorded = &build->recorded;
    const struct at_problem *problem = build->problem;
    int64_t heads = which == AT_RECORDED_Q ? recorded->h : recorded->hk, n = recorded->d;
    double *token = malloc((size_t)(heads * n) * sizeof *token);
    at_status status = AT_OK;
    if (!token)
        AT_FAIL_OUT(AT_NO_MEMORY, "a token of %lld values", (long long)(heads * n));
    for (int64_t r = 0; r < recorded->b; r++) {
        int64_t end = recorded->start[r + 1], first = recorded->start[r];
        if (which == AT_RECORDED_Q)
            first = end - (build->query_start[r + 1] - build->query_start[r]);
        for (int64_t t = first; t < end; t++) {
            AT_TRY_OUT(at_recorded_read(recorded, which, t, 1, token));
            for (int64_t head = 0; head < heads; head++) {
                int64_t at = (build->query_start[r] + t - first) * heads * problem->sizes.d + head * problem->sizes.d;
                if (which != AT_RECORDED_Q)
                    at = at_attn_kv_index(problem, r, t - first, head);
                store_row(tensor, at, n, problem->sizes.d, token + head * n);
            }
        }
    }
out:
    free(token);
    return status;
}

static at_status fill_from_dataset(struct at_build *build) {
    static const enum at_fill fills[AT_RECORDED_TENSORS] = { AT_FILL_QUERIES, AT_FILL_KEYS, AT_FILL_VALUES };
    for (int i = 0; i < AT_RECORDED_TENSORS; i++) {
        struct at_tensor *tensor = at_fill_tensor(build, fills[i]);
        if (i > 0 && build->problem->sizes.page > 0)
            AT_TRY(at_parallel(tensor->shape[0], CHUNK, at_threads(), poison, tensor));
        AT_TRY(fill_recorded(build, i, tensor));
    }
    return AT_OK;
}

at_status at_fill_activations(struct at_build *build) {
    if (build->recorded.reader)
        return fill_from_dataset(build);
    if (at_fill_tensor(build, AT_FILL_PATTERN_A))
        return at_parallel(build->problem->sizes.tokens, CHUNK, at_threads(), fill_pattern_rows, build);
    for (int i = 0; i < build->c->op->n_tensors; i++)
        if (build->problem->tensors[i].data) /* no queries, no keys, no elements at all: none */
            AT_TRY(fill_generated(build, i));
    return AT_OK;
}
