/* AsyncT prefill on wgmma: the steps that kernels 10 to 20 and 24 are composed of.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block is a warpgroup with 64 queries of one head. It walks the keys in tiles of 16; a barrier ends each tile.
 *
 * Load:     at_wgmma_load_q once, at_wgmma_load_kv for each tile; a proxy fence and a barrier follow, because
 *           wgmma reads what threads wrote
 * Scores:   at_wgmma_scores issues and commits q.k; the kernel waits
 * Gate:     in fragments (asynct_fragments.h) or over rows of scores in shared memory (asynct_mma.h)
 * Products: at_wgmma_put_p if P goes through shared memory, at_wgmma_values; the kernel waits
 * Store:    at_asynct_store
 *
 * What wgmma reads in shared memory lies in core matrices, 8 rows of 16 bytes one after the other: q and K by rows, V
 * by channels, so that the 16 keys of a channel are neighbours. V in rows that are hidden from some query: as in
 * kernels/attention/attention_mma.h, whose warps and queries these are. */
#ifndef AT_ASYNCT_WGMMA_H
#define AT_ASYNCT_WGMMA_H

#include "kernels/asynct_prefill/asynct_fragments.h"
#include "kernels/asynct_prefill/asynct_mma.h"
#include "kernels/device/wgmma.h"

constexpr int AT_WGMMA_QUERIES = 64, AT_WGMMA_WARPS = 4, AT_WGMMA_THREADS = 128, AT_WGMMA_CORE = 64;

template <class T> using at_wgmma_block = at_mma_block<T, AT_WGMMA_WARPS>;

/* Element (row, column) of core matrices `columns` wide. */
__host__ __device__ constexpr int at_core(int row, int column, int columns) {
    return row / 8 * 8 * columns + column / 8 * AT_WGMMA_CORE + row % 8 * 8 + column % 8;
}
/* Such a matrix of 16-bit elements. */
template <class T> __device__ at_matrix at_core_matrix(const T *at, int columns) {
    return at_matrix::k_major(at, AT_WGMMA_CORE * (int)sizeof(T), 8 * columns * (int)sizeof(T));
}

/* The layout of shared memory: q of the block, K and V of a tile, a word for each warp, then what a variant adds. V:
 * its elements. */
template <class T, int D, int V = AT_MMA_KEYS *D> struct at_wgmma_tiles {
    static constexpr int Q = AT_WGMMA_QUERIES * D, K = AT_MMA_KEYS * D;
    static constexpr int64_t BYTES = (Q + K + V) * (int64_t)sizeof(T) + AT_WGMMA_WARPS * (int64_t)sizeof(uint32_t);
    static constexpr int64_t P_BYTES = AT_WGMMA_QUERIES * AT_MMA_KEYS * (int64_t)sizeof(T);
    static constexpr int64_t TAIL_BYTES = AT_WGMMA_QUERIES * 2 * (int64_t)sizeof(float);
    T *memory;

    __device__ T *q() const { return memory; }
    __device__ T *k() const { return q() + Q; }
    __device__ T *v() const { return k() + K; }
    __device__ uint32_t *words() const { return reinterpret_cast<uint32_t *>(v() + V); }
    __device__ T *p() const { return reinterpret_cast<T *>(words() + AT_WGMMA_WARPS); }
    /* Floats behind P, and in its place in kernels that keep P in registers. */
    __device__ float *behind_p() const { return reinterpret_cast<float *>(p() + AT_WGMMA_QUERIES * AT_MMA_KEYS); }
    __device__ float *instead_of_p() const { return reinterpret_cast<float *>(p()); }

    /* What each warp has found in its part of V; the barrier that follows the load stands between note and noted. */
    __device__ void note(bool found) const {
        if (at_lane() == 0)
            words()[threadIdx.x / 32] = found;
    }
    __device__ bool noted() const { return words()[0] | words()[1] | words()[2] | words()[3]; }
};

/* ---- load ---- */

