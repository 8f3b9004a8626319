/* Counting scores: counts stand in shared memory, in windows of codes around the data, while a block that stays for many
 * tiles of its head adds to them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the definition (reference/score_counts/score_counts.h). Pairs whose norms and lowest bits allow it by
 * fma, which rounds nothing there; the others one by one. The FIR runs along the keys in registers, over the tile's edge
 * by a halo of raw scores; sums of rows and outputs in order, tile by tile.
 * Launch: grid (query heads, blocks: as many as give every multiprocessor of 132 one), 512 threads, 256 with rows,
 * outputs or other than three taps; 227 KiB of shared memory. 256 threads have a tile of 64 queries, go on to the next one without the
 * others, and add to the counts of the block.
 * Limits: f16 or bf16; asynct; with outputs d at most 128.
 * Source: ours. */
#include "kernels/device/score_counts_bins.h"

namespace {

constexpr int THREADS = AT_COUNTS_BLOCK, WARPS = THREADS / 32, CHANNELS_OUT = 4; /* of a lane, 32 apart */
constexpr int MULTIPROCESSORS = 132;
constexpr int64_t SHARED = 225 * 1024; /* dynamic; 2 KiB have names */

/* Groups of a block; of kernels with long filters or more than scores one, which then has more registers. */
template <int TAPS, bool FULL> constexpr int GROUPS_OF = TAPS == 3 && !FULL ? 2 : 1;

/* What the threads of a tile join at its end: sums of 32 bits, then of every stage the largest and the first. */
enum {
    ELEMENT_ZERO,
    TILE_ZERO,
    PAIRS,
    OUTPUTS,
    ZERO,
    MOST = ZERO + AT_COUNTS_STAGES,
    FIRST = MOST + AT_COUNTS_STAGES,
    WORDS = FIRST + AT_COUNTS_STAGES
};

/* What stands in shared memory beside that of a group's tile. */
struct group_fields {
    uint32_t mass[2 * AT_COUNTS_DISTANCES], n_again;
    at_counts_rare rare;
};

/* And of the block. */
struct block_fields {
    at_counts_window window[AT_COUNTS_BINNED];
    double sigma, share, tap[AT_COUNTS_MAX_TAPS]; /* share: what the pool of a full window subtracts */
    uint32_t sample[2];
};

/* Of a group: scores lie where q and k lay. */
struct group_memory {
    double *q, *k;   /* [32 STAGE_STEP] channels of the tiles */
    double *scores;  /* [64 ROW_STEP] raw; at the end the warps' sums */
    double *halo;    /* [2 64 taps - 1] raw scores of the last keys of the tile before and of this one, in turn */
    double *weights; /* [64 ROW_STEP] p, 0 where the key is hidden; of kernels with rows and outputs alone */
    uint16_t *again; /* [4096] pairs to be summed with care: query * 64 + key */

    static constexpr int STAGE = 2 * AT_COUNTS_CHANNELS * AT_COUNTS_STAGE_STEP,
                         TILE = AT_COUNTS_TILE * AT_COUNTS_ROW_STEP, AGAIN = AT_COUNTS_TILE * AT_COUNTS_KEYS / 4;
    static_assert(STAGE >= TILE && TILE >= WORDS * WARPS, "what lies in one place fits it");

