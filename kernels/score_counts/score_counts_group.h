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
    uint32_t n_odd; /* keys of the tile whose values are not finite */
    at_counts_rare rare;
};

/* Shared memory of the block. */
struct at_counts_block_fields {
    at_counts_window window[AT_COUNTS_BINNED];
    double sigma, share, tap[AT_COUNTS_MAX_TAPS]; /* share: what the pool of a full window subtracts */
    uint32_t sample[2], spare[32];
};

/* The tile of a group in shared memory; scores replace q and k. */
template <class SHAPE, bool FULL> struct at_counts_group_memory {
    double *q, *k;   /* [32 Q_STEP], [32 K_STEP] channels of the tiles */
    double *scores;  /* [KEYS KEY_STEP] raw, all queries of one key after the other; at the end the warps' sums */
    uint32_t *first; /* [stages][64] of each row and stage: as at_counts_see_one() has it */
    double *halo;    /* [2 64 taps - 1] raw scores of the last keys of the tile before and of this one, in turn */
    double *sums;    /* [3][64] of each row: sum of p, sum of p log2 p, the first p; if FULL */
    double *weights; /* [KEYS KEY_STEP] p as scores, 0 where hidden; then p log2 p; if FULL */
    /* [64 KEYS] pairs to be summed with care: query * KEYS + key; then places of a warp's p that are not 0 */
    uint16_t *again;

    static constexpr int OF_Q = AT_COUNTS_CHANNELS * SHAPE::Q_STEP, OF_K = AT_COUNTS_CHANNELS * SHAPE::K_STEP,
                         TILE = SHAPE::KEYS * SHAPE::KEY_STEP, AGAIN = AT_COUNTS_TILE * SHAPE::KEYS / 4,
                         PLACE = OF_Q + OF_K > TILE ? OF_Q + OF_K : TILE,
                         FIRST = (int)AT_COUNTS_STAGES * AT_COUNTS_TILE / 2,
                         OUT = AT_COUNTS_TILE * AT_COUNTS_CHANNELS_OUT;

    /* In doubles. out_here: 1 where sums of outputs are in shared memory, else 0. */
    static int size(int taps, int out_here) {
        return PLACE + AGAIN + FIRST + AT_COUNTS_TILE * (2 * (taps - 1) + (FULL ? 3 : 0)) +
               (FULL ? OUT * out_here : 0) + (FULL && !SHAPE::IN_PLACE ? TILE : 0);
    }
    __device__ at_counts_group_memory(double *base, int taps)
        : q(base), k(q + OF_Q), scores(base), first(reinterpret_cast<uint32_t *>(base + PLACE + AGAIN)),
          halo(base + PLACE + AGAIN + FIRST), sums(halo + AT_COUNTS_TILE * 2 * (taps - 1)),
          weights(SHAPE::IN_PLACE ? scores : sums + AT_COUNTS_TILE * 3),
          again(reinterpret_cast<uint16_t *>(base + PLACE)) {}
};

