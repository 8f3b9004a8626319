/* Counting scores: tiles of 64 queries by 64 keys, products of doubles in registers, sums compensated only where they
 * would not be exact.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the definition (reference/score_counts/score_counts.h). Pairs whose spans allow it by fma, which rounds
 * nothing there; the others one by one. The FIR runs along the keys in registers, over the tile's edge by a halo of raw
 * scores; sums of rows and outputs in order, tile by tile. +0 is counted by threads and added once.
 * Launch: grid (query heads, tiles of 64 queries, longest first), 256 threads; 70 KiB of shared memory, more for more
 * than three taps.
 * Limits: f16 or bf16; asynct; with outputs d at most 128.
 * Source: ours. */
#include "kernels/score_counts/score_counts_tile.h"

namespace {

constexpr int THREADS = AT_COUNTS_BLOCK;

/* A block. A thread counts the scores of one query and 16 keys of every tile: a page. */
template <class T, int TAPS, bool FULL> struct block {
    const at_counts_view<T> &a;
    const at_counts_memory &m;
    const int head, kv_head, tile, first, row, page, query, n; /* n: keys that the thread's query sees */
    const float *taps;
    const double sigma, share; /* share: what the pool of a full window subtracts */
    uint32_t *raw, *scaled, *fir, *p, *out;
    at_counts_light light[AT_COUNTS_STAGES];
    uint32_t element_zero = 0, pairs = 0;
    uint64_t mass = 0; /* of bin mass_bin, not given to the block yet */
    int mass_bin = 0;
    double most, sum = 0, terms = 0, weight0 = 0; /* of the row: most of this thread's keys, the rest of page 0 only */
    bool has_nan = false;
    double o[FULL ? 8 : 1][AT_COUNTS_CHANNELS_OUT];

    __device__ block(const at_counts_view<T> &view, const at_counts_memory &shared)
        : a(view), m(shared), head((int)blockIdx.x), kv_head(head / (view.h / view.hk)),
          tile((int)(gridDim.y - 1 - blockIdx.y)), first(tile * AT_COUNTS_TILE), row((int)threadIdx.x % AT_COUNTS_TILE),
          page((int)threadIdx.x / AT_COUNTS_TILE), query(first + row),
          n(query < view.queries ? view.visible(query) : 0), taps(view.taps + head * view.n_taps),
          sigma((double)view.sigma[head]), share(sigma / (double)view.n_taps), raw(view.plane(AT_COUNTS_OF_RAW, head)),
          scaled(view.plane(AT_COUNTS_OF_SCALED, head)), fir(view.plane(AT_COUNTS_OF_FIR, head)),
          p(view.plane(AT_COUNTS_OF_P, head)), out(view.plane(AT_COUNTS_OF_OUT, head)),
          most(-at_plain_from_bits(0x7ff0000000000000)) {
        for (int r = 0; r < (FULL ? 8 : 1); r++)
            for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j++)
                o[r][j] = 0;
    }

    __device__ double gate_input(double dot) const { return a.gate_input(a.scale * dot); }
    /* Raw score of a key of this tile or of its halo. */
    __device__ double dot(const double *halo, int k0, int t) const {
        return t >= k0 ? m.scores[row * AT_COUNTS_ROW_STEP + t - k0]
                       : halo[row * (a.n_taps - 1) + t - k0 + a.n_taps - 1];
    }
    __device__ void count_queries();
    __device__ void multiply(int k0);
    __device__ void repeat(int k0);
    __device__ double filter(const double *halo, int k0, int t, double r0, double r1, double r2) const;
    __device__ void count_page(const double *halo, double *next, int k0);
    __device__ void add_mass(int t, double weight);
    __device__ void give_mass();
    __device__ void weigh(int k0, int end);
    __device__ void weigh_values(int k0, int end);
    __device__ void statistics();
    __device__ uint32_t outputs();
    __device__ uint32_t dead_pages() const;
    __device__ void give_zeros();
};

/* ---- products ---- */

template <class T, int TAPS, bool FULL> __device__ void block<T, TAPS, FULL>::count_queries() {
    uint32_t *plane = a.plane(AT_COUNTS_OF_Q, head);
    for (int i = (int)threadIdx.x; plane && i < AT_COUNTS_TILE * a.d; i += THREADS)
        if (first + i / a.d < a.queries)
            a.count(plane, at_counts_value(a.query(first + i / a.d, head)[i % a.d]));
}