    /* In doubles. */
    static __host__ __device__ int64_t size(int64_t taps, bool with_weights) {
        return STAGE + AGAIN + 2 * AT_COUNTS_TILE * (taps - 1) + (with_weights ? TILE : 0);
    }
    __device__ group_memory(double *base, int taps)
        : q(base), k(q + STAGE / 2), scores(base), halo(base + STAGE + AGAIN),
          weights(halo + 2 * AT_COUNTS_TILE * (taps - 1)), again(reinterpret_cast<uint16_t *>(base + STAGE)) {}
};

/* 256 threads with a tile of queries. A thread counts the scores of one query and 16 keys of every tile: a page. */
template <class T, int TAPS, bool FULL> struct group {
    const at_counts_view<T> &a;
    const group_memory &m;
    const block_fields &b;
    const at_counts_bins &bins;
    group_fields &f;
    const int head, kv_head, tile, first, number, thread, row, page, query,
        n; /* n: keys that the thread's query sees */
    at_counts_tally tally[AT_COUNTS_STAGES];
    uint32_t element_zero = 0, pairs = 0;
    uint64_t mass = 0; /* of bin mass_bin, not given to the group yet */
    int mass_bin = 0;
    double most, sum = 0, terms = 0, weight0 = 0; /* of the row: most of this thread's keys, the rest of page 0 only */
    bool has_nan = false;
    double o[FULL ? 8 : 1][CHANNELS_OUT];

    __device__ group(const at_counts_view<T> &view, const group_memory &memory, const block_fields &block,
                     const at_counts_bins &counts, group_fields &fields, int of_block, int of_head)
        : a(view), m(memory), b(block), bins(counts), f(fields), head((int)blockIdx.x),
          kv_head(head / (view.h / view.hk)), tile(of_head), first(tile * AT_COUNTS_TILE), number(of_block),
          thread((int)threadIdx.x % THREADS), row(thread % AT_COUNTS_TILE), page(thread / AT_COUNTS_TILE),
          query(first + row), n(query < view.queries ? view.visible(query) : 0),
          most(-at_plain_from_bits(0x7ff0000000000000)) {
        for (int r = 0; r < (FULL ? 8 : 1); r++)
            for (int j = 0; j < CHANNELS_OUT; j++)
                o[r][j] = 0;
    }

    __device__ bool wants(int stage) const {
        return a.wants(stage == AT_COUNTS_STAGES - 1 ? AT_COUNTS_OF_OUT : AT_COUNTS_OF_RAW + stage);
    }
    __device__ bool wants_p() const { return a.wants(AT_COUNTS_OF_P); }
    __device__ void sync() const { at_barrier(1 + number, THREADS); }
    __device__ double gate_input(double s) const {
        if (((uint64_t)at_plain_bits(s) >> 52 & 0x7ff) == 0x7ff)
            return at_plain_from_bits(0x7ff8000000000000);
        return a.relu_pre && s < 0 ? 0.0 : s;
    }
    /* Raw score of a key of this tile or of its halo. */
    __device__ double dot(const double *halo, int k0, int t) const {
        return t >= k0 ? m.scores[row * AT_COUNTS_ROW_STEP + t - k0]
                       : halo[row * (a.n_taps - 1) + t - k0 + a.n_taps - 1];
    }
    __device__ double clamp(double z) const {
        if (z != z)
            return z;
        double x = z > 0 ? z : 0.0;
        x = x < a.clip_max ? x : a.clip_max;
        return x > a.clip_min ? x : a.clip_min;
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

template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::count_queries() {
    uint32_t *plane = a.plane(AT_COUNTS_OF_Q, head);
    for (int i = thread; plane && i < AT_COUNTS_TILE * a.d; i += THREADS)
        if (first + i / a.d < a.queries)
            a.count(plane, at_counts_value(a.query(first + i / a.d, head)[i % a.d]));
}

/* Eight channels of one of 64 rows, from c0 + 8 (thread / 64) on: zeros where there are none. */
template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void group<T, TAPS, FULL>::fetch(const T *rows, int64_t row_step, int first_row,
                                                            int rows_end, int c0, T (&x)[8]) const {
    const int c = c0 + page * 8;
    AT_UNROLL
    for (int j = 0; j < 8; j++)
        x[j] = T{};
    if (first_row + row < rows_end && c < a.d)
        at_counts_piece(rows + (int64_t)(first_row + row) * row_step, c, a.d, x);
}

template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void group<T, TAPS, FULL>::put(const T (&x)[8], double *to) const {
    AT_UNROLL
    for (int j = 0; j < 8; j++)
        to[(page * 8 + j) * AT_COUNTS_STAGE_STEP + row] = at_counts_value(x[j]);
}

/* Places of the thread's queries and keys: a warp has 16 by 32 of them, eight lanes along the keys. */
__device__ __forceinline__ int own_y(int thread) { return thread / 64 * 4 + thread % 32 / 8; }
__device__ __forceinline__ int own_x(int thread) { return thread / 32 % 2 * 8 + thread % 8; }

__device__ __forceinline__ void multiply_channels(const double *q, const double *k, int y, int x,
                                                  double (&sums)[4][4]) {
    AT_UNROLL
    for (int c = 0; c < AT_COUNTS_CHANNELS; c++) {
        double left[4], right[4], two[2];
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            at_load16(q + c * AT_COUNTS_STAGE_STEP + half * 32 + 2 * y, two);
            left[2 * half] = two[0], left[2 * half + 1] = two[1];
            at_load16(k + c * AT_COUNTS_STAGE_STEP + half * 32 + 2 * x, two);
            right[2 * half] = two[0], right[2 * half + 1] = two[1];
        }
        AT_UNROLL
        for (int i = 0; i < 4; i++) {
            AT_UNROLL
            for (int j = 0; j < 4; j++)
                sums[i][j] = fma(left[i], right[j], sums[i][j]);
        }
    }
}

template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::multiply(int k0, bool sweep) {
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
        multiply_channels(m.q, m.k, own_y(thread), own_x(thread), sums);
    }
    sync(); /* q and k become scores */
    store_scores(k0, sums);
    sync();
}

template <class T, int TAPS, bool FULL>
__device__ void group<T, TAPS, FULL>::store_scores(int k0, const double (&sums)[4][4]) {
    int spans[4];
    AT_UNROLL
    for (int j = 0; j < 4; j++) {
        const int t = k0 + at_counts_own(own_x(thread), j);
        spans[j] = t < a.keys ? a.k_span[(int64_t)kv_head * a.keys + t] : 0;
    }
    AT_UNROLL
    for (int i = 0; i < 4; i++) {
        const int own = at_counts_own(own_y(thread), i), there = first + own < a.queries;
        const int seen = there ? a.visible(first + own) - k0 : 0;
        const int left = AT_COUNTS_EXACT_SPAN - (there ? a.q_span[(int64_t)head * a.queries + first + own] : 0);
        AT_UNROLL
        for (int j = 0; j < 4; j++) {
            const int t = at_counts_own(own_x(thread), j);
            m.scores[own * AT_COUNTS_ROW_STEP + t] = sums[i][j];
            if (spans[j] > left && t < seen)
                m.again[at_atomic_add(&f.n_again, 1u)] = (uint16_t)(own * AT_COUNTS_KEYS + t);
        }
    }
}

template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::repeat(int k0) {
    const int count = (int)f.n_again;
    for (int i = thread; i < count; i += THREADS) {
        const int own = m.again[i] / AT_COUNTS_KEYS, t = m.again[i] % AT_COUNTS_KEYS;
        const int spans =
            a.q_span[(int64_t)head * a.queries + first + own] + a.k_span[(int64_t)kv_head * a.keys + k0 + t];
        m.scores[own * AT_COUNTS_ROW_STEP + t] = at_counts_compensated(
            a.query(first + own, head), a.k + a.key(k0 + t, kv_head), a.d, spans < AT_COUNTS_NOT_FINITE);
    }
    if (count)
        sync();
}

/* ---- counting ---- */

template <class T, int TAPS, bool FULL>
__device__ double group<T, TAPS, FULL>::filter(const double *halo, int k0, int t, double r0, double r1,
                                               double r2) const {
    double z = 0.0;
    if (TAPS == 3) { /* keys before the first are 0 and add nothing */
        z += a.pooled ? r0 : b.tap[0] * r0;
        z += a.pooled ? r1 : b.tap[1] * r1;
        z += a.pooled ? r2 : b.tap[2] * r2;
    } else {
        AT_NO_UNROLL
        for (int j = 0; j < a.n_taps && j <= t; j++) {
            const double r = j ? gate_input(a.scale * dot(halo, k0, t - j)) : r0;
            z += a.pooled ? r : b.tap[j] * r;
        }
    }
    if (!a.pooled)
        return z;
    return r0 - (a.shrink && t + 1 < a.n_taps ? b.sigma / (double)(t + 1) : b.share) * z;
}

template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::give_mass() {
    if (mass)
        at_counts_add(&f.mass[mass_bin], &f.mass[AT_COUNTS_DISTANCES + mass_bin], mass);
    mass = 0;
}

template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::add_mass(int bin, double weight) {
    if (bin != mass_bin)
        give_mass();
    mass_bin = bin;
    mass += at_counts_mass(weight);
}

/* The bin of all distances of the page, -1 when they have several. */
template <class T, int TAPS, bool FULL> __device__ int group<T, TAPS, FULL>::page_distance(int begin, int seen) const {
    const int most = a.here + query - begin, least = most - (seen - 1);
    const int bin = at_counts_distance(most);
    return (least < 0) == (most < 0) && bin == at_counts_distance(least) ? bin : -1;
}

/* Keys j to j + 3 of the thread's page behind the scale; `seen` of them count. bin: page_distance(). */
template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void group<T, TAPS, FULL>::filter_four(const double *halo, double *next, int k0, int j,
                                                                  int seen, const double (&x)[4], const double (&s)[4],
                                                                  double &r1, double &r2, int bin, uint32_t &live) {
    const int in_tile = page * AT_COUNTS_PAGE + j, t = k0 + in_tile, reach = a.n_taps - 1;
    double z[4], weight[4];
    AT_UNROLL
    for (int i = 0; i < 4; i++) {
        const double r0 = gate_input(s[i]);
        z[i] = filter(halo, k0, t + i, r0, r1, r2);
        weight[i] = clamp(z[i]);
        r2 = r1;
        r1 = r0;
        if (i < seen && weight[i] != 0)
            live |= 1u << (j + i);
        if (in_tile + i >= AT_COUNTS_KEYS - reach)
            next[row * reach + in_tile + i - (AT_COUNTS_KEYS - reach)] = x[i];
    }
    if (wants(2))
        at_counts_see_four(a, bins, 2, head, z, seen, query, t, tally[2], f.rare.field[2]);
    if (wants(3)) {
        at_counts_see_four(a, bins, 3, head, weight, seen, query, t, tally[3], f.rare.field[3]);
        AT_UNROLL
        for (int i = 0; i < 4; i++)
            if (live >> (j + i) & 1)
                add_mass(bin >= 0 ? bin : at_counts_distance(a.here + query - t - i), weight[i]);
    }
    AT_UNROLL
    for (int i = 0; FULL && i < 4; i++)
        if (i < seen) {
            m.weights[row * AT_COUNTS_ROW_STEP + in_tile + i] = weight[i];
            most = s[i] > most ? s[i] : most;
            has_nan = has_nan || s[i] != s[i];
        }
}

/* The page's scores, raw and scaled, its z and p; `next` gets the raw scores that the next tile needs. */
template <class T, int TAPS, bool FULL>
__device__ void group<T, TAPS, FULL>::count_page(const double *halo, double *next, int k0) {
    const int begin = k0 + page * AT_COUNTS_PAGE;
    const double *own = m.scores + row * AT_COUNTS_ROW_STEP + page * AT_COUNTS_PAGE;
    double r1 = 0, r2 = 0;
    uint32_t live = 0;
    for (int j = FULL && n > begin ? n - begin : 0; FULL && j < AT_COUNTS_PAGE; j++)
        m.weights[row * AT_COUNTS_ROW_STEP + page * AT_COUNTS_PAGE + j] = 0;
    if (begin >= n)
        return;
    if (TAPS == 3 && begin > 0) {
        r1 = gate_input(a.scale * dot(halo, k0, begin - 1));
        r2 = gate_input(a.scale * dot(halo, k0, begin - 2));
    }
    const int seen = n - begin < AT_COUNTS_PAGE ? n - begin : AT_COUNTS_PAGE;
    const int bin = wants_p() ? page_distance(begin, seen) : 0;
    AT_NO_UNROLL
    for (int j = 0; j < seen; j += 4) {
        double x[4], s[4];
        AT_UNROLL
        for (int i = 0; i < 4; i++) {
            x[i] = own[j + i];
            s[i] = a.scale * x[i];
        }
        if (wants(0))
            at_counts_see_four(a, bins, 0, head, x, seen - j, query, begin + j, tally[0], f.rare.field[0]);
        if (wants(1))
            at_counts_see_four(a, bins, 1, head, s, seen - j, query, begin + j, tally[1], f.rare.field[1]);
        if (FULL || wants(2) || wants(3))
            filter_four(halo, next, k0, j, seen - j, x, s, r1, r2, bin, live);
    }
    pairs += (uint32_t)seen;
    if (!wants_p())
        return;
    element_zero += (uint32_t)(seen - at_count_ones(live));
    a.live_row(head, query)[begin / AT_COUNTS_PAGE] = (uint16_t)live;
}

/* ---- rows and outputs, in order ---- */

/* A warp has 8 queries, a lane the channels lane, lane + 32, ...; the products of p that is 0 are left out. */
template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::weigh_values(int k0, int end) {
    constexpr int AT_ONCE = 4; /* keys whose values are on their way together */
    const int own = thread / 32 * 8, lane = at_lane();
    const double gamma = (double)a.gamma[head];
    for (int t0 = 0; t0 < AT_COUNTS_KEYS && k0 + t0 < end; t0 += AT_ONCE) {
        T v[AT_ONCE][CHANNELS_OUT];
        AT_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            AT_UNROLL
            for (int j = 0; j < CHANNELS_OUT; j++)
                v[u][j] =
                    k0 + t0 + u < end && lane + 32 * j < a.d ? a.v[a.key(k0 + t0 + u, kv_head) + lane + 32 * j] : T{};
        }
        AT_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            AT_UNROLL
            for (int r = 0; r < 8; r++) {
                const double weight = m.weights[(own + r) * AT_COUNTS_ROW_STEP + t0 + u];
                if (weight != 0) {
                    AT_UNROLL
                    for (int j = 0; j < CHANNELS_OUT; j++)
                        o[FULL ? r : 0][j] += (gamma * weight) * at_counts_value(v[u][j]);
                }
            }
        }
    }
}

