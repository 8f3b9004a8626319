/* AsyncT prefill on wgmma: a warpgroup has 64 queries of one head and walks the keys 16 at a time.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shared memory: q of the block; K and V of a tile; what the plan wants of scores and P. Everything that wgmma reads
 * lies in core matrices, 8 rows of 16 bytes one behind the other: V by channels, so that its 16 keys are neighbours.
 * Threads write it, a proxy fence and a barrier stand between that and wgmma.
 *
 * V in rows that are hidden from some query: as in kernels/attention/attention_mma.h, whose warps and queries these are.
 */
#ifndef AT_DEVICE_ASYNCT_WGMMA_H
#define AT_DEVICE_ASYNCT_WGMMA_H

#include "kernels/asynct_prefill/asynct_mma.h"
#include "kernels/device/wgmma.h"

constexpr int AT_WGMMA_QUERIES = 64, AT_WGMMA_WARPS = 4, AT_WGMMA_THREADS = 128, AT_WGMMA_CORE = 64;

/* What a kernel does in which way. COLUMNS: of a product, 8 or 16. */
enum at_wgmma_scores { AT_WGMMA_SCORES_IN_SHARED, AT_WGMMA_TAIL_IN_SHARED, AT_WGMMA_TAIL_IN_REGISTERS };
enum at_wgmma_values { AT_WGMMA_VALUES_BY_MMA, AT_WGMMA_P_IN_SHARED, AT_WGMMA_P_IN_REGISTERS };
struct at_wgmma_staging {                         /* how q, K and V come to shared memory */
    static constexpr bool Q_BY_PAIRS = false;     /* stores of two elements of a row, not of eight */
    static constexpr bool V_BY_KEY_PAIRS = false; /* stores of one channel of two keys, not of one */

    /* First element of a key, in k and in v. */
    template <class T> static __device__ int64_t key(const at_attention_view<T> &a, int request, int t, int kv_head) {
        return a.key(request, t, kv_head);
    }
};
template <int COLUMNS_, at_wgmma_scores SCORES_, at_wgmma_values VALUES_, bool CONSTANTS_ = false,
          class STAGING_ = at_wgmma_staging>
struct at_wgmma_plan {
    using STAGING = STAGING_;
    static constexpr int COLUMNS = COLUMNS_;
    static constexpr at_wgmma_scores SCORES = SCORES_;
    static constexpr at_wgmma_values VALUES = VALUES_;
    static constexpr bool CONSTANTS = CONSTANTS_; /* a ReLU before the filter, a gate from 0 to 1 */
};

/* Element (row, column) of core matrices `columns` wide. */
__host__ __device__ constexpr int at_core(int row, int column, int columns) {
    return row / 8 * 8 * columns + column / 8 * AT_WGMMA_CORE + row % 8 * 8 + column % 8;
}
/* Such a matrix of 16-bit elements. */
template <class T> __device__ at_matrix at_core_matrix(const T *at, int columns) {
    return at_matrix::k_major(at, AT_WGMMA_CORE * (int)sizeof(T), 8 * columns * (int)sizeof(T));
}

/* The gate with at most three taps, on scores of a thread. */
template <bool CONSTANTS> struct at_fragment_gate {
    float scale, tap[3], sigma, gamma, clip_min, clip_max;
    int n_taps, shrink, relu_pre;

    template <class T>
    __device__ at_fragment_gate(const at_asynct_view<T> &a, int head)
        : scale(a.scale), sigma(a.sigma[head]), gamma(a.gamma[head]), clip_min(a.clip_min), clip_max(a.clip_max),
          n_taps(a.n_taps), shrink(a.pooled && a.shrink), relu_pre(a.relu_pre) {
        for (int i = 0; i < 3; i++)
            tap[i] = i < n_taps ? a.taps[head * n_taps + i] : 0.0f;
    }
    __device__ float score(float s) const {
        const float x = s * scale;
        return CONSTANTS || relu_pre ? fmaxf(x, 0.0f) : x;
    }
    /* p of key t from its score and those of the two keys before. */
    __device__ float operator()(float r0, float r1, float r2, int t) const {
        float z;
        if (shrink && t + 1 < n_taps) { /* a shorter window has taps of its own */
            const float share = sigma / (float)(t + 1);
            z = (1.0f - share) * r0;
            if (t > 0)
                z = fmaf(-share, r1, z);
        } else {
            z = tap[0] * r0;
            if (n_taps > 1 && t > 0)
                z = fmaf(tap[1], r1, z);
            if (n_taps > 2 && t > 1)
                z = fmaf(tap[2], r2, z);
        }
        z = fmaxf(z, 0.0f);
        return gamma * (CONSTANTS ? fminf(z, 1.0f) : fmaxf(fminf(z, clip_max), clip_min));
    }
};