template <class T, int TAPS, bool FULL> __device__ void block<T, TAPS, FULL>::multiply(int k0) {
    const int y = (int)threadIdx.x / 16, x = (int)threadIdx.x % 16, exact = at_counts_exact_span(a.d);
    double sums[4][4] = {};
    for (int c = 0; c < a.d; c += AT_COUNTS_CHANNELS) {
        at_sync(); /* what lay there has been read */
        at_counts_load(a.q + head * a.d, (int64_t)a.h * a.d, first, a.queries, a.d, c, m.q);
        at_counts_load(a.k + kv_head * a.d, (int64_t)a.hk * a.d, k0, a.keys, a.d, c, m.k);
        if (threadIdx.x == 0)
            *m.n_again = 0;
        at_sync();
        at_counts_multiply(m.q, m.k, y, x, sums);
    }
    at_sync(); /* q and k become the list */
    int spans[4];
    AT_UNROLL
    for (int j = 0; j < 4; j++) {
        const int t = k0 + at_counts_own(x, j);
        spans[j] = t < a.keys ? a.k_span[(int64_t)kv_head * a.keys + t] : 0;
    }
    AT_UNROLL
    for (int i = 0; i < 4; i++) {
        const int own = at_counts_own(y, i), there = first + own < a.queries;
        const int seen = there ? a.visible(first + own) - k0 : 0;
        const int left = exact - (there ? a.q_span[(int64_t)head * a.queries + first + own] : 0);
        AT_UNROLL
        for (int j = 0; j < 4; j++) {
            const int t = at_counts_own(x, j);
            m.scores[own * AT_COUNTS_ROW_STEP + t] = sums[i][j];
            if (spans[j] > left && t < seen)
                m.again[at_atomic_add(m.n_again, 1u)] = (uint16_t)(own * AT_COUNTS_KEYS + t);
        }
    }
    at_sync();
}

template <class T, int TAPS, bool FULL> __device__ void block<T, TAPS, FULL>::repeat(int k0) {
    const int count = (int)*m.n_again;
    for (int i = (int)threadIdx.x; i < count; i += THREADS)
        at_counts_sum_again(a, head, kv_head, first, k0, m.again[i], m.scores);
    if (count)
        at_sync();
}

/* ---- counting ---- */

template <class T, int TAPS, bool FULL>
__device__ double block<T, TAPS, FULL>::filter(const double *halo, int k0, int t, double r0, double r1,
                                               double r2) const {
    double z = 0.0;
    if (TAPS == 3) { /* keys before the first are 0 and add nothing */
        z += a.pooled ? r0 : (double)taps[0] * r0;
        z += a.pooled ? r1 : (double)taps[1] * r1;
        z += a.pooled ? r2 : (double)taps[2] * r2;
    } else {
        for (int j = 0; j < a.n_taps && j <= t; j++) {
            const double r = j ? gate_input(dot(halo, k0, t - j)) : r0;
            z += a.pooled ? r : (double)taps[j] * r;
        }
    }
    if (!a.pooled)
        return z;
    return r0 - (a.shrink && t + 1 < a.n_taps ? sigma / (double)(t + 1) : share) * z;
}

template <class T, int TAPS, bool FULL> __device__ void block<T, TAPS, FULL>::give_mass() {
    if (mass)
        at_counts_add(&m.mass[mass_bin], &m.mass[AT_COUNTS_DISTANCES + mass_bin], mass);
    mass = 0;
}

template <class T, int TAPS, bool FULL> __device__ void block<T, TAPS, FULL>::add_mass(int t, double weight) {
    const int bin = at_counts_distance(a.here + query - t);
    if (bin != mass_bin)
        give_mass();
    mass_bin = bin;
    mass += at_counts_mass(weight);
}

/* The page's scores, raw and scaled, its z and p; `next` gets the raw scores that the next tile needs. */
template <class T, int TAPS, bool FULL>
__device__ void block<T, TAPS, FULL>::count_page(const double *halo, double *next, int k0) {
    const int begin = k0 + page * AT_COUNTS_PAGE, reach = a.n_taps - 1;
    double r1 = 0, r2 = 0;
    uint32_t live = 0;
    double *weights = m.weights + row * AT_COUNTS_ROW_STEP + page * AT_COUNTS_PAGE;
    for (int j = FULL && n > begin ? n - begin : 0; FULL && j < AT_COUNTS_PAGE; j++)
        weights[j] = 0;
    if (begin >= n)
        return;
    if (TAPS == 3 && begin > 0) {
        r1 = gate_input(dot(halo, k0, begin - 1));
        r2 = gate_input(dot(halo, k0, begin - 2));
    }
    const int seen = n - begin < AT_COUNTS_PAGE ? n - begin : AT_COUNTS_PAGE;
    AT_NO_UNROLL
    for (int j = 0; j < seen; j++) {
        const int t = begin + j;
        const double x = m.scores[row * AT_COUNTS_ROW_STEP + t - k0], s = a.scale * x, r0 = gate_input(x);
        const double z = filter(halo, k0, t, r0, r1, r2), weight = a.clamp(z);
        r2 = r1;
        r1 = r0;
        if (raw)
            at_counts_see(a, raw, x, query, t, light[0], m.rare->field[0]);
        if (scaled)
            at_counts_see(a, scaled, s, query, t, light[1], m.rare->field[1]);
        if (fir)
            at_counts_see(a, fir, z, query, t, light[2], m.rare->field[2]);
        if (p)
            at_counts_see(a, p, weight, query, t, light[3], m.rare->field[3]);
        if (weight != 0) {
            live |= 1u << j;
            if (p)
                add_mass(t, weight);
        }
        if (t - k0 >= AT_COUNTS_KEYS - reach)
            next[row * reach + t - k0 - (AT_COUNTS_KEYS - reach)] = x;
        if (FULL) {
            weights[j] = weight;
            most = s > most ? s : most;
            has_nan = has_nan || s != s;
        }
    }
    pairs += (uint32_t)seen;
    if (!p)
        return;
    element_zero += (uint32_t)(seen - at_count_ones(live));
    a.live_row(head, query)[begin / AT_COUNTS_PAGE] = (uint16_t)live;
}