/* Sums in order by the threads of page 0; then p log2 p takes the place of p. */
template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::weigh(int k0, int end) {
    double *mine = m.weights + row * AT_COUNTS_ROW_STEP, *own = mine + page * AT_COUNTS_PAGE;
    sync(); /* every p stands there */
    if (page == 0) {
        weight0 = k0 == 0 ? mine[0] : weight0;
        for (int t = 0; t < AT_COUNTS_KEYS; t++)
            sum += mine[t]; /* 0 adds nothing */
    }
    if (a.wants(AT_COUNTS_OF_OUT))
        weigh_values(k0, end);
    if (!a.wants(AT_COUNTS_OF_ENTROPY) && !a.wants(AT_COUNTS_OF_SUPPORT))
        return;
    sync(); /* and has been read */
    for (int j = 0; j < AT_COUNTS_PAGE; j++)
        own[j] = own[j] == 0 ? 0.0 : own[j] * at_plain_log2(own[j]);
    sync();
    for (int t = 0; page == 0 && t < AT_COUNTS_KEYS; t++)
        terms += mine[t];
}

/* Thread of page 0; the other pages' largest scores come through memory that is free. */
template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::statistics() {
    const double nan = at_plain_from_bits(0x7ff8000000000000);
    sync();
    m.weights[row * AT_COUNTS_ROW_STEP + page] = has_nan ? nan : most;
    sync();
    if (page > 0 || n == 0)
        return;
    for (int i = 1; i < 4; i++) {
        const double other = m.weights[row * AT_COUNTS_ROW_STEP + i];
        has_nan = has_nan || other != other;
        most = other > most ? other : most;
    }
    a.count(a.plane(AT_COUNTS_OF_ROW_MAX, head), has_nan ? nan : most);
    a.count(a.plane(AT_COUNTS_OF_ROW_SUM, head), sum);
    if (sum == 0)
        return;
    a.count(a.plane(AT_COUNTS_OF_SHARE0, head), weight0 / sum);
    double entropy = at_plain_log2(sum) - terms / sum;
    entropy = entropy < 0 ? 0.0 : entropy;
    a.count(a.plane(AT_COUNTS_OF_ENTROPY, head), entropy);
    a.count(a.plane(AT_COUNTS_OF_SUPPORT, head), at_plain_exp2(entropy));
}