/* The last two scores before a tile, of rows g (0) and g + 8 (1). */
struct at_score_tail {
    float before[2][2] = {}; /* the older first */
};

/* P of a tile from its scores in fragments of 8 keys: a lane's two keys stand beside those of its neighbour in the
 * quad. put(r, low, high) for what register r of an operand has. The tail goes on to the next tile, for all four lanes.
 */
template <class T, bool CONSTANTS, class F>
__device__ void at_fragment_gates_of(const at_mma_queries<T> &queries, const at_fragment_gate<CONSTANTS> &gate,
                                     const float (&s)[2][4], int begin, at_score_tail &tail, F put) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const int keys = queries.visible(g + 8 * half);
        float *before = tail.before[half];
        AT_UNROLL
        for (int n = 0; n < 2; n++) {
            const int key = begin + 8 * n + 2 * t;
            const float r0 = gate.score(s[n][2 * half]), r1 = gate.score(s[n][2 * half + 1]);
            const float up0 = at_shuffle_up(0xffffffffu, r0, 1, 4), up1 = at_shuffle_up(0xffffffffu, r1, 1, 4);
            const float b2 = t == 0 ? before[0] : up0, b1 = t == 0 ? before[1] : up1;
            const float low = key < keys ? gate(r0, b1, b2, key) : 0.0f;
            const float high = key + 1 < keys ? gate(r1, r0, b1, key + 1) : 0.0f;
            put(2 * n + half, low, high);
            before[0] = at_shuffle(0xffffffffu, r0, 3, 4);
            before[1] = at_shuffle(0xffffffffu, r1, 3, 4);
        }
    }
}

/* The same as an operand. */
template <class T, bool CONSTANTS>
__device__ void at_fragment_gates(const at_mma_queries<T> &queries, const at_fragment_gate<CONSTANTS> &gate,
                                  const float (&s)[2][4], int begin, at_score_tail &tail, uint32_t (&p)[4]) {
    at_fragment_gates_of(queries, gate, s, begin, tail,
                         [&](int r, float low, float high) { p[r] = at_pack<T>(low, high); });
}

/* A tail in shared memory, two floats a row of the block. */
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

/* The warp's queries to core matrices. */
template <int D, class Staging, class T>
__device__ void at_wgmma_stage_q(const at_mma_queries<T> &queries, int warp, T *q) {
    constexpr int EACH = 8, PARTS = D / EACH;
    for (int i = at_lane(); i < AT_MMA_ROWS * PARTS; i += 32) {
        const int row = i / PARTS, channel = i % PARTS * EACH;
        T x[EACH];
        at_load16(queries.a.q + queries.element(row) + channel, x);
        T *to = q + at_core(warp * AT_MMA_ROWS + row, channel, D);
        if (Staging::Q_BY_PAIRS)
            for (int j = 0; j < EACH; j += 2)
                at_store32(to + j, at_pair(x[j], x[j + 1]));
        else
            at_store16(to, x);
    }
}

