/* Softmax attention of one query and one head, in float: what the examples beside it share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTMAX_FLOAT_H
#define SOFTMAX_FLOAT_H

#include <math.h>
#include <stdint.h>

/* Keys and values of one request and kv head. Key t is row pages[t / page] * page + t % page, or first + t without pages. */
struct request {
    const float *k, *v;
    const int32_t *pages;
    int64_t first, page, row; /* row: elements from one row to the next */
};

static inline int64_t slot_of(const struct request *r, int64_t key) {
    return r->pages ? r->pages[key / r->page] * r->page + key % r->page : r->first + key;
}

/* q[d] over keys 0 .. n - 1: o[d] is written; returns the log of the sum of weights, -inf without keys, where o is 0.
 * score[n] is scratch. */
static inline float attend(const float *q, const struct request *r, int64_t n, int64_t d, float scale, float *score,
                           float *o) {
    float highest = -INFINITY, sum = 0;
    for (int64_t t = 0; t < n; t++) {
        float dot = 0;
        for (int64_t c = 0; c < d; c++)
            dot += q[c] * r->k[slot_of(r, t) * r->row + c];
        score[t] = dot * scale;
        highest = fmaxf(highest, score[t]);
    }
    for (int64_t c = 0; c < d; c++)
        o[c] = 0;
    for (int64_t t = 0; t < n; t++) {
        const float p = expf(score[t] - highest);
        sum += p;
        for (int64_t c = 0; c < d; c++)
            o[c] += p * r->v[slot_of(r, t) * r->row + c];
    }
    for (int64_t c = 0; c < d && n > 0; c++)
        o[c] /= sum;
    return n > 0 ? highest + logf(sum) : -INFINITY;
}

/* A batch: rows of q, o and lse by token and head, where each request's begin, its keys, and how they lie. */
struct batch {
    const float *q, *k, *v;
    const int32_t *query_start, *seq_lens, *key_start, *block_table; /* key_start or block_table is NULL */
    float *o, *lse, *score;
    int64_t b, h, hk, d, page, max_pages, causal;
    float scale;
};

static inline void attend_all(const struct batch *all) {
    const float *k = all->k ? all->k : all->q,
                *v = all->v ? all->v : all->q; /* without any keys nothing is read of them */
    for (int64_t b = 0; b < all->b; b++)
        for (int64_t i = all->query_start[b]; i < all->query_start[b + 1]; i++)
            for (int64_t x = 0; x < all->h; x++) {
                const int64_t at = x / (all->h / all->hk) * all->d, row = i * all->h + x;
                const int64_t behind = all->causal ? all->query_start[b + 1] - 1 - i : 0, keys = all->seq_lens[b];
                const struct request r = { .k = k + at,
                                           .v = v + at,
                                           .pages = all->block_table ? all->block_table + b * all->max_pages : 0,
                                           .first = all->key_start ? all->key_start[b] : 0,
                                           .page = all->page,
                                           .row = all->hk * all->d };
                all->lse[row] = attend(all->q + row * all->d, &r, keys > behind ? keys - behind : 0, all->d, all->scale,
                                       all->score, all->o + row * all->d);
            }
}

#endif
