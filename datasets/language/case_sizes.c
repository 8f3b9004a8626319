/* Sizes of a case: lengths of its requests, their sums, pages, bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_finish.h"

#include "datasets/fill/scenarios.h"

int64_t at_case_sq(const struct at_case *c, int64_t r) {
    const struct at_case_keys *keys = c->keys;
    return keys->scenario ? at_scenario_sq(keys->scenario, keys->shrink, keys->step, r)
                          : keys->sq.value[r % keys->sq.n];
}

int64_t at_case_sk(const struct at_case *c, int64_t r) {
    const struct at_case_keys *keys = c->keys;
    return keys->scenario ? at_scenario_sk(keys->scenario, keys->shrink, keys->step, r)
                          : keys->sk.value[r % keys->sk.n];
}

/* One page in eight, and at least two, belong to nobody, unless the case says how many: a kernel that reads them reads
 * poison. */
static int64_t spare_pages(const struct at_case *c, int64_t pages) {
    return c->keys->pool >= 0 ? c->keys->pool : pages / 8 > 2 ? pages / 8 : 2;
}

void at_case_lengths(struct at_sizes *sizes, const struct at_case *c, const int64_t *sq, const int64_t *sk) {
    int64_t keys = 0, pages = 0;
    for (int64_t r = 0; r < sizes->b; r++) {
        int64_t queries = sq ? sq[r] : at_case_sq(c, r), length = sk ? sk[r] : at_case_sk(c, r);
        sizes->tokens += queries;
        keys += length;
        sizes->max_sq = queries > sizes->max_sq ? queries : sizes->max_sq;
        sizes->max_sk = length > sizes->max_sk ? length : sizes->max_sk;
        if (sizes->page > 0)
            pages += (length + sizes->page - 1) / sizes->page;
    }
    sizes->slots = keys + (c->keys->pool > 0 ? c->keys->pool : 0);
    sizes->capacity = c->keys->capacity > sizes->max_sk ? c->keys->capacity : sizes->max_sk;
    if (sizes->page > 0) {
        sizes->max_pages = (sizes->capacity + sizes->page - 1) / sizes->page;
        sizes->max_pages += sizes->max_pages == 0; /* a table without columns would mean contiguous */
        pages = c->keys->deal ? sizes->b * sizes->max_pages : pages;
        sizes->slots = (pages + spare_pages(c, pages)) * sizes->page;
        sizes->capacity = sizes->max_pages * sizes->page;
    }
}

static int takes(const struct at_case *c, const char *key) { return at_key_index(c->op, key) >= 0; }

void at_case_sizes(const struct at_case *c, struct at_sizes *sizes) {
    const struct at_case_keys *keys = c->keys;
    *sizes = (struct at_sizes){ 0 };
    sizes->h = takes(c, "h") ? keys->h : 0;
    sizes->hk = takes(c, "hk") ? keys->hk : 0;
    sizes->d = !takes(c, "d") ? 0 : keys->pad_d ? keys->pad_d : keys->d;
    sizes->tokens = takes(c, "tokens") ? keys->tokens : 0;
    sizes->channels = takes(c, "channels") ? keys->channels : 0;
    sizes->taps = takes(c, "window") ? keys->window : 0;
    if (takes(c, "b")) {
        sizes->b = keys->scenario ? keys->scenario->b : keys->b;
        sizes->page = keys->page;
        at_case_lengths(sizes, c, NULL, NULL);
        sizes->tokens += keys->padding;
    }
}

/* Elements of one tensor; INT64_MAX beyond 64 bits. */
static int64_t count_of(const struct at_tensor *tensor) {
    int64_t n = tensor->rank ? 1 : 0;
    for (int i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(n, tensor->shape[i], &n))
            return INT64_MAX;
    return n;
}

int64_t at_case_bytes(const struct at_case *c) { return c->keys->dataset[0] ? 0 : at_case_need(&c->keys->own); }

int64_t at_case_need(const struct at_problem *problem) {
    struct at_problem shape = *problem;
    int64_t total = 0, bytes;
    at_problem_shape(&shape);
    for (int i = 0; i < shape.op->n_tensors; i++) {
        const struct at_tensor *tensor = &shape.tensors[i];
        if (__builtin_mul_overflow(count_of(tensor), (int64_t)at_format_info(tensor->format)->bytes, &bytes) ||
            __builtin_add_overflow(total, bytes, &total))
            return INT64_MAX;
    }
    return total;
}