/* ---- rows and outputs, in order ---- */

/* A warp has 8 queries, a lane the channels lane, lane + 32, ...; the products of p that is 0 are left out. */
template <class T, int TAPS, bool FULL> __device__ void block<T, TAPS, FULL>::weigh_values(int k0, int end) {
    const int own = (int)threadIdx.x / 32 * 8, lane = at_lane();
    const double gamma = (double)a.gamma[head];
    for (int t = 0; t < AT_COUNTS_KEYS && k0 + t < end; t++) {
        double v[AT_COUNTS_CHANNELS_OUT];
        AT_UNROLL
        for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j++)
            v[j] = lane + 32 * j < a.d ? at_counts_value(a.v[a.key(k0 + t, kv_head) + lane + 32 * j]) : 0.0;
        AT_UNROLL
        for (int r = 0; r < 8; r++) {
            const double weight = m.weights[(own + r) * AT_COUNTS_ROW_STEP + t];
            if (weight != 0) {
                AT_UNROLL
                for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j++)
                    o[FULL ? r : 0][j] += (gamma * weight) * v[j];
            }
        }
    }
}

/* Sums in order by the threads of page 0; then p log2 p takes the place of p. */
template <class T, int TAPS, bool FULL> __device__ void block<T, TAPS, FULL>::weigh(int k0, int end) {
    double *mine = m.weights + row * AT_COUNTS_ROW_STEP, *own = mine + page * AT_COUNTS_PAGE;
    at_sync(); /* every p stands there */
    if (page == 0) {
        weight0 = k0 == 0 ? mine[0] : weight0;
        for (int t = 0; t < AT_COUNTS_KEYS; t++)
            sum += mine[t]; /* 0 adds nothing */
    }
    if (out)
        weigh_values(k0, end);
    at_sync(); /* and has been read */
    if (!a.wants(AT_COUNTS_OF_ENTROPY) && !a.wants(AT_COUNTS_OF_SUPPORT))
        return;
    for (int j = 0; j < AT_COUNTS_PAGE; j++)
        own[j] = own[j] == 0 ? 0.0 : own[j] * at_plain_log2(own[j]);
    at_sync();
    for (int t = 0; page == 0 && t < AT_COUNTS_KEYS; t++)
        terms += mine[t];
}

/* Thread of page 0; the other pages' largest scores come through memory that is free. */
template <class T, int TAPS, bool FULL> __device__ void block<T, TAPS, FULL>::statistics() {
    double *of_pages = m.weights + row * AT_COUNTS_ROW_STEP;
    at_sync();
    of_pages[page] = has_nan ? at_plain_from_bits(0x7ff8000000000000) : most;
    at_sync();
    if (page == 0 && n > 0)
        a.count_row(head, at_counts_most_of_pages(of_pages), sum, weight0, terms);
}

/* Gives the number that this thread counted. */
template <class T, int TAPS, bool FULL> __device__ uint32_t block<T, TAPS, FULL>::outputs() {
    const int own = first + (int)threadIdx.x / 32 * 8, lane = at_lane();
    uint32_t count = 0;
    if (!out)
        return 0;
    AT_UNROLL
    for (int r = 0; r < (FULL ? 8 : 0); r++) {
        AT_UNROLL
        for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j++)
            if (own + r < a.queries && lane + 32 * j < a.d) {
                at_counts_see(a, out, o[r][j], own + r, -1, light[4], m.rare->field[4]);
                count++;
            }
    }
    return count;
}

/* ---- the end ---- */