/* Gives the number that this thread counted. */
template <class T, int TAPS, bool FULL> __device__ uint32_t group<T, TAPS, FULL>::outputs() {
    const int own = first + thread / 32 * 8, lane = at_lane();
    uint32_t *plane = a.plane(AT_COUNTS_OF_OUT, head), count = 0;
    if (!a.wants(AT_COUNTS_OF_OUT))
        return 0;
    AT_UNROLL
    for (int r = 0; r < (FULL ? 8 : 0); r++) {
        AT_UNROLL
        for (int j = 0; j < CHANNELS_OUT; j++)
            if (own + r < a.queries && lane + 32 * j < a.d) {
                at_counts_see_one(a, plane, o[r][j], own + r, -1, (uint32_t)(own + r), tally[4], f.rare.field[4]);
                count++;
            }
    }
    return count;
}

/* ---- the end ---- */

/* Pages of the tile without p; the last row sees most. */
template <class T, int TAPS, bool FULL> __device__ uint32_t group<T, TAPS, FULL>::dead_pages() const {
    const int last = first + AT_COUNTS_TILE < a.queries ? first + AT_COUNTS_TILE - 1 : a.queries - 1;
    const int pages = (a.visible(last) + AT_COUNTS_PAGE - 1) / AT_COUNTS_PAGE;
    uint32_t dead = 0;
    for (int i = thread; wants_p() && i < pages; i += THREADS) {
        uint32_t live = 0;
        for (int own = first; own <= last; own++)
            if (i * AT_COUNTS_PAGE < a.visible(own))
                live |= a.live_row(head, own)[i];
        dead += live == 0;
    }
    return dead;
}