/* A tile of queries. A thread counts the scores of one query and 16 keys of every tile of keys: a page. */
template <class T, int TAPS, bool FULL> struct at_counts_tile_group {
    using shape = at_counts_shape<TAPS, FULL>;
    using memory = at_counts_group_memory<shape, FULL>;
    static constexpr int THREADS = shape::THREADS, WARPS = shape::WARPS, KEYS = shape::KEYS,
                         OUT_GROUPS = shape::OUT_GROUPS;
    const at_counts_view<T> &a;
    const memory &m;
    const at_counts_block_fields &b;
    const at_counts_bins &bins;
    at_counts_group_fields &f;
    const int head, kv_head, tile, first, number, thread, row, page, query,
        n; /* n: keys that the thread's query sees */
    at_counts_tally tally[AT_COUNTS_STAGES];
    uint64_t mass = 0; /* of bin mass_bin, not given to the group yet */
    int mass_bin = 0;
    double most; /* of this thread's keys; NaN where one is */

    __device__ at_counts_tile_group(const at_counts_view<T> &view, const memory &of_group,
                                    const at_counts_block_fields &block, const at_counts_bins &counts,
                                    at_counts_group_fields &fields, int of_block, int of_head)
        : a(view), m(of_group), b(block), bins(counts), f(fields), head((int)blockIdx.x),
          kv_head(head / (view.h / view.hk)), tile(of_head), first(tile * AT_COUNTS_TILE),
          number(shape::GROUPS == 1 ? 0 : of_block),
          thread(shape::GROUPS == 1 ? (int)threadIdx.x : (int)threadIdx.x % THREADS), row(thread % AT_COUNTS_TILE),
          page(thread / AT_COUNTS_TILE), query(first + row), n(query < view.queries ? view.visible(query) : 0),
          most(-at_plain_from_bits(0x7ff0000000000000)) {
        for (int i = thread; FULL && a.wants(AT_COUNTS_OF_OUT) && i < memory::OUT; i += THREADS)
            out()[i] = 0;
        for (int i = thread; i < 2 * memory::FIRST; i += THREADS)
            m.first[i] = 0;
    }

    __device__ int taps() const { return TAPS ? TAPS : a.n_taps; }
    __device__ bool wants(int stage) const {
        return a.wants(stage == AT_COUNTS_STAGES - 1 ? AT_COUNTS_OF_OUT : AT_COUNTS_OF_RAW + stage);
    }
    __device__ bool wants_p() const { return a.wants(AT_COUNTS_OF_P); }
    /* Without a filter no thread writes the halo. */
    __device__ bool filters() const { return FULL || a.what & (1 << AT_COUNTS_OF_FIR | 1 << AT_COUNTS_OF_P); }
    __device__ void sync() const { at_barrier(1 + number, THREADS); }
    /* Raw score of a key of this tile or of its halo. */
    __device__ double dot(const double *halo, int k0, int t) const {
        return t >= k0 ? m.scores[(t - k0) * shape::KEY_STEP + row] : halo[row * (taps() - 1) + t - k0 + taps() - 1];
    }
    __device__ void count_queries();
    __device__ void fetch(const T *rows, int64_t row_step, int fetched, int rows_end, int c, T (&x)[8]) const;
    __device__ bool brings_query() const { return page * 8 < AT_COUNTS_CHANNELS; }
    __device__ void bring(int k0, int c, T (&q)[8], T (&k)[8]) const;
    __device__ void multiply(int k0, bool sweep);
    __device__ void store_scores(int k0, int y, int x, const double (&sums)[4][4]);
    __device__ void repeat(int k0);
    __device__ void filter_three(int t, const double (&r)[6], double (&z)[4]) const;
    __device__ double filter_any(const double *halo, int k0, int t, double r0) const;
    __device__ uint32_t count_page(const double *halo, double *next, int k0);
    __device__ void filter_four(const double *halo, int k0, int j, int seen, const double (&s)[4], double &r1,
                                double &r2, int bin, uint32_t &live);
    __device__ int page_distance(int begin, int seen) const;
    __device__ void add_mass(int bin, double weight);
    __device__ void give_mass();
    /* Sums of outputs, those of a thread THREADS apart: behind all else of the group, or in global memory. */
    __device__ double *out() const {
        return a.out ? a.out + (int64_t)(head * (int)gridDim.y + (int)blockIdx.y) * memory::OUT
                     : m.sums + AT_COUNTS_TILE * 3 + (shape::IN_PLACE ? 0 : memory::TILE);
    }
    /* First query and first channel of the outputs that this thread's warp adds up; of its i-th output. Channels come in
     * pairs of neighbours, as they are loaded. */
    __device__ int out_query() const { return thread / 32 % 2 * 32; }
    __device__ int out_channel() const { return thread / 32 / 2 * 8 * OUT_GROUPS; }
    __device__ int out_query(int i) const {
        return out_query() + i / (4 * OUT_GROUPS) * 16 + i / 2 % 2 * 8 + at_lane() / 4;
    }
    __device__ int out_channel(int i) const {
        const int group = i / 4 % OUT_GROUPS, column = 2 * (at_lane() % 4) + i % 2;
        return out_channel() + group / 2 * 16 + 2 * column + group % 2;
    }
    /* The fragment of 16 queries by 4 keys, from these on, of weights. */
    __device__ void load_weights(int own, int t, double (&w)[2]) const {
        const double *from = m.weights + (t + at_lane() % 4) * shape::KEY_STEP + own + at_lane() / 4;
        w[0] = from[0];
        w[1] = from[8];
    }
    __device__ void weigh(int k0, int keys, uint32_t live);
    __device__ void load_values(const T *values, int key, uint32_t (&v)[OUT_GROUPS / 2]) const;
    __device__ void add_outputs(int k0, int keys);
    __device__ void add_outputs_one_by_one(int k0, int keys);
    __device__ void add_rows(int k0, int keys, int which);
    __device__ void take_logarithms(uint32_t live);
    __device__ void statistics();
    __device__ uint32_t outputs();
    __device__ uint32_t dead_pages(uint32_t &live_pairs) const;
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

/* Of 32 channels from c on, the eight that this thread brings, of a query and of a key of the tile at k0. */
template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void at_counts_tile_group<T, TAPS, FULL>::bring(int k0, int c, T (&q)[8], T (&k)[8]) const {
    if (brings_query())
        fetch(a.q + head * a.d, (int64_t)a.h * a.d, query, a.queries, c + page * 8, q);
    fetch(a.k + kv_head * a.d, (int64_t)a.hk * a.d, k0 + thread % KEYS, a.keys, c + thread / KEYS * 8, k);
}

template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::multiply(int k0, bool sweep) {
    const int y = thread / 32 / (KEYS / 32) * 16, x = thread / 32 % (KEYS / 32) * 32;
    double sums[4][4] = {};
    T q[8], k[8];
    bring(k0, 0, q, k);
    AT_NO_UNROLL
    for (int c = 0; c < a.d; c += AT_COUNTS_CHANNELS) {
        sync(); /* what lay there has been read; every score of the tile before is counted */
        if (brings_query())
            at_counts_put(q, m.q + page * 8 * shape::Q_STEP + row, shape::Q_STEP);
        at_counts_put(k, m.k + thread / KEYS * 8 * shape::K_STEP + thread % KEYS, shape::K_STEP);
        if (c == 0 && sweep)
            at_counts_sweep_bins(a, bins, head, thread, THREADS);
        if (thread == 0)
            f.n_again = f.n_odd = 0;
        sync();
        bring(k0, c + AT_COUNTS_CHANNELS, q, k);
        at_counts_multiply<shape>(m.q + y, m.k + x, sums);
    }
    sync(); /* q and k become scores */
    store_scores(k0, y, x, sums);
    if (FULL && thread < KEYS && k0 + thread < a.keys &&
        a.v_span[(int64_t)kv_head * a.keys + k0 + thread] >= AT_COUNTS_NOT_FINITE)
        at_atomic_add(&f.n_odd, 1u);
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
            m.scores[t * shape::KEY_STEP + own] = sums[j / 2][2 * i + j % 2];
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