/* V of a tile by channels, two keys a store. */
template <int D, class Staging, class T>
__device__ bool at_wgmma_stage_v_pairs(const at_mma_queries<T> &queries, int begin, int keys, int hidden, T *v) {
    constexpr int EACH = 8, PARTS = D / EACH;
    bool found = false;
    for (int i = (int)threadIdx.x; i < AT_MMA_KEYS / 2 * PARTS; i += AT_WGMMA_THREADS) {
        const int row = i / PARTS * 2, channel = i % PARTS * EACH;
        T from[2][EACH] = {};
        for (int n = 0; n < 2; n++)
            if (begin + row + n < keys)
                at_load16(queries.a.v + channel +
                              Staging::key(queries.a, queries.request, begin + row + n, queries.kv_head),
                          from[n]);
        for (int j = 0; j < EACH; j++) {
            for (int n = 0; n < 2; n++) {
                const float x = at_float(from[n][j]);
                found |= begin + row + n >= hidden && !(x - x == 0.0f);
            }
            at_store32(v + at_core(channel + j, row, AT_MMA_KEYS), at_pair(from[0][j], from[1][j]));
        }
    }
    return found;
}

/* 16 keys of K and V, zeros from `keys` on: K in core matrices; V too, by channels, or in rows for mma.sync. Whether
 * one of the rows of V from `hidden` on holds an infinity or a NaN among what this warp has loaded. */
template <int D, class Staging, bool BY_ROWS, class T>
__device__ bool at_wgmma_stage_kv(const at_mma_queries<T> &queries, int begin, int keys, int hidden, T *k, T *v) {
    constexpr int EACH = 8, PARTS = D / EACH;
    bool found = false;
    for (int i = (int)threadIdx.x; i < AT_MMA_KEYS * PARTS; i += AT_WGMMA_THREADS) {
        const int row = i / PARTS, channel = i % PARTS * EACH, t = begin + row;
        T from_k[EACH] = {}, from_v[EACH] = {};
        if (t < keys) {
            const int64_t at = Staging::key(queries.a, queries.request, t, queries.kv_head) + channel;
            at_load16(queries.a.k + at, from_k);
            if (!Staging::V_BY_KEY_PAIRS)
                at_load16(queries.a.v + at, from_v);
        }
        at_store16(k + at_core(row, channel, D), from_k);
        if (BY_ROWS) {
            at_store16(v + row * AT_MMA_STRIDE<D> + channel, from_v);
            continue;
        }
        if constexpr (!Staging::V_BY_KEY_PAIRS)
            for (int j = 0; j < EACH; j++) {
                const float x = at_float(from_v[j]);
                found |= t >= hidden && !(x - x == 0.0f);
                v[at_core(channel + j, row, AT_MMA_KEYS)] = from_v[j];
            }
    }
    if constexpr (Staging::V_BY_KEY_PAIRS)
        found = at_wgmma_stage_v_pairs<D, Staging>(queries, begin, keys, hidden, v);
    return at_ballot(0xffffffffu, found) != 0;
}

/* o += P V with V's rows hidden where a query does not see them, by mma.sync, a query at a time. */
template <int D, int COLUMNS, class T>
__device__ void at_wgmma_values_by_query(const at_mma_queries<T> &queries, int begin, const uint32_t (&p)[4],
                                         const T *v, float (&o)[D / COLUMNS][COLUMNS / 8][4]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int row = 0; row < AT_MMA_ROWS; row++) {
        AT_UNROLL
        for (int i = 0; i < D / 8; i++) {
            uint32_t seen[2];
            for (int r = 0; r < 2; r++)
                seen[r] = at_load32(v + at_core(8 * i + g, 8 * r + 2 * t, AT_MMA_KEYS));
            float(&sum)[4] = o[8 * i / COLUMNS][i % (COLUMNS / 8)];
            float all[4];
            at_mma_hide(seen, queries.visible(row) - begin);
            at_mma_16816(all, p, seen, sum, T{});
            for (int half = 0; half < 2; half++)
                for (int j = 2 * half; row == g + 8 * half && queries.visible(row) > begin && j < 2 * half + 2; j++)
                    sum[j] = all[j];
        }
    }
}