/* A warp's words joined as word `word` of a tile. */
__device__ inline uint64_t join_warp(int word, uint64_t mine) {
    for (int step = 16; step > 0; step /= 2) {
        const uint32_t low = at_shuffle_xor(0xffffffffu, (uint32_t)mine, step),
                       high = at_shuffle_xor(0xffffffffu, (uint32_t)(mine >> 32), step);
        mine = at_counts_join(word, mine, (uint64_t)high << 32 | low);
    }
    return mine;
}

/* How word i of those above is joined, as a word of a tile. */
__device__ inline int kind(int i) {
    return i < MOST ? 0 : AT_COUNTS_W_LEDGER + (i < FIRST ? AT_COUNTS_W_MOST : AT_COUNTS_W_FIRST);
}

/* The tile's words, all of its threads together, and zeros to their slots. count: outputs that this thread counted. */
template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::close(uint32_t count) {
    uint64_t *joined = reinterpret_cast<uint64_t *>(m.scores); /* [WORDS][WARPS] */
    sync();                                                    /* every bit of p and every score has been read */
    uint64_t mine[WORDS] = { wants_p() ? element_zero : 0, dead_pages(), pairs, count };
    AT_UNROLL
    for (int s = 0; s < AT_COUNTS_STAGES; s++) {
        const uint64_t of_row = s < AT_COUNTS_STAGES - 1 ? at_counts_place(query, (int)tally[s].first - 1)
                                                         : at_counts_place((int)tally[s].first, -1);
        mine[ZERO + s] = tally[s].zero;
        mine[MOST + s] = tally[s].most;
        mine[FIRST + s] = tally[s].first == 0xffffffffu ? AT_COUNTS_NOWHERE : of_row;
    }
    AT_UNROLL
    for (int i = 0; i < WORDS; i++) {
        const uint64_t word = join_warp(kind(i), mine[i]);
        if (at_lane() == 0)
            joined[i * WARPS + thread / 32] = word;
    }
    sync();
    store_words(joined);
}