/* Pages of the tile without p; the last row sees most. */
template <class T, int TAPS, bool FULL> __device__ uint32_t block<T, TAPS, FULL>::dead_pages() const {
    const int last = first + AT_COUNTS_TILE < a.queries ? first + AT_COUNTS_TILE - 1 : a.queries - 1;
    const int pages = (a.visible(last) + AT_COUNTS_PAGE - 1) / AT_COUNTS_PAGE;
    uint32_t dead = 0;
    for (int i = (int)threadIdx.x; p && i < pages; i += THREADS) {
        uint32_t live = 0;
        for (int own = first; own <= last; own++)
            if (i * AT_COUNTS_PAGE < a.visible(own))
                live |= a.live_row(head, own)[i];
        dead += live == 0;
    }
    return dead;
}

template <class T, int TAPS, bool FULL> __device__ void block<T, TAPS, FULL>::give_zeros() {
    uint32_t *const planes[AT_COUNTS_STAGES] = { raw, scaled, fir, p, out };
    AT_UNROLL
    for (int s = 0; s < AT_COUNTS_STAGES; s++)
        if (planes[s] && light[s].zero)
            at_atomic_add(planes[s] + a.codes.infinity + 1, light[s].zero);
}

template <class T, int TAPS, bool FULL>
__global__ void __launch_bounds__(THREADS, FULL ? 1 : 2) tiles(at_counts_view<T> a) {
    AT_SHARED_DYNAMIC(double, dynamic);
    AT_SHARED(uint32_t[2 * AT_COUNTS_DISTANCES], mass);
    AT_SHARED(uint32_t, n_again);
    AT_SHARED(at_counts_rare, rare);
    const at_counts_memory m(dynamic, a.n_taps, mass, &n_again, &rare);
    block<T, TAPS, FULL> x(a, m);
    const int last = x.first + AT_COUNTS_TILE < a.queries ? x.first + AT_COUNTS_TILE - 1 : a.queries - 1;
    const int end = a.visible(last);
    for (int i = (int)threadIdx.x; i < 2 * AT_COUNTS_DISTANCES; i += THREADS)
        mass[i] = 0;
    for (int i = (int)threadIdx.x; i < AT_COUNTS_STAGES * AT_COUNTS_W_MOST; i += THREADS)
        rare.field[i / AT_COUNTS_W_MOST][i % AT_COUNTS_W_MOST] = 0;
    x.count_queries();
    const int reach = AT_COUNTS_TILE * (a.n_taps - 1);
    for (int k0 = 0, turn = 0; k0 < end; k0 += AT_COUNTS_KEYS, turn = 1 - turn) {
        x.multiply(k0);
        x.repeat(k0);
        x.count_page(m.halo + turn * reach, m.halo + (1 - turn) * reach, k0);
        if (FULL)
            x.weigh(k0, end);
    }
    x.give_mass();
    if (FULL)
        x.statistics();
    const uint32_t outputs = FULL ? x.outputs() : 0;
    x.give_zeros();
    at_sync(); /* every bit of p stands there */
    const int noted = (x.raw ? 1 : 0) | (x.scaled ? 2 : 0) | (x.fir ? 4 : 0) | (x.p ? 8 : 0) | (x.out ? 16 : 0);
    at_counts_store_light(a, x.head, x.tile, m.buffer, mass, &rare, x.p ? x.element_zero : 0, x.dead_pages(), x.pairs,
                          outputs, x.light, noted);
}

const char *supports(const struct at_problem *problem) {
    return problem->sizes.tokens > 65535 * (int64_t)AT_COUNTS_TILE ? "more queries than a grid has"
                                                                   : at_counts_tiles_decline(problem);
}

template <class T, int TAPS, bool FULL>
int put(const struct at_launch *launch, const at_counts_view<T> &a, at_counts_kind<TAPS, FULL>) {
    const int64_t rows = (int64_t)a.h * a.queries + (int64_t)a.hk * a.keys;
    const int code = at_launch(at_counts_spans<T>, dim3{ (unsigned)((rows + THREADS - 1) / THREADS), 1, 1 },
                               dim3{ THREADS, 1, 1 }, 0, launch->stream, a);
    return code ? code
                : at_launch(tiles<T, TAPS, FULL>, dim3{ (unsigned)a.h, (unsigned)a.tiles, 1 }, dim3{ THREADS, 1, 1 },
                            at_counts_memory::bytes(a.n_taps, FULL), launch->stream, a);
}

int launch(const struct at_launch *launch) {
    return at_counts_launch_tiles(launch, [launch](const auto &a, auto kind) { return put(launch, a, kind); });
}

int64_t workspace(const struct at_problem *problem) { return at_counts_view<float>::workspace(problem); }

} // namespace

AT_KERNEL(score_counts, 02_tiles) = {
    .summary = "tiles of 64 by 64 scores, exact products in registers, short counting of ordinary values",
    .source = "ours",
    .numerics = AT_COUNTS_NUMERICS,
    .supports = supports,
    .workspace = workspace,
    .launch = launch,
};
