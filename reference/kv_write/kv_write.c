/* New keys and values go to their slots of a cache, in place: k[slot_mapping[i]] = new_k[i], the same for v. A token of
 * slot -1 is not written (a graph launched for a fixed number of tokens pads with them); every row that no token names
 * stays as it was.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A row of the operator is a row of the cache, so that all of the cache is compared. Nothing is computed: exact value
 * and modelled value are the same, every limit is 0, and the bits themselves must be the same: a NaN keeps its payload, a
 * zero its sign. */
#include "kv_write/kv_write.h"

#include <string.h>

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "new_k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "keys of new tokens", AT_FILL_ROWS },
    { "new_v", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "values of new tokens", AT_FILL_ROWS },
    { "slot_mapping", AT_IN, AT_FORMAT_I32, { AT_DIM_tokens }, "row of the cache of each token; -1: not written", AT_FILL_SLOT_MAPPING },
    { "k", AT_INOUT, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "cached keys", AT_FILL_ROWS },
    { "v", AT_INOUT, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "cached values", AT_FILL_ROWS },
};
static const struct at_decoy_spec decoys[AT_CACHE_FAULTS] = { AT_CACHE_DECOYS(0) };
/* clang-format on */

static int64_t row_elements(const struct at_problem *p) { return p->sizes.hk * p->sizes.d; }

static int64_t slot_of(const struct at_problem *p, int fault, int64_t token) {
    return at_cache_slot_of(p, AT_KV_WRITE_SLOT_MAPPING, fault, token);
}

static void put_row(const struct at_problem *p, const struct at_tensor *from, int64_t from_row, int64_t row,
                    double *to) {
    const int64_t n = row_elements(p);
    for (int64_t i = 0; i < n; i++)
        to[row * n + i] = at_tensor_get(from, from_row * n + i);
}

static at_status write_rows(const struct at_problem *p, int fault, int64_t row0, int64_t row1, struct at_eval *eval) {
    for (int t = AT_KV_WRITE_K; t <= AT_KV_WRITE_V; t++) {
        const int swapped = fault == AT_CACHE_K_AND_V_SWAPPED, is_k = (t == AT_KV_WRITE_K) != swapped;
        const struct at_tensor *from = &p->tensors[is_k ? AT_KV_WRITE_NEW_K : AT_KV_WRITE_NEW_V];
        double *value = eval->value[t];
        for (int64_t row = row0; value && row < row1; row++)
            put_row(p, &p->tensors[t], row, row, value);
        for (int64_t token = 0; value && fault != AT_CACHE_NOT_WRITTEN && token < p->sizes.tokens; token++) {
            const int64_t slot = slot_of(p, fault, token);
            if (slot >= row0 && slot < row1)
                put_row(p, from, token, slot, value);
        }
        for (int64_t i = row0 * row_elements(p); eval->limit[t] && i < row1 * row_elements(p); i++)
            eval->limit[t][i] = 0;
    }
    return AT_OK;
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    (void)numerics;
    return write_rows(p, AT_CACHE_RIGHT, row0, row1, eval);
}

static at_status decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                       int64_t row1, struct at_eval *eval) {
    (void)numerics;
    return write_rows(p, which, row0, row1, eval);
}

static void bits(const struct at_problem *p, int t, void *codes, unsigned char *computed) {
    memset(computed, 0, (size_t)(p->sizes.slots * row_elements(p))); /* all are copies */
    const struct at_tensor *from = &p->tensors[t == AT_KV_WRITE_K ? AT_KV_WRITE_NEW_K : AT_KV_WRITE_NEW_V];
    const size_t row = (size_t)row_elements(p) * at_format_info(p->tensors[t].format)->bytes;
    memcpy(codes, p->tensors[t].data, (size_t)p->sizes.slots * row);
    for (int64_t token = 0; token < p->sizes.tokens; token++) {
        const int64_t slot = slot_of(p, AT_CACHE_RIGHT, token);
        if (slot >= 0)
            memcpy((char *)codes + (size_t)slot * row, (const char *)from->data + (size_t)token * row, row);
    }
}

static at_status check_shape(const struct at_problem *p, int i) {
    const struct at_tensor_spec *spec = &p->op->tensors[i];
    const struct at_tensor *t = &p->tensors[i];
    int64_t wanted = 1, found = at_tensor_count(t);
    for (int k = 0; k < AT_MAX_RANK && spec->dims[k] != AT_DIM_NONE; k++)
        wanted *= at_dim_size(p, spec->dims[k]);
    if (found != wanted)
        return AT_FAIL(AT_USAGE, "kv_write: tensor %s has %lld elements, wanted %lld", spec->name, (long long)found,
                       (long long)wanted);
    if (found > 0 && !t->data)
        return AT_FAIL(AT_USAGE, "kv_write: tensor %s has no data", spec->name);
    return AT_OK;
}