template <class T, int TAPS, bool FULL> __device__ void group<T, TAPS, FULL>::store_words(const uint64_t *joined) {
    uint64_t *words = a.words + (int64_t)(head * a.tiles + tile) * AT_COUNTS_WORDS;
    if (thread < AT_COUNTS_DISTANCES) {
        words[AT_COUNTS_W_MASS + thread] = (uint64_t)f.mass[AT_COUNTS_DISTANCES + thread] << 32 | f.mass[thread];
        f.mass[thread] = f.mass[AT_COUNTS_DISTANCES + thread] = 0;
    }
    if (thread >= WORDS)
        return;
    const int s = (thread - ZERO) % AT_COUNTS_STAGES, stage = AT_COUNTS_W_LEDGER + s * AT_COUNTS_W_STAGE;
    uint64_t x = joined[thread * WARPS];
    for (int w = 1; w < WARPS; w++)
        x = at_counts_join(kind(thread), x, joined[thread * WARPS + w]);
    if (thread >= MOST) {
        words[stage + (thread < FIRST ? AT_COUNTS_W_MOST : AT_COUNTS_W_FIRST)] = x;
    } else if (thread >= ZERO) {
        uint32_t *field = f.rare.field[s], *plane = a.plane(s < 4 ? AT_COUNTS_OF_RAW + s : AT_COUNTS_OF_OUT, head);
        for (int j = AT_COUNTS_COUNT + 1; j < AT_COUNTS_W_MOST; j++) {
            words[stage + j] = field[j] + (j == AT_COUNTS_ZERO ? x : 0);
            field[j] = 0;
        }
        if (plane && x)
            at_atomic_add(plane + a.codes.infinity + 1, (uint32_t)x);
    } else if (thread < PAIRS) {
        words[thread == ELEMENT_ZERO ? AT_COUNTS_W_ELEMENT_ZERO : AT_COUNTS_W_TILE_ZERO] = x;
    } else {
        for (int i = 0; i < AT_COUNTS_STAGES; i++)
            if ((i == AT_COUNTS_STAGES - 1) == (thread == OUTPUTS))
                words[AT_COUNTS_W_LEDGER + i * AT_COUNTS_W_STAGE + AT_COUNTS_COUNT] = wants(i) ? x : 0;
    }
}

