/* A group of threads that has a tile of queries: its state, and its products of queries and keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The groups of a block have parts of its shared memory, synchronise at named barriers of their own, and share the
 * counts of score_counts_bins.h. score_counts_group_page.h counts, score_counts_group_close.h finishes a tile. */
#ifndef AT_KERNEL_SCORE_COUNTS_GROUP_H
#define AT_KERNEL_SCORE_COUNTS_GROUP_H

#include "kernels/score_counts/score_counts_bins.h"

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
template <class SHAPE, bool FULL> struct at_counts_group_memory {
    double *q, *k;   /* [32 Q_STEP], [32 K_STEP] channels of the tiles */
    double *scores;  /* [64 ROW_STEP] raw; at the end the warps' sums */
    double *halo;    /* [2 64 taps - 1] raw scores of the last keys of the tile before and of this one, in turn */
    double *weights; /* [64 ROW_STEP] p, 0 where hidden; then a row's that are not 0, side by side; if FULL */
    double *sums;    /* [3][64] of each row: sum of p, sum of p log2 p, the first p; if FULL */
    uint16_t *again; /* [64 KEYS] pairs to be summed with care: query * KEYS + key; then the keys of those p */

    static constexpr int OF_Q = AT_COUNTS_CHANNELS * SHAPE::Q_STEP, OF_K = AT_COUNTS_CHANNELS * SHAPE::K_STEP,
                         TILE = AT_COUNTS_TILE * SHAPE::ROW_STEP, AGAIN = AT_COUNTS_TILE * SHAPE::KEYS / 4,
                         PLACE = OF_Q + OF_K > TILE ? OF_Q + OF_K : TILE;

    /* In doubles. */
    static __host__ __device__ int64_t size(int64_t taps) {
        return PLACE + AGAIN + AT_COUNTS_TILE * (2 * (taps - 1) + (FULL ? 3 : 0)) + (FULL ? TILE : 0);
    }
    __device__ at_counts_group_memory(double *base, int taps)
        : q(base), k(q + OF_Q), scores(base), halo(base + PLACE + AGAIN),
          weights(halo + AT_COUNTS_TILE * (2 * (taps - 1) + 3)), sums(halo + AT_COUNTS_TILE * 2 * (taps - 1)),
          again(reinterpret_cast<uint16_t *>(base + PLACE)) {}
};

