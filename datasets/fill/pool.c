/* Which rows of a pool are worth touching.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/fill/pool.h"

#include <stdlib.h>

#include "attest/attention.h"

enum { LARGE = 1 << 30 };

int at_pool_is_large(const struct at_problem *p, int t) {
    const struct at_sizes *s = &p->sizes;
    return p->op->kind == AT_KIND_ATTENTION && s->page > 0 && (t == AT_ATTN_K || t == AT_ATTN_V) &&
           s->slots * s->hk * s->d > LARGE / (int64_t)at_format_info(p->dtype)->bytes;
}

static int by_first(const void *a, const void *b) {
    const struct at_pool_span *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Joins what overlaps or touches; returns how many are left. */
static int64_t join(struct at_pool_span *spans, int64_t n) {
    int64_t kept = 0;
    qsort(spans, (size_t)n, sizeof *spans, by_first);
    for (int64_t i = 0; i < n; i++) {
        if (kept == 0 || spans[i].first > spans[kept - 1].end)
            spans[kept++] = spans[i];
        else if (spans[i].end > spans[kept - 1].end)
            spans[kept - 1].end = spans[i].end;
    }
    return kept;
}

at_status at_pool_spans(const struct at_problem *p, struct at_pool_span **spans, int64_t *n) {
    const struct at_sizes *s = &p->sizes;
    const int large = at_pool_is_large(p, AT_ATTN_K);
    const int64_t entries = large ? s->b * s->max_pages : 0;
    *n = 0;
    *spans = malloc(((size_t)entries + 1) * sizeof **spans);
    if (!*spans)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the places of %lld pages", (long long)entries);
    if (!large)
        (*spans)[(*n)++] = (struct at_pool_span){ 0, s->slots };
    for (int64_t i = 0; i < entries; i++) {
        const int64_t page = at_tensor_i32(&p->tensors[AT_ATTN_BLOCK_TABLE], i), pages = s->slots / s->page;
        if (page >= 0)
            (*spans)[(*n)++] = (struct at_pool_span){ (page > 0 ? page - 1 : 0) * s->page,
                                                      (page + 1 < pages ? page + 2 : pages) * s->page };
    }
    *n = join(*spans, *n);
    return AT_OK;
}
