/* The kernels before and behind the one that counts scores: clear the outputs, count k and v, count zeros of groups of
 * heads, add up the words of tiles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_KERNEL_SCORE_COUNTS_CLOSE_H
#define AT_KERNEL_SCORE_COUNTS_CLOSE_H

#include "kernels/score_counts/score_counts.h"

constexpr int AT_COUNTS_CLEAR = 2048; /* slots that a block clears */

static_assert(AT_CODE_SLOTS % AT_COUNTS_CLEAR == 0, "blocks clear whole planes");
static __global__ void at_counts_clear(uint32_t *to) {
    const int64_t first = (int64_t)blockIdx.x * AT_COUNTS_CLEAR;
    for (int i = (int)threadIdx.x; i < AT_COUNTS_CLEAR; i += (int)blockDim.x)
        to[first + i] = 0;
}

/* Counts the codes of k and v: a block for 64 keys of a kv head. */
template <class T> static __global__ void at_counts_keys(at_counts_view<T> a) {
    const int kv_head = (int)blockIdx.y, first = (int)blockIdx.x * AT_COUNTS_TILE;
    uint32_t *k = a.plane(AT_COUNTS_OF_K, kv_head), *v = a.plane(AT_COUNTS_OF_V, kv_head);
    for (int t = first; t < first + AT_COUNTS_TILE && t < a.keys; t++)
        for (int c = (int)threadIdx.x; c < a.d; c += (int)blockDim.x) {
            if (k)
                a.count(k, at_counts_value(a.k[a.key(t, kv_head) + c]));
            if (v)
                a.count(v, at_counts_value(a.v[a.key(t, kv_head) + c]));
        }
}

/* Counts (query, key) and (query, page) where every head of a group has p = 0: a block for 64 queries of a kv head. */
template <class T> static __global__ void at_counts_group(at_counts_view<T> a) {
    AT_SHARED(uint64_t[AT_COUNTS_THREADS], buffer);
    const int kv_head = (int)blockIdx.y, tile = (int)blockIdx.x, group = a.h / a.hk;
    const int first = tile * AT_COUNTS_TILE,
              end = first + AT_COUNTS_TILE < a.queries ? first + AT_COUNTS_TILE : a.queries;
    uint64_t keys = 0, dead = 0;
    for (int i = first; i < end && a.wants(AT_COUNTS_OF_P); i++) {
        const int n = a.visible(i), pages = (n + AT_COUNTS_PAGE - 1) / AT_COUNTS_PAGE;
        for (int page = (int)threadIdx.x; page < pages; page += (int)blockDim.x) {
            uint32_t live = 0;
            for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
                live |= a.live_row(head, i)[page];
            const int left = n - page * AT_COUNTS_PAGE, seen = left < AT_COUNTS_PAGE ? left : AT_COUNTS_PAGE;
            keys += (uint64_t)(seen - at_count_ones(live));
            dead += live == 0;
        }
    }
    keys = at_counts_reduce(buffer, 0, keys);
    dead = at_counts_reduce(buffer, 0, dead);
    if (threadIdx.x == 0) {
        uint64_t *out = a.kv_words + (int64_t)(kv_head * a.tiles + tile) * AT_KV_SUMS;
        out[AT_COUNTS_KEY_ZERO] = keys;
        out[AT_COUNTS_PAGE_ZERO] = dead;
    }
}