/* 16 queries of the warp to core matrices: put(to, x) for each 8 channels x of a row and their place. */
template <int D, class T, class F> __device__ void at_wgmma_each_of_q(const at_wgmma_block<T> &block, T *q, F put) {
    constexpr int EACH = 8, PARTS = D / EACH;
    for (int i = at_lane(); i < AT_MMA_ROWS * PARTS; i += 32) {
        const int row = i / PARTS, channel = i % PARTS * EACH;
        T x[EACH];
        at_load16(block.queries.a.q + block.queries.element(row) + channel, x);
        put(q + at_core(block.warp * AT_MMA_ROWS + row, channel, D), x);
    }
}
template <int D, class T> __device__ void at_wgmma_load_q(const at_wgmma_block<T> &block, T *q) {
    at_wgmma_each_of_q<D>(block, q, [](T *to, const T(&x)[8]) { at_store16(to, x); });
}

/* Where key t of a block's request begins, in k and in v. */
template <class T> struct at_key_by_table {
    const at_mma_queries<T> &queries;
    __device__ int64_t operator()(int t) const { return queries.a.key(queries.request, t, queries.kv_head); }
};

/* The rows of the tile from `begin` on, 16 bytes at a time: put(row, channel, from), where `from` is the place in k and
 * in v, < 0 for rows from `keys` on, which are zeros. */
template <int D, class Key, class F> __device__ void at_wgmma_each_of_kv(int begin, int keys, Key key, F put) {
    constexpr int EACH = 8, PARTS = D / EACH;
    for (int i = (int)threadIdx.x; i < AT_MMA_KEYS * PARTS; i += AT_WGMMA_THREADS) {
        const int row = i / PARTS, channel = i % PARTS * EACH, t = begin + row;
        put(row, channel, t < keys ? key(t) + channel : (int64_t)-1);
    }
}

/* K of a tile in core matrices, V by channels. Notes whether a row of V that some query does not see holds an infinity
 * or a NaN. */
template <int D, class T, class Tiles, class Key>
__device__ void at_wgmma_load_kv(const at_wgmma_block<T> &block, int begin, const Tiles &tiles, Key key) {
    const at_attention_view<T> &a = block.queries.a;
    T *k = tiles.k(), *v = tiles.v();
    bool found = false;
    at_wgmma_each_of_kv<D>(begin, block.keys, key, [&](int row, int channel, int64_t from) {
        T from_k[8] = {}, from_v[8] = {};
        if (from >= 0) {
            at_load16(a.k + from, from_k);
            at_load16(a.v + from, from_v);
        }
        at_store16(k + at_core(row, channel, D), from_k);
        for (int j = 0; j < 8; j++) {
            const float x = at_float(from_v[j]);
            found |= begin + row >= block.least && !(x - x == 0.0f);
            v[at_core(channel + j, row, AT_MMA_KEYS)] = from_v[j];
        }
    });
    tiles.note(at_ballot(0xffffffffu, found) != 0);
}
template <int D, class T, class Tiles>
__device__ void at_wgmma_load_kv(const at_wgmma_block<T> &block, int begin, const Tiles &tiles) {
    at_wgmma_load_kv<D>(block, begin, tiles, at_key_by_table<T>{ block.queries });
}

/* ---- scores ---- */

/* Issues and commits s += q.k of a tile, in products of 8 C columns. */
template <int D, class T, int N, int C>
__device__ __forceinline__ void at_wgmma_scores(const T *q, const T *k, float (&s)[N][C][4]) {
    static_assert(8 * N * C == AT_MMA_KEYS, "the keys of a tile");
    at_wgmma_fence(s);
    AT_UNROLL
    for (int i = 0; i < D / 16; i++)
        for (int n = 0; n < N; n++)
            at_wgmma(s[n], at_core_matrix(q + 2 * AT_WGMMA_CORE * i, D),
                     at_core_matrix(k + 8 * n * C * D + 2 * AT_WGMMA_CORE * i, D), T{}, T{});
    at_wgmma_commit();
}

/* Products of 8 C columns as fragments of 8. */
template <int N, int C> __device__ float (&at_fragments(float (&s)[N][C][4]))[N * C][4] {
    return reinterpret_cast<float(&)[N * C][4]>(s);
}

