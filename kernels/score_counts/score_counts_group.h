/* A group of 256 threads that has a tile of queries: its state, and its products of queries and keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The groups of a block have parts of its shared memory, synchronise at named barriers of their own, and share the
 * counts of score_counts_bins.h. score_counts_group_page.h counts, score_counts_group_close.h finishes a tile. */
#ifndef AT_KERNEL_SCORE_COUNTS_GROUP_H
#define AT_KERNEL_SCORE_COUNTS_GROUP_H

#include "kernels/score_counts/score_counts_bins.h"

/* Groups of a block: one where filters are long or more than scores is counted, which wants more registers. */
template <int TAPS, bool FULL> constexpr int AT_COUNTS_GROUPS = TAPS == 3 && !FULL ? 2 : 1;

/* Shared memory of a group beside its tile. */
struct at_counts_group_fields {
    uint32_t mass[2 * AT_COUNTS_DISTANCES], n_again;
    at_counts_rare rare;
};

/* Shared memory of the block. */
struct at_counts_block_fields {
    at_counts_window window[AT_COUNTS_BINNED];
    double sigma, share, tap[AT_COUNTS_MAX_TAPS]; /* share: what the pool of a full window subtracts */
    uint32_t sample[2];
};

/* The tile of a group in shared memory; scores replace q and k. */
struct at_counts_group_memory {
    double *q, *k;   /* [32 STAGE_STEP] channels of the tiles */
    double *scores;  /* [64 ROW_STEP] raw; at the end the warps' sums */
    double *halo;    /* [2 64 taps - 1] raw scores of the last keys of the tile before and of this one, in turn */
    double *weights; /* [64 ROW_STEP] p, 0 where the key is hidden; of kernels with rows and outputs alone */
    uint16_t *again; /* [4096] pairs to be summed with care: query * 64 + key */

    static constexpr int STAGE = 2 * AT_COUNTS_CHANNELS * AT_COUNTS_STAGE_STEP,
                         TILE = AT_COUNTS_TILE * AT_COUNTS_ROW_STEP, AGAIN = AT_COUNTS_TILE * AT_COUNTS_KEYS / 4;
    static_assert(STAGE >= TILE, "what lies in one place fits it");

    /* In doubles. */
    static __host__ __device__ int64_t size(int64_t taps, bool with_weights) {
        return STAGE + AGAIN + 2 * AT_COUNTS_TILE * (taps - 1) + (with_weights ? TILE : 0);
    }
    __device__ at_counts_group_memory(double *base, int taps)
        : q(base), k(q + STAGE / 2), scores(base), halo(base + STAGE + AGAIN),
          weights(halo + 2 * AT_COUNTS_TILE * (taps - 1)), again(reinterpret_cast<uint16_t *>(base + STAGE)) {}
};

/* 256 threads with a tile of queries. A thread counts the scores of one query and 16 keys of every tile: a page. */
template <class T, int TAPS, bool FULL> struct at_counts_tile_group {
    static constexpr int THREADS = AT_COUNTS_BLOCK, WARPS = THREADS / 32;
    const at_counts_view<T> &a;
    const at_counts_group_memory &m;
    const at_counts_block_fields &b;
    const at_counts_bins &bins;
    at_counts_group_fields &f;
    const int head, kv_head, tile, first, number, thread, row, page, query,
        n; /* n: keys that the thread's query sees */
    at_counts_tally tally[AT_COUNTS_STAGES];
    uint32_t element_zero = 0, pairs = 0;
    uint64_t mass = 0; /* of bin mass_bin, not given to the group yet */
    int mass_bin = 0;
    double most, sum = 0, terms = 0, weight0 = 0; /* of the row: most of this thread's keys, the rest of page 0 only */
    bool has_nan = false;
    double o[FULL ? 8 : 1][AT_COUNTS_CHANNELS_OUT];

    __device__ at_counts_tile_group(const at_counts_view<T> &view, const at_counts_group_memory &memory,
                                    const at_counts_block_fields &block, const at_counts_bins &counts,
                                    at_counts_group_fields &fields, int of_block, int of_head)
        : a(view), m(memory), b(block), bins(counts), f(fields), head((int)blockIdx.x),
          kv_head(head / (view.h / view.hk)), tile(of_head), first(tile * AT_COUNTS_TILE), number(of_block),
          thread((int)threadIdx.x % THREADS), row(thread % AT_COUNTS_TILE), page(thread / AT_COUNTS_TILE),
          query(first + row), n(query < view.queries ? view.visible(query) : 0),
          most(-at_plain_from_bits(0x7ff0000000000000)) {
        for (int r = 0; r < (FULL ? 8 : 1); r++)
            for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j++)
                o[r][j] = 0;
    }

    __device__ bool wants(int stage) const {
        return a.wants(stage == AT_COUNTS_STAGES - 1 ? AT_COUNTS_OF_OUT : AT_COUNTS_OF_RAW + stage);
    }
    __device__ bool wants_p() const { return a.wants(AT_COUNTS_OF_P); }
    /* Without a filter no thread writes the halo. */
    __device__ bool filters() const { return FULL || a.what & (1 << AT_COUNTS_OF_FIR | 1 << AT_COUNTS_OF_P); }
    __device__ void sync() const { at_barrier(1 + number, THREADS); }
    /* Raw score of a key of this tile or of its halo. */
    __device__ double dot(const double *halo, int k0, int t) const {
        return t >= k0 ? m.scores[row * AT_COUNTS_ROW_STEP + t - k0]
                       : halo[row * (a.n_taps - 1) + t - k0 + a.n_taps - 1];
    }
    __device__ void count_queries();
    __device__ void fetch(const T *rows, int64_t row_step, int first_row, int rows_end, int c0, T (&x)[8]) const;
    __device__ void put(const T (&x)[8], double *to) const;
    __device__ void multiply(int k0, bool sweep);
    __device__ void store_scores(int k0, const double (&sums)[4][4]);
    __device__ void repeat(int k0);
    __device__ double filter(const double *halo, int k0, int t, double r0, double r1, double r2) const;
    __device__ void count_page(const double *halo, double *next, int k0);
    __device__ void filter_four(const double *halo, double *next, int k0, int j, int seen, const double (&x)[4],
                                const double (&s)[4], double &r1, double &r2, int bin, uint32_t &live);
    __device__ int page_distance(int begin, int seen) const;
    __device__ void add_mass(int bin, double weight);
    __device__ void give_mass();
    __device__ void weigh(int k0, int end);
    __device__ void weigh_values(int k0, int end);
    __device__ void statistics();
    __device__ uint32_t outputs();
    __device__ uint32_t dead_pages() const;
    __device__ void close(uint32_t count);
    __device__ void store_words(const uint64_t *joined);
    __device__ int work(int steps);
};