/* A tile of queries, whole. steps: tiles of scores that the group has counted since it swept; gives that number. */
template <class T, int TAPS, bool FULL> __device__ int group<T, TAPS, FULL>::work(int steps) {
    const int last = first + AT_COUNTS_TILE < a.queries ? first + AT_COUNTS_TILE - 1 : a.queries - 1;
    const int end = a.visible(last), reach = AT_COUNTS_TILE * (a.n_taps - 1);
    constexpr int SWEEP = AT_COUNTS_SWEEP<GROUPS_OF<TAPS, FULL>>;
    count_queries();
    for (int k0 = 0, turn = 0; k0 < end; k0 += AT_COUNTS_KEYS, turn = 1 - turn) {
        multiply(k0, steps == SWEEP);
        steps = steps == SWEEP ? 1 : steps + 1;
        repeat(k0);
        count_page(m.halo + turn * reach, m.halo + (1 - turn) * reach, k0);
        if (FULL)
            weigh(k0, end);
    }
    give_mass();
    if (FULL)
        statistics();
    close(FULL ? outputs() : 0);
    return steps;
}

template <class T, int TAPS, bool FULL>
__global__ void __launch_bounds__(THREADS *GROUPS_OF<TAPS, FULL>, 1)
    shared_counts(at_counts_view<T> a, int codes, int words) {
    constexpr int GROUPS = GROUPS_OF<TAPS, FULL>, ALL = GROUPS * THREADS;
    AT_SHARED_DYNAMIC(double, dynamic);
    AT_SHARED(group_fields[GROUPS], fields);
    AT_SHARED(block_fields, block);
    const int head = (int)blockIdx.x, thread = (int)threadIdx.x, number = thread / THREADS;
    const int64_t size = group_memory::size(a.n_taps, FULL);
    const at_counts_bins bins{ reinterpret_cast<uint32_t *>(dynamic + GROUPS * size), block.window, codes };
    for (int i = thread; i < words; i += ALL)
        bins.words[i] = 0;
    for (int i = thread; i < GROUPS * 2 * AT_COUNTS_DISTANCES; i += ALL)
        fields[i / (2 * AT_COUNTS_DISTANCES)].mass[i % (2 * AT_COUNTS_DISTANCES)] = 0;
    for (int i = thread; i < GROUPS * AT_COUNTS_STAGES * AT_COUNTS_W_MOST; i += ALL)
        fields[i % GROUPS].rare.field[i / GROUPS / AT_COUNTS_W_MOST][i / GROUPS % AT_COUNTS_W_MOST] = 0;
    if (thread < 2)
        block.sample[thread] = 0;
    if (thread < a.n_taps)
        block.tap[thread] = (double)a.taps[head * a.n_taps + thread];
    if (thread == 0) {
        block.sigma = (double)a.sigma[head];
        block.share = (double)a.sigma[head] / (double)a.n_taps;
    }
    at_sync();
    at_counts_sample(a, head, head / (a.h / a.hk), block.sample);
    at_sync();
    if (thread == 0)
        at_counts_place_windows(a, bins, block.sample);
    at_sync();
    const int groups = (int)gridDim.y * GROUPS, mine = (int)blockIdx.y * GROUPS + number;
    const group_memory memory(dynamic + number * size, a.n_taps);
    int steps = 0;
    for (int round = 0; round * groups < a.tiles; round++) { /* to and fro, the longest tiles first */
        const int i = round * groups + (round % 2 ? groups - 1 - mine : mine);
        if (i < a.tiles)
            steps = group<T, TAPS, FULL>(a, memory, block, bins, fields[number], number, a.tiles - 1 - i).work(steps);
    }
    at_sync(); /* every score is counted */
    at_counts_give_bins(a, bins, head);
}