/* A tile of queries. A thread counts the scores of one query and 16 keys of every tile of keys: a page. */
template <class T, int TAPS, bool FULL> struct at_counts_tile_group {
    using shape = at_counts_shape<TAPS, FULL>;
    using memory = at_counts_group_memory<shape, FULL>;
    static constexpr int THREADS = shape::THREADS, WARPS = shape::WARPS, ROWS = shape::ROWS, KEYS = shape::KEYS;
    const at_counts_view<T> &a;
    const memory &m;
    const at_counts_block_fields &b;
    const at_counts_bins &bins;
    at_counts_group_fields &f;
    const int head, kv_head, tile, first, number, thread, row, page, query,
        n; /* n: keys that the thread's query sees */
    at_counts_tally tally[AT_COUNTS_STAGES];
    uint32_t live_pairs = 0; /* visible pairs whose p is not 0 */
    uint64_t mass = 0;       /* of bin mass_bin, not given to the group yet */
    int mass_bin = 0;
    double most; /* of this thread's keys; NaN where one is */
    double o[FULL ? ROWS : 1][AT_COUNTS_CHANNELS_OUT];

    __device__ at_counts_tile_group(const at_counts_view<T> &view, const memory &of_group,
                                    const at_counts_block_fields &block, const at_counts_bins &counts,
                                    at_counts_group_fields &fields, int of_block, int of_head)
        : a(view), m(of_group), b(block), bins(counts), f(fields), head((int)blockIdx.x),
          kv_head(head / (view.h / view.hk)), tile(of_head), first(tile * AT_COUNTS_TILE),
          number(shape::GROUPS == 1 ? 0 : of_block),
          thread(shape::GROUPS == 1 ? (int)threadIdx.x : (int)threadIdx.x % THREADS), row(thread % AT_COUNTS_TILE),
          page(thread / AT_COUNTS_TILE), query(first + row), n(query < view.queries ? view.visible(query) : 0),
          most(-at_plain_from_bits(0x7ff0000000000000)) {
        for (int r = 0; r < (FULL ? ROWS : 1); r++)
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
        return t >= k0 ? m.scores[row * shape::ROW_STEP + t - k0] : halo[row * (a.n_taps - 1) + t - k0 + a.n_taps - 1];
    }
    __device__ void count_queries();
    __device__ void fetch(const T *rows, int64_t row_step, int fetched, int rows_end, int c, T (&x)[8]) const;
    __device__ void multiply(int k0, bool sweep);
    __device__ void store_scores(int k0, int y, int x, const double (&sums)[4][4]);
    __device__ void repeat(int k0);
    __device__ double filter(const double *halo, int k0, int t, double r0, double r1, double r2) const;
    __device__ void count_page(const double *halo, double *next, int k0);
    __device__ void filter_four(const double *halo, double *next, int k0, int j, int seen, const double (&x)[4],
                                const double (&s)[4], double &r1, double &r2, int bin, uint32_t &live);
    __device__ int page_distance(int begin, int seen) const;
    __device__ void add_mass(int bin, double weight);
    __device__ void give_mass();
    __device__ double *list(int r) const { return m.weights + (thread / 32 * ROWS + r) * shape::ROW_STEP; }
    __device__ uint16_t *list_keys(int r) const { return m.again + (thread / 32 * ROWS + r) * KEYS; }
    /* The j-th channel of this lane: neighbours in pairs, as they are loaded. */
    __device__ static int channel(int j) { return j / 2 * 64 + 2 * at_lane() + j % 2; }
    /* Of this lane's row, of the warp's first ROWS lanes alone. */
    __device__ double &row_sum(int which) const {
        return m.sums[which * AT_COUNTS_TILE + thread / 32 * ROWS + at_lane()];
    }
    __device__ void weigh(int k0);
    __device__ int list_live(int k0);
    template <bool PAIRS> __device__ void weigh_values(int k0, int live);
    template <bool PAIRS, int N>
    __device__ void add_values(const T *const (&values)[AT_COUNTS_CHANNELS_OUT], int step, const double *weights,
                               const uint16_t *keys, double gamma, double (&out)[AT_COUNTS_CHANNELS_OUT]) const;
    __device__ void add_logarithms(int k0, int live);
    __device__ void statistics();
    __device__ uint32_t outputs();
    __device__ uint32_t dead_pages() const;
    /* Pairs that this thread has counted: a page of each whole tile of keys, and what the row sees of it in the last. */
    __device__ uint32_t pairs() const {
        const int last = n % KEYS - page * AT_COUNTS_PAGE;
        return (uint32_t)(n / KEYS * AT_COUNTS_PAGE + (last < 0 ? 0 : last < AT_COUNTS_PAGE ? last : AT_COUNTS_PAGE));
    }
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

/* Eight channels of a row, from c on: zeros where there are none. */
template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void at_counts_tile_group<T, TAPS, FULL>::fetch(const T *rows, int64_t row_step, int fetched,
                                                                           int rows_end, int c, T (&x)[8]) const {
    AT_UNROLL
    for (int j = 0; j < 8; j++)
        x[j] = T{};
    if (fetched < rows_end && c < a.d)
        at_counts_piece(rows + (int64_t)fetched * row_step, c, a.d, x);
}

/* Eight channels of a row as doubles. */
template <class T> static __device__ __forceinline__ void at_counts_put(const T (&x)[8], double *to, int step) {
    AT_UNROLL
    for (int j = 0; j < 8; j++)
        to[j * step] = at_counts_value(x[j]);
}

template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::multiply(int k0, bool sweep) {
    const T *queries = a.q + head * a.d, *keys = a.k + kv_head * a.d;
    const int64_t q_step = (int64_t)a.h * a.d, k_step = (int64_t)a.hk * a.d;
    const int own = page * 8; /* of 32 channels, the eight that this thread brings, of a query and of a key */
    const int y = thread / 32 / (KEYS / 32) * 16, x = thread / 32 % (KEYS / 32) * 32;
    double sums[4][4] = {};
    T q[8], k[8];
    fetch(queries, q_step, query, a.queries, own, q);
    fetch(keys, k_step, k0 + row, a.keys, own, k);
    AT_NO_UNROLL
    for (int c = 0; c < a.d; c += AT_COUNTS_CHANNELS) {
        sync(); /* what lay there has been read; every score of the tile before is counted */
        at_counts_put(q, m.q + own * shape::Q_STEP + row, shape::Q_STEP);
        at_counts_put(k, m.k + own * shape::K_STEP + row, shape::K_STEP);
        if (c == 0 && sweep)
            at_counts_sweep_bins(a, bins, head, thread, THREADS);
        if (thread == 0)
            f.n_again = 0;
        sync();
        fetch(queries, q_step, query, a.queries, c + AT_COUNTS_CHANNELS + own, q);
        fetch(keys, k_step, k0 + row, a.keys, c + AT_COUNTS_CHANNELS + own, k);
        at_counts_multiply<shape>(m.q + y, m.k + x, sums);
    }
    sync(); /* q and k become scores */
    store_scores(k0, y, x, sums);
    sync();
}

/* sums: fragments of 16 queries from y on by 32 keys from x on. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::store_scores(int k0, int y, int x, const double (&sums)[4][4]) {
    const int down = y + at_lane() / 4, across = x + 2 * (at_lane() % 4);
    int spans[8];
    AT_UNROLL
    for (int j = 0; j < 8; j++) {
        const int t = k0 + across + j / 2 * 8 + j % 2;
        spans[j] = t < a.keys ? a.k_span[(int64_t)kv_head * a.keys + t] : 0;
    }
    AT_UNROLL
    for (int i = 0; i < 2; i++) {
        const int own = down + 8 * i, there = first + own < a.queries;
        const int seen = there ? a.visible(first + own) - k0 : 0;
        const int left = AT_COUNTS_EXACT_SPAN - (there ? a.q_span[(int64_t)head * a.queries + first + own] : 0);
        AT_UNROLL
        for (int j = 0; j < 8; j++) {
            const int t = across + j / 2 * 8 + j % 2;
            m.scores[own * shape::ROW_STEP + t] = sums[j / 2][2 * i + j % 2];
            if (spans[j] > left && t < seen)
                m.again[at_atomic_add(&f.n_again, 1u)] = (uint16_t)(own * KEYS + t);
        }
    }
}

template <class T, int TAPS, bool FULL> __device__ void at_counts_tile_group<T, TAPS, FULL>::repeat(int k0) {
    const int count = (int)f.n_again;
    for (int i = thread; i < count; i += THREADS)
        at_counts_sum_again<shape>(a, head, kv_head, first, k0, m.again[i], m.scores);
    if (count)
        sync();
}

#endif
