/* AsyncT prefill on mma.sync: the steps that kernels 04 to 09 and 23 are composed of.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A warp has 16 queries of one head; the warps of a block share the tiles of keys.
 *
 * Load:     at_mma_stage (kernels/attention/attention_mma.h), K and V of a tile to shared memory
 * Scores:   at_mma_warp::scores by m16n8k16, q in registers; the scores go to the warp's rows in shared memory
 * Gate:     at_mma_warp::gates; each lane filters and gates the elements of P that it needs as an operand
 * Products: at_mma_warp::values by m16n8k16, or by m16n8k8 for tiles of 8 keys; P and o stay in registers
 * Store:    at_mma_warp::store */
#ifndef AT_ASYNCT_MMA_H
#define AT_ASYNCT_MMA_H

#include "kernels/attention/asynct.h"
#include "kernels/attention/attention_mma.h"

/* The numerics that kernels on tensor cores declare: the unit of both products, the format of P, keys of a step of P V,
 * the guard of sums in f16, and where the scale is applied. */
#define AT_ASYNCT_MMA_SCALED_NUMERICS(UNIT, P, CHUNK, GUARD, SCALE_ON) \
    { \
        .qk_unit = UNIT, .qk_lanes = 1, .scale_on = SCALE_ON, .fir_order = AT_FIR_ORDER_TAPS, .fir_fma = 1, .p = P, \
        .gamma_on = AT_GAMMA_ON_P, .clamp = AT_CLAMP_FMINMAX, .pv_unit = UNIT, .pv_chunk = CHUNK, .guard = GUARD, \
        .repeats = 1, .batch_invariant = 1, .tail = AT_TAIL_UNREAD, .pv_zero = AT_PV_ZERO_MULTIPLIED, \
    }
#define AT_ASYNCT_MMA_NUMERICS(UNIT, P, CHUNK, GUARD) \
    AT_ASYNCT_MMA_SCALED_NUMERICS(UNIT, P, CHUNK, GUARD, AT_SCALE_ON_SCORE)
/* bf16, 16 products a step, sums in f32. */
#define AT_ASYNCT_MMA_BF16_NUMERICS AT_ASYNCT_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, 16, AT_GUARD_NONE)

/* Floats of shared memory for a query: its halo and the scores of a tile. */
template <int KEYS> __host__ __device__ int at_mma_row_length(int n_taps) { return n_taps - 1 + KEYS; }
/* Bytes of them for the queries of so many warps. */
template <int KEYS> int64_t at_mma_rows_bytes(int warps, const struct at_launch *launch) {
    const int length = at_mma_row_length<KEYS>((int)launch->problem->sizes.taps);
    return warps * AT_MMA_ROWS * length * (int64_t)sizeof(float);
}

/* The gate of a lane's row g, or g + 8 (half = 1): all rows of a warp have the same one. */
__device__ inline const at_asynct_gate &at_gate_of_row(const at_asynct_gate &gate, int half) {
    (void)half;
    return gate;
}

/* The scores of a warp in shared memory, a row for each of its 16 queries: first the halo, which is the last K - 1
 * scores of the tile before, then the scores of a tile of KEYS keys. The kernel places a barrier of the warp between
 * put and gates, and another between gates and keep_tail. Gates: made of what `of` says of the rows' heads. */
template <class T, int KEYS, class Gates = at_asynct_gate> struct at_score_rows {
    const at_asynct_view<T> &a;
    const Gates gates_of;
    float *const rows;
    const int length;

    template <class Of>
    __device__ at_score_rows(const at_asynct_view<T> &view, const Of &of, float *memory)
        : a(view), gates_of(Gates::of(view, of)), rows(memory), length(at_mma_row_length<KEYS>(view.n_taps)) {
        if constexpr (KEYS < AT_ASYNCT_MAX_TAPS - 1) /* keep_tail moves what is no score yet */
            for (int i = 0; at_lane() < AT_MMA_ROWS && i < length - KEYS; i++)
                rows[at_lane() * length + i] = 0.0f;
    }
    /* What the filter reads of the scores of 8 N keys, from key `key` of the tile on. */
    template <class Sum, int N> __device__ void put(const Sum (&s)[N], int key = 0) const {
        const int g = at_lane() / 4, t = at_lane() % 4;
        for (int n = 0; n < N; n++)
            for (int i = 0; i < 4; i++) {
                const float x = s[n][i] * a.scale;
                rows[key + (g + 8 * (i / 2)) * length + a.n_taps - 1 + 8 * n + 2 * t + i % 2] =
                    a.relu_pre ? fmaxf(x, 0.0f) : x;
            }
    }
    /* P as an operand: 16 queries by 4 A keys, from key `key` of the tile that begins with `begin`; 0 where a query
     * does not see the key. */
    template <class Queries, int A>
    __device__ void gates(const Queries &queries, int begin, uint32_t (&p)[A], int key = 0) const {
        const int g = at_lane() / 4, t = at_lane() % 4, from = begin + key;
        AT_UNROLL
        for (int r = 0; r < A; r++) {
            const at_asynct_gate &gate = at_gate_of_row(gates_of, r % 2);
            const int row = g + 8 * (r % 2), first = 2 * t + 8 * (r / 2), keys = queries.visible(row) - from;
            const float *score = rows + key + row * length + gate.n_taps - 1 + first;
            const float low = first < keys ? gate(score, from + first) : 0.0f;
            const float high = first + 1 < keys ? gate(score + 1, from + first + 1) : 0.0f;
            p[r] = at_pack<T>(low, high);
        }
    }
    /* The last scores of the tile become the halo of the next. A lane has a whole row: a halo longer than a tile moves
     * within itself. */
    __device__ void keep_tail() const {
        float *row = rows + at_lane() * length;
        for (int i = 0; at_lane() < AT_MMA_ROWS && i < length - KEYS; i++)
            row[i] = row[i + KEYS];
    }
};