/* Elements of shared memory, of T and then of float. */
struct at_wgmma_room {
    int q, k, v, p, floats;

    template <class Plan> __host__ __device__ static at_wgmma_room of(int d, int n_taps) {
        const int keys = AT_MMA_KEYS, queries = AT_WGMMA_QUERIES;
        return { queries * d, keys * d, Plan::VALUES == AT_WGMMA_VALUES_BY_MMA ? keys * (d + 8) : keys * d,
                 Plan::VALUES == AT_WGMMA_P_IN_SHARED ? queries * keys : 0,
                 Plan::SCORES == AT_WGMMA_SCORES_IN_SHARED ? queries * at_mma_row_length<AT_MMA_KEYS>(n_taps)
                 : Plan::SCORES == AT_WGMMA_TAIL_IN_SHARED ? queries * 2
                                                           : 0 };
    }
    __host__ __device__ int64_t bytes() const {
        return 2 * (int64_t)(q + k + v + p) + 4 * (int64_t)(floats + AT_WGMMA_WARPS);
    }
};

template <class T, int D, class Plan>
static __global__ void __launch_bounds__(AT_WGMMA_THREADS, 1) at_wgmma_prefill(at_asynct_view<T> a) {
    constexpr int COLUMNS = Plan::COLUMNS;
    constexpr bool BY_MMA = Plan::VALUES == AT_WGMMA_VALUES_BY_MMA;
    const at_wgmma_room room = at_wgmma_room::of<Plan>(D, a.n_taps);
    AT_SHARED_DYNAMIC(T, q);
    T *k = q + room.q, *v = k + room.k, *p_tile = v + room.v;
    uint32_t *found = reinterpret_cast<uint32_t *>(p_tile + room.p);
    float *floats = reinterpret_cast<float *>(found + AT_WGMMA_WARPS);
    const int warp = (int)threadIdx.x / 32, g = at_lane() / 4, t = at_lane() % 4,
              length = at_mma_row_length<AT_MMA_KEYS>(a.n_taps);
    const int tile = (int)blockIdx.z * AT_WGMMA_WARPS;
    const at_mma_queries<T> first(a, tile), last(a, tile + AT_WGMMA_WARPS - 1), queries(a, tile + warp);
    if (first.first >= queries.end)
        return;
    const int keys = last.visible(AT_MMA_ROWS - 1); /* of the block */
    const at_asynct_gate gate = at_asynct_gate::of(a, queries.head);
    const at_fragment_gate<Plan::CONSTANTS> fragment_gate(a, queries.head);
    float *rows = floats + warp * AT_MMA_ROWS * (Plan::SCORES == AT_WGMMA_SCORES_IN_SHARED ? length : 2);
    at_score_tail tail;
    float o[D / COLUMNS][COLUMNS / 8][4] = {};
    at_wgmma_stage_q<D, typename Plan::STAGING>(queries, warp, q);
    if (Plan::SCORES == AT_WGMMA_TAIL_IN_SHARED)
        at_put_tail(rows, tail);
    for (int begin = 0; begin < keys; begin += AT_MMA_KEYS) {
        const bool infinite =
            at_wgmma_stage_kv<D, typename Plan::STAGING, BY_MMA>(queries, begin, keys, first.least, k, v);
        if (at_lane() == 0)
            found[warp] = infinite;
        at_proxy_fence(); /* behind q too, the first time */
        at_sync();
        float s[AT_MMA_KEYS / COLUMNS][COLUMNS / 8][4] = {};
        uint32_t p[4];
        at_wgmma_fence(s);
        AT_UNROLL
        for (int i = 0; i < D / 16; i++)
            for (int n = 0; n < AT_MMA_KEYS / COLUMNS; n++)
                at_wgmma(s[n], at_core_matrix(q + 2 * AT_WGMMA_CORE * i, D),
                         at_core_matrix(k + n * COLUMNS * D + 2 * AT_WGMMA_CORE * i, D), T{}, T{});
        at_wgmma_commit();
        at_wgmma_wait<0>(s);
        const float(&scores)[2][4] = reinterpret_cast<const float(&)[2][4]>(s);
        if (Plan::SCORES == AT_WGMMA_SCORES_IN_SHARED) {
            at_mma_put_scores(a, scores, rows, length);
            at_sync_warp();
            at_mma_gates(queries, gate, rows, length, begin, p);
            at_sync_warp();
            at_mma_keep_tail<AT_MMA_KEYS>(rows, length);
        } else {
            if (Plan::SCORES == AT_WGMMA_TAIL_IN_SHARED)
                at_take_tail(rows, tail);
            at_fragment_gates(queries, fragment_gate, scores, begin, tail, p);
            if (Plan::SCORES == AT_WGMMA_TAIL_IN_SHARED)
                at_put_tail(rows, tail);
        }
        if (Plan::VALUES == AT_WGMMA_P_IN_SHARED) {
            for (int r = 0; r < 4; r++)
                at_store32(p_tile + at_core(warp * AT_MMA_ROWS + g + 8 * (r % 2), 2 * t + 8 * (r / 2), AT_MMA_KEYS),
                           p[r]);
            at_proxy_fence();
            at_sync();
        }
        if (BY_MMA) {
            at_mma_values<D>(queries, begin, p, v, reinterpret_cast<at_sum_f32(&)[D / 8]>(o));
        } else if (found[0] | found[1] | found[2] | found[3]) {
            at_wgmma_values_by_query<D, COLUMNS>(queries, begin, p, v, o);
        } else {
            at_wgmma_fence(o);
            AT_UNROLL
            for (int i = 0; i < D / COLUMNS; i++) {
                const at_matrix columns = at_core_matrix(v + i * COLUMNS * AT_MMA_KEYS, AT_MMA_KEYS);
                if (Plan::VALUES == AT_WGMMA_P_IN_SHARED)
                    at_wgmma(o[i], at_core_matrix(p_tile, AT_MMA_KEYS), columns, T{}, T{});
                else
                    at_wgmma(o[i], p, columns, T{}, T{});
            }
            at_wgmma_commit();
            at_wgmma_wait<0>(o);
        }
        at_sync();
    }
    const float(&sums)[D / 8][4] = reinterpret_cast<const float(&)[D / 8][4]>(o);
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < D / 8 && queries.first + g + 8 * half < queries.end; i++)
            at_store32(a.o + queries.element(g + 8 * half) + 8 * i + 2 * t,
                       at_pack<T>(sums[i][2 * half], sums[i][2 * half + 1]));
}