/* ---- the gate's tail in shared memory, two floats a row of the block ---- */

__device__ inline void at_take_tail(const float *rows, at_score_tail &tail) {
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 2; i++)
            tail.before[half][i] = rows[2 * (at_lane() / 4 + 8 * half) + i];
}
__device__ inline void at_put_tail(float *rows, const at_score_tail &tail) {
    at_sync_warp(); /* all have taken the one before */
    for (int half = 0; half < 2; half++)
        if (at_lane() % 4 == 3)
            for (int i = 0; i < 2; i++)
                rows[2 * (at_lane() / 4 + 8 * half) + i] = tail.before[half][i];
}

/* ---- products ---- */

/* P of the warp to core matrices; a proxy fence and a barrier of the block have to follow. */
template <class T> __device__ void at_wgmma_put_p(const at_wgmma_block<T> &block, const uint32_t (&p)[4], T *tile) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int r = 0; r < 4; r++)
        at_store32(tile + at_core(block.warp * AT_MMA_ROWS + g + 8 * (r % 2), 2 * t + 8 * (r / 2), AT_MMA_KEYS), p[r]);
}

/* Issues and commits o += P V of a tile, in products of 8 C columns. P: in shared memory, or in registers. */
template <class T, int N, int C>
__device__ __forceinline__ void at_wgmma_values(const T *p, const T *v, float (&o)[N][C][4]) {
    at_wgmma_fence(o);
    AT_UNROLL
    for (int i = 0; i < N; i++)
        at_wgmma(o[i], at_core_matrix(p, AT_MMA_KEYS), at_core_matrix(v + 8 * i * C * AT_MMA_KEYS, AT_MMA_KEYS), T{},
                 T{});
    at_wgmma_commit();
}
template <class T, int N, int C>
__device__ __forceinline__ void at_wgmma_values(const uint32_t (&p)[4], const T *v, float (&o)[N][C][4]) {
    at_wgmma_fence(o);
    AT_UNROLL
    for (int i = 0; i < N; i++)
        at_wgmma(o[i], p, at_core_matrix(v + 8 * i * C * AT_MMA_KEYS, AT_MMA_KEYS), T{}, T{});
    at_wgmma_commit();
}

/* o += P V by mma.sync for one query at a time, hidden rows of V replaced by zeros. */
template <class T, int N, int C>
__device__ void at_wgmma_values_by_query(const at_mma_queries<T> &queries, int begin, const uint32_t (&p)[4],
                                         const T *v, float (&o)[N][C][4]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int row = 0; row < AT_MMA_ROWS; row++) {
        AT_UNROLL
        for (int i = 0; i < N * C; i++) {
            uint32_t seen[2];
            for (int r = 0; r < 2; r++)
                seen[r] = at_load32(v + at_core(8 * i + g, 8 * r + 2 * t, AT_MMA_KEYS));
            float(&sum)[4] = o[i / C][i % C];
            float all[4];
            at_mma_hide(seen, queries.visible(row) - begin);
            at_mma_16816(all, p, seen, sum, T{});
            for (int half = 0; half < 2; half++)
                for (int j = 2 * half; row == g + 8 * half && queries.visible(row) > begin && j < 2 * half + 2; j++)
                    sum[j] = all[j];
        }
    }
}

/* ---- reasons to decline ---- */

/* max_taps: of the kernel's gate. */
static inline const char *at_wgmma_declines(const struct at_problem *problem, int64_t max_taps) {
    if (problem->dtype != AT_BF16)
        return "activations are bf16";
    if (problem->sizes.taps > max_taps)
        return "a filter of more than 3 taps";
    return at_mma_declines(problem);
}
/* The same for at_unit_gate. */
static inline const char *at_wgmma_constants_decline(const struct at_problem *problem) {
    const struct at_params &p = problem->params;
    if (!p.relu_pre || p.clip_min < 0.0f || p.clip_min > 0.0f || p.clip_max < 1.0f || p.clip_max > 1.0f)
        return "a ReLU before the filter and a gate from 0 to 1 are compiled in";
    return at_wgmma_declines(problem, 3);
}

#endif