static at_status check(const struct at_problem *p) {
    const struct at_sizes *s = &p->sizes;
    AT_TRY(at_cache_check_sizes(p));
    if (s->hk < 1 || s->d < 1)
        return AT_FAIL(AT_USAGE, "kv_write: hk, d are %lld, %lld, wanted 1 or more", (long long)s->hk, (long long)s->d);
    for (int i = 0; i < p->op->n_tensors; i++)
        AT_TRY(check_shape(p, i));
    return at_cache_check_mapping(p, AT_KV_WRITE_SLOT_MAPPING);
}

static int64_t rows(const struct at_problem *p) { return p->sizes.slots; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)tensor;
    *count = row_elements(p);
    *first = row * *count;
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)row;
    return 2.0 * (double)row_elements(p);
}

/* A token's row is its slot; a token without one leaves nothing to compare. */
static void unit_rows(const struct at_problem *p, int64_t token, int64_t *first, int64_t *count) {
    const int64_t slot = slot_of(p, AT_CACHE_RIGHT, token);
    *first = slot >= 0 ? slot : token;
    *count = slot >= 0;
}

/* Of the cache: a row a token. */
static int64_t moved(const struct at_problem *p, int tensor) {
    const int is_cache = tensor == AT_KV_WRITE_K || tensor == AT_KV_WRITE_V;
    return is_cache ? p->sizes.tokens * row_elements(p) : at_tensor_count(&p->tensors[tensor]);
}

static const char *const keys[] = { "scenario", "shrink", "step", "b",       "hk",       "sq",   "sk",
                                    "prefix",   "d",      "page", "pool",    "capacity", "deal", "padding",
                                    "dtype",    "data",   "seed", "require", "expect",   NULL };
/* clang-format off */
static const struct at_factor batch = { .name = "batch", .meaning = "new tokens of requests", .classes = AT_CLASSES("b=3 sq=1/7/0", "b=1 sq=1", "b=4 sq=1", "b=2 sq=17/40", "b=2 sq=9"), .far = AT_CLASSES("b=96,130 sq=1/0/2", "b=1 sq=300"), .any = "b=2 sq=1..40" };
static const struct at_factor cached = { .name = "cached", .meaning = "tokens there before, on and off a page", .classes = AT_CLASSES("prefix=20", "prefix=0", "prefix={page}", "prefix={2*page+1}", "prefix={2*page-1}"), .any = "prefix=0..60" };
static const struct at_factor heads = { .name = "heads", .meaning = "of keys and values", .classes = AT_CLASSES("hk=2", "hk=1", "hk=3", "hk=8"), .far = AT_CLASSES("hk=32") };
static const struct at_factor head_size = { .name = "d", .meaning = "about vector widths", .classes = AT_CLASSES("d=64", "d=128", "d=1,5,31", "d=8,40,96", "d=100,60"), .far = AT_CLASSES("d=256,257"), .any = "d=1..130" };
static const struct at_factor page = { .name = "page", .meaning = "tokens a page", .classes = AT_CLASSES("page=16", "page=0", "page=1,3", "page=7", "page=8,24", "page=64,128"), .any = "page=1..40" };
static const struct at_factor padding = { .name = "padding", .meaning = "tokens without a slot", .classes = AT_CLASSES("padding=0", "padding=1", "padding=3,5") };
static const struct at_factor dtype = { .name = "dtype", .meaning = "format of the activations", .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32") };
static const struct at_factor values = { .name = "data", .meaning = "what the values look like", .classes = AT_CLASSES("data=normal", "data=random_bits", "data=subnormal,near_65504", "data=uniform,heavy_tail,exact") };
static const struct at_factor *const domain[] = { &batch, &cached, &heads, &head_size, &page, &padding, &dtype, &values, NULL };
/* clang-format on */

const struct at_op at_op_kv_write = {
    .name = "kv_write",
    .summary = "new keys and values into the rows of a cache that a slot mapping names, in place",
    .source = "000 §6.10",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_CACHE_FAULTS,
    .kind = AT_KIND_COPY,
    .uses = AT_USES(b) | AT_USES(hk) | AT_USES(d) | AT_USES(tokens) | AT_USES(slots) | AT_USES(page) |
            AT_USES(max_pages) | AT_USES(max_sq) | AT_USES(max_sk) | AT_USES(capacity),
    .keys = keys,
    .domain = domain,
    .batch = AT_DIM_tokens,
    .unit_rows = unit_rows,
    .moved = moved,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = evaluate,
    .decoy = decoy,
    .bits = bits,
};