/* ---- products ---- */

template <class T, int TAPS, bool FULL> __device__ void at_counts_tile_group<T, TAPS, FULL>::count_queries() {
    uint32_t *plane = a.plane(AT_COUNTS_OF_Q, head);
    for (int i = thread; plane && i < AT_COUNTS_TILE * a.d; i += THREADS)
        if (first + i / a.d < a.queries)
            a.count(plane, at_counts_value(a.query(first + i / a.d, head)[i % a.d]));
}

/* Eight channels of one of 64 rows, from c0 + 8 (thread / 64) on: zeros where there are none. */
template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void at_counts_tile_group<T, TAPS, FULL>::fetch(const T *rows, int64_t row_step,
                                                                           int first_row, int rows_end, int c0,
                                                                           T (&x)[8]) const {
    const int c = c0 + page * 8;
    AT_UNROLL
    for (int j = 0; j < 8; j++)
        x[j] = T{};
    if (first_row + row < rows_end && c < a.d)
        at_counts_piece(rows + (int64_t)(first_row + row) * row_step, c, a.d, x);
}

template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void at_counts_tile_group<T, TAPS, FULL>::put(const T (&x)[8], double *to) const {
    AT_UNROLL
    for (int j = 0; j < 8; j++)
        to[(page * 8 + j) * AT_COUNTS_STAGE_STEP + row] = at_counts_value(x[j]);
}

/* Places of the thread's queries and keys: a warp has 16 by 32 of them, eight lanes along the keys. */
static __device__ __forceinline__ int at_counts_own_y(int thread) { return thread / 64 * 4 + thread % 32 / 8; }
static __device__ __forceinline__ int at_counts_own_x(int thread) { return thread / 32 % 2 * 8 + thread % 8; }

template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::multiply(int k0, bool sweep) {
    const T *queries = a.q + head * a.d, *keys = a.k + kv_head * a.d;
    const int64_t q_step = (int64_t)a.h * a.d, k_step = (int64_t)a.hk * a.d;
    double sums[4][4] = {};
    T of_q[8], of_k[8];
    fetch(queries, q_step, first, a.queries, 0, of_q);
    fetch(keys, k_step, k0, a.keys, 0, of_k);
    AT_NO_UNROLL
    for (int c = 0; c < a.d; c += AT_COUNTS_CHANNELS) {
        sync(); /* what lay there has been read; every score of the tile before is counted */
        put(of_q, m.q);
        put(of_k, m.k);
        if (c == 0 && sweep)
            at_counts_sweep_bins(a, bins, head, thread, THREADS);
        if (thread == 0)
            f.n_again = 0;
        sync();
        fetch(queries, q_step, first, a.queries, c + AT_COUNTS_CHANNELS, of_q);
        fetch(keys, k_step, k0, a.keys, c + AT_COUNTS_CHANNELS, of_k);
        at_counts_multiply(m.q, m.k, at_counts_own_y(thread), at_counts_own_x(thread), sums);
    }
    sync(); /* q and k become scores */
    store_scores(k0, sums);
    sync();
}

template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::store_scores(int k0, const double (&sums)[4][4]) {
    int spans[4];
    AT_UNROLL
    for (int j = 0; j < 4; j++) {
        const int t = k0 + at_counts_own(at_counts_own_x(thread), j);
        spans[j] = t < a.keys ? a.k_span[(int64_t)kv_head * a.keys + t] : 0;
    }
    AT_UNROLL
    for (int i = 0; i < 4; i++) {
        const int own = at_counts_own(at_counts_own_y(thread), i), there = first + own < a.queries;
        const int seen = there ? a.visible(first + own) - k0 : 0;
        const int left = AT_COUNTS_EXACT_SPAN - (there ? a.q_span[(int64_t)head * a.queries + first + own] : 0);
        AT_UNROLL
        for (int j = 0; j < 4; j++) {
            const int t = at_counts_own(at_counts_own_x(thread), j);
            m.scores[own * AT_COUNTS_ROW_STEP + t] = sums[i][j];
            if (spans[j] > left && t < seen)
                m.again[at_atomic_add(&f.n_again, 1u)] = (uint16_t)(own * AT_COUNTS_KEYS + t);
        }
    }
}

template <class T, int TAPS, bool FULL> __device__ void at_counts_tile_group<T, TAPS, FULL>::repeat(int k0) {
    const int count = (int)f.n_again;
    for (int i = thread; i < count; i += THREADS)
        at_counts_sum_again(a, head, kv_head, first, k0, m.again[i], m.scores);
    if (count)
        sync();
}

#endif