template <class T, class Plan> int at_wgmma_prefill_launch(const struct at_launch *launch) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    const dim3 grid = at_mma_grid(z, AT_WGMMA_QUERIES);
    const int64_t shared = at_wgmma_room::of<Plan>((int)z->d, (int)z->taps).bytes();
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return 0;
    return at_mma_with_head_size(z->d, [=]<int D>() {
        return at_launch(at_wgmma_prefill<T, D, Plan>, grid, dim3{ AT_WGMMA_THREADS, 1, 1 }, shared, launch->stream,
                         at_asynct_view<T>::of(problem));
    });
}

/* Reasons to decline; most_taps: what the plan's gate takes. */
static inline const char *at_wgmma_declines(const struct at_problem *problem, int64_t most_taps) {
    if (problem->dtype != AT_BF16)
        return "activations are bf16";
    if (problem->sizes.taps > most_taps)
        return "a filter of more than 3 taps";
    return at_mma_declines(problem);
}
/* The same where the gate's constants are compiled in. */
static inline const char *at_wgmma_constants_decline(const struct at_problem *problem) {
    const struct at_params &p = problem->params;
    if (!p.relu_pre || p.clip_min < 0.0f || p.clip_min > 0.0f || p.clip_max < 1.0f || p.clip_max > 1.0f)
        return "a ReLU before the filter and a gate from 0 to 1 are compiled in";
    return at_wgmma_declines(problem, 3);
}

#endif