constexpr int ROWS = 1 << AT_COUNTS_OF_OUT | 1 << AT_COUNTS_OF_ROW_MAX | 1 << AT_COUNTS_OF_ROW_SUM |
                     1 << AT_COUNTS_OF_ENTROPY | 1 << AT_COUNTS_OF_SUPPORT | 1 << AT_COUNTS_OF_SHARE0;

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "queries and keys are f16 or bf16";
    if (problem->params.softmax)
        return "softmax needs a row's maximum first";
    if (problem->params.what >> AT_COUNTS_OF_OUT & 1 && problem->sizes.d > 32 * CHANNELS_OUT)
        return "outputs of more than 128 channels";
    return at_counts_declines(problem);
}

template <class T, int TAPS, bool FULL> int put(const struct at_launch *launch, const at_counts_view<T> &a) {
    constexpr int GROUPS = GROUPS_OF<TAPS, FULL>;
    const int64_t rows = (int64_t)a.h * a.queries + (int64_t)a.hk * a.keys;
    const int code = at_launch(at_counts_norm_spans<T>, dim3{ (unsigned)((rows + THREADS - 1) / THREADS), 1, 1 },
                               dim3{ THREADS, 1, 1 }, 0, launch->stream, a);
    if (code)
        return code;
    int counted = 0;
    for (int i = 0; i < AT_COUNTS_BINNED; i++)
        counted += a.what >> (AT_COUNTS_OF_RAW + i) & 1;
    const int64_t tiles = GROUPS * group_memory::size(a.n_taps, FULL) * (int64_t)sizeof(double);
    const int codes = at_counts_bins::codes_of(SHARED - tiles, counted, a.codes.shift), words = counted * (codes + 1);
    const int blocks = MULTIPROCESSORS / a.h, most = (a.tiles + GROUPS - 1) / GROUPS;
    return at_launch(shared_counts<T, TAPS, FULL>,
                     dim3{ (unsigned)a.h,
                           (unsigned)(blocks < 1      ? 1
                                      : blocks < most ? blocks
                                                      : most),
                           1 },
                     dim3{ GROUPS * THREADS, 1, 1 }, tiles + words * (int64_t)sizeof(uint32_t), launch->stream, a,
                     codes, words);
}

template <class T> int launch_as(const struct at_launch *launch) {
    return at_counts_launch<T>(launch, [launch](const at_counts_view<T> &a) {
        const bool full = a.what & ROWS;
        if (a.n_taps == 3)
            return full ? put<T, 3, true>(launch, a) : put<T, 3, false>(launch, a);
        return full ? put<T, 0, true>(launch, a) : put<T, 0, false>(launch, a);
    });
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_F16 ? launch_as<at_f16>(launch) : launch_as<at_bf16>(launch);
}

int64_t workspace(const struct at_problem *problem) { return at_counts_view<float>::workspace(problem); }

} // namespace

AT_KERNEL(score_counts, 03_shared_counts) = {
    .summary = "counts in shared memory, in windows of codes, by blocks that stay for a head",
    .source = "ours",
    .numerics = AT_COUNTS_NUMERICS,
    .supports = supports,
    .workspace = workspace,
    .launch = launch,
};