/* Stores word `word` of a head, joined over its tiles, as outputs. */
static __device__ inline void at_counts_store_sum(double *sums, int word, uint64_t x) {
    if (word < AT_COUNTS_W_MASS) {
        sums[word] = (double)x;
        return;
    }
    if (word < AT_COUNTS_W_LEDGER) {
        const int bin = word - AT_COUNTS_W_MASS;
        sums[AT_COUNTS_MASS_LOW + bin] = (double)(uint32_t)x;
        sums[AT_COUNTS_MASS_HIGH + bin] = (double)(uint32_t)(x >> 32);
        return;
    }
    const int stage = (word - AT_COUNTS_W_LEDGER) / AT_COUNTS_W_STAGE;
    const int field = (word - AT_COUNTS_W_LEDGER) % AT_COUNTS_W_STAGE;
    double *row = sums + AT_COUNTS_LEDGER + stage * AT_COUNTS_LEDGER_FIELDS;
    if (field < AT_COUNTS_W_MAX) {
        row[field] = (double)x;
    } else if (field == AT_COUNTS_W_MAX) {
        row[AT_COUNTS_MAX_ABS] = at_plain_from_bits((int64_t)x);
    } else {
        const bool has = x != AT_COUNTS_NOWHERE;
        row[AT_COUNTS_HAS_FIRST] = has ? 1 : 0;
        row[AT_COUNTS_FIRST_QUERY] = has ? (double)(uint32_t)(x >> 32) : 0;
        row[AT_COUNTS_FIRST_KEY] = has ? (double)(uint32_t)x - 1 : 0;
    }
}

/* A block for every head, then one for every kv head; a thread a word. */
template <class T> static __global__ void at_counts_finish(at_counts_view<T> a) {
    const int block = (int)blockIdx.x, word = (int)threadIdx.x;
    if (block < a.h) {
        const uint64_t *words = a.words + (int64_t)block * a.tiles * AT_COUNTS_WORDS;
        if (word >= AT_COUNTS_WORDS)
            return;
        uint64_t x = words[word];
        for (int tile = 1; tile < a.tiles; tile++)
            x = at_counts_join(word, x, words[(int64_t)tile * AT_COUNTS_WORDS + word]);
        at_counts_store_sum(a.sums + block * AT_HEAD_SUMS, word, x);
        return;
    }
    if (word >= AT_KV_SUMS)
        return;
    const int kv_head = block - a.h;
    uint64_t x = 0;
    for (int tile = 0; tile < a.tiles; tile++)
        x += a.kv_words[(int64_t)(kv_head * a.tiles + tile) * AT_KV_SUMS + word];
    a.kv_sums[kv_head * AT_KV_SUMS + word] = (double)x;
}

static_assert(AT_COUNTS_WORDS <= AT_COUNTS_THREADS, "a thread a word");

/* Launches all kernels in their order; `main` launches the one that counts scores. */
template <class T, class F> int at_counts_launch(const struct at_launch *launch, F main) {
    const at_counts_view<T> a = at_counts_view<T>::of(launch);
    const struct at_sizes *z = &launch->problem->sizes;
    const dim3 block{ AT_COUNTS_THREADS, 1, 1 };
    const int64_t n[2] = { z->h * at_counts_own_of(launch->problem).quantities * AT_CODE_SLOTS,
                           z->hk * at_counts_own_of(launch->problem).kv_quantities * AT_CODE_SLOTS };
    int code = 0;
    for (int i = 0; i < 2 && !code; i++)
        if (n[i])
            code = at_launch(at_counts_clear, dim3{ (unsigned)(n[i] / AT_COUNTS_CLEAR), 1, 1 }, block, 0,
                             launch->stream, i ? a.kv_counts : a.counts);
    if (!code && n[1] && a.keys)
        code = at_launch(at_counts_keys<T>,
                         dim3{ (unsigned)((a.keys + AT_COUNTS_TILE - 1) / AT_COUNTS_TILE), (unsigned)a.hk, 1 }, block,
                         0, launch->stream, a);
    if (!code)
        code = main(a);
    if (!code)
        code = at_launch(at_counts_group<T>, dim3{ (unsigned)a.tiles, (unsigned)a.hk, 1 }, block, 0, launch->stream, a);
    if (!code)
        code = at_launch(at_counts_finish<T>, dim3{ (unsigned)(a.h + a.hk), 1, 1 }, block, 0, launch->stream, a);
    return code;
}

/* Why every variant declines a problem: grids and 32-bit offsets have ends. */
static inline const char *at_counts_declines(const struct at_problem *p) {
    /* not reached: the case language has 4096 heads and 2^26 keys at most */
    if (p->sizes.h > 65535 || p->sizes.tokens + p->sizes.slots > INT32_MAX / 2)
        return "more heads, queries or keys than grids and 32-bit places reach";
    return nullptr;
}

#endif