/* Rows of o of the warp's queries, rounded to T; o[n][i] as a product leaves it. Rows past the last query are not
 * stored. */
template <class T, class Sum, int N>
__device__ void at_asynct_store(const at_asynct_view<T> &a, const at_mma_queries<T> &queries, const Sum (&o)[N]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        AT_UNROLL
        for (int i = 0; i < N && queries.first + g + 8 * half < queries.end; i++)
            at_store32(a.o + queries.element(g + 8 * half) + 8 * i + 2 * t,
                       at_pack<T>(o[i][2 * half], o[i][2 * half + 1]));
    }
}

/* A warp and its walk over the keys: its 16 queries with their q and o, and the steps that it takes with each tile. A
 * tile has one step of STEP keys, or several: `key` is the first of the step within the tile. Scores, a barrier of the
 * warp, gates and products, a barrier of the warp, keep_tail; in this order the rows of scores are whole when gates
 * reads them and all lanes have left the tile behind the second barrier. Load: how operands come from shared memory.
 * Inlined always: q and o stay in registers. */
template <class T, int D, class Sum, int KEYS, class Load = at_mma_ldmatrix> struct at_mma_warp {
    static constexpr int STEP = KEYS < AT_MMA_KEYS ? KEYS : AT_MMA_KEYS;
    static_assert(KEYS == 8 || KEYS % AT_MMA_KEYS == 0, "whole steps of P V");
    const at_mma_queries<T> &queries;
    const at_score_rows<T, KEYS> rows;
    const at_mma_q<D, T> q;
    Sum o[D / 8] = {};

    __device__ at_mma_warp(const at_asynct_view<T> &view, const at_mma_queries<T> &of, float *memory)
        : queries(of), rows(view, of.head, memory), q(of) {}

    /* q.k to the rows of scores. */
    __device__ __forceinline__ void scores(const T *k, int key = 0) {
        Sum s[STEP / 8] = {};
        at_mma_scores<Load>(q, k + key * AT_MMA_STRIDE<D>, s);
        rows.put(s, key);
    }
    /* P from the rows, an operand for values; the tile begins with key `begin`. */
    __device__ __forceinline__ void gates(int begin, uint32_t (&p)[STEP / 4], int key = 0) const {
        rows.gates(queries, begin, p, key);
    }
    /* o += P V. */
    __device__ __forceinline__ void values(int begin, const uint32_t (&p)[STEP / 4], const T *v, int key = 0) {
        at_mma_values<D, Load>(queries, begin + key, p, v + key * AT_MMA_STRIDE<D>, o);
    }
    __device__ void keep_tail() const { rows.keep_tail(); }
    __device__ void store() const { at_asynct_store(rows.a, queries, o); }
};

/* The layout of shared memory: STAGES tiles of KEYS keys, K and V of each, then the rows of scores of each warp. */
template <class T, int D, int KEYS, int STAGES = 1> struct at_mma_shared {
    static constexpr int TILE = KEYS * AT_MMA_STRIDE<D>; /* elements of K, or of V */
    T *memory;

    __device__ T *k(int stage = 0) const { return memory + 2 * stage * TILE; }
    __device__ T *v(int stage = 0) const { return k(stage) + TILE; }
    __device__ float *rows(int warp, int n_taps) const {
        return reinterpret_cast<float *>(k(STAGES)) + warp * AT_MMA_ROWS * at_mma_row_length<KEYS>(n_taps);
    }
    static int64_t bytes(int warps, const struct at_launch *launch) {
        return STAGES * 2 * TILE * (int64_t)sizeof(T) + at_mma_rows_bytes<KEYS>(warps, launch);
    }
};

/* A kernel on grid (query heads, requests, tiles of 16 queries for each warp), which may be empty. */
template <class T>
int at_mma_launch(const struct at_launch *launch, void (*kernel)(at_asynct_view<T>), int warps, int64_t shared) {
    const dim3 grid = at_mma_grid(&launch->problem->sizes, warps * AT_MMA_ROWS);
    if (grid.y == 0)
        return 0;
    return at_launch(kernel, grid, dim3{ 32 * (unsigned)warps, 1, 1 }, shared, launch->stream,
                     at_asynct_view<T>::of(launch->problem));
}

/* Reasons to decline for activations of one format. */
static inline const char *at_mma_bf16_declines(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}
static inline const char *at_mma_f16_declines(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "activations are f16" : at_mma_declines(problem);
}

#endif
