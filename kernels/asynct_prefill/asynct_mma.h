/* AsyncT prefill on mma.sync: a warp has 16 queries of one head, the warps of a block share the keys that they walk.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tile of keys: K and V to shared memory; scores by m16n8k16 from q in registers and K by ldmatrix; scores to
 * shared memory behind the last K - 1 of the tile before; each lane filters and gates the elements of P that it needs
 * as an operand, so that P stays in registers; P V in steps of 16 keys by m16n8k16, or of 8 keys by m16n8k8 where a
 * tile has no more, with V by transposing ldmatrix, o in registers. */
#ifndef AT_DEVICE_ASYNCT_MMA_H
#define AT_DEVICE_ASYNCT_MMA_H

#include "kernels/attention/asynct.h"
#include "kernels/attention/attention_mma.h"

/* What kernels here and in asynct_wgmma.h declare: the unit of both products, the format of P, keys a step of P V, and the
 * guard of sums in f16. */
#define AT_ASYNCT_MMA_NUMERICS(UNIT, P, CHUNK, GUARD) \
    { \
        .qk_unit = UNIT, .qk_lanes = 1, .scale_on = AT_SCALE_ON_SCORE, .fir_order = AT_FIR_ORDER_TAPS, .fir_fma = 1, \
        .p = P, .gamma_on = AT_GAMMA_ON_P, .clamp = AT_CLAMP_FMINMAX, .pv_unit = UNIT, .pv_chunk = CHUNK, \
        .guard = GUARD, .repeats = 1, .batch_invariant = 1, .tail = AT_TAIL_UNREAD, .pv_zero = AT_PV_ZERO_MULTIPLIED, \
    }
/* bf16, 16 products a step, sums in f32. */
#define AT_ASYNCT_MMA_BF16_NUMERICS AT_ASYNCT_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, 16, AT_GUARD_NONE)

/* Floats of shared memory for a query: its halo and the scores of a tile. */
template <int KEYS> __host__ __device__ int at_mma_row_length(int n_taps) { return n_taps - 1 + KEYS; }

/* What the filter reads of the scores of 8 N keys, to rows of length `length` whose halo of n_taps - 1 comes first. */
template <class T, class Sum, int N>
__device__ void at_mma_put_scores(const at_asynct_view<T> &a, const Sum (&s)[N], float *rows, int length) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int n = 0; n < N; n++)
        for (int i = 0; i < 4; i++) {
            const float x = s[n][i] * a.scale;
            rows[(g + 8 * (i / 2)) * length + a.n_taps - 1 + 8 * n + 2 * t + i % 2] = a.relu_pre ? fmaxf(x, 0.0f) : x;
        }
}

/* P as an operand: 16 queries by 4 A keys from `begin` on, 0 where a query does not see the key. */
template <class T, int A>
__device__ void at_mma_gates(const at_mma_queries<T> &queries, const at_asynct_gate &gate, const float *rows,
                             int length, int begin, uint32_t (&p)[A]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    AT_UNROLL
    for (int r = 0; r < A; r++) {
        const int row = g + 8 * (r % 2), first = 2 * t + 8 * (r / 2), keys = queries.visible(row) - begin;
        const float *score = rows + row * length + gate.n_taps - 1 + first;
        const float low = first < keys ? gate(score, begin + first) : 0.0f;
        const float high = first + 1 < keys ? gate(score + 1, begin + first + 1) : 0.0f;
        p[r] = at_pack<T>(low, high);
    }
}

/* The last scores of a tile become the halo of the next. A lane has a whole row: a halo longer than a tile moves into
 * its own place. */
template <int KEYS> __device__ void at_mma_keep_tail(float *rows, int length) {
    float *row = rows + at_lane() * length;
    for (int i = 0; at_lane() < AT_MMA_ROWS && i < length - KEYS; i++)
        row[i] = row[i + KEYS];
}

/* A warp on its way along the keys, KEYS at a time. Load: how operands come from shared memory. */
template <class T, int D, class Sum, int KEYS, class Load> struct at_mma_walk {
    static constexpr int STEP = KEYS < AT_MMA_KEYS ? KEYS : AT_MMA_KEYS, STEPS = KEYS / STEP; /* keys of P V at once */
    static_assert(KEYS == 8 || KEYS % AT_MMA_KEYS == 0, "whole steps of P V");
    const at_asynct_view<T> &a;
    const at_mma_queries<T> &queries;
    const at_asynct_gate gate;
    const at_mma_q<D, T> q;
    float *const rows; /* of the warp, AT_MMA_ROWS at_mma_row_length<KEYS> */
    const int length;
    Sum o[D / 8] = {};

    __device__ at_mma_walk(const at_asynct_view<T> &view, const at_mma_queries<T> &of, float *scores)
        : a(view), queries(of), gate(at_asynct_gate::of(view, of.head)), q(of), rows(scores),
          length(at_mma_row_length<KEYS>(view.n_taps)) {
        if constexpr (KEYS < AT_ASYNCT_MAX_TAPS - 1) /* keep_tail moves what is no score yet */
            for (int i = 0; at_lane() < AT_MMA_ROWS && i < length - KEYS; i++)
                rows[at_lane() * length + i] = 0.0f;
    }

    /* Takes the tile that begins with key `begin`. When a lane is back, all of the warp have read the tile. Inlined
     * always: the sums stay in registers. */
    __device__ __forceinline__ void take(int begin, const T *k, const T *v) {
        for (int i = 0; i < STEPS; i++) {
            Sum s[STEP / 8] = {};
            at_mma_scores<Load>(q, k + i * STEP * AT_MMA_STRIDE<D>, s);
            at_mma_put_scores(a, s, rows + i * STEP, length);
        }
        at_sync_warp();
        for (int i = 0; i < STEPS; i++) {
            uint32_t p[STEP / 4];
            at_mma_gates(queries, gate, rows + i * STEP, length, begin + i * STEP, p);
            at_mma_values<D, Load>(queries, begin + i * STEP, p, v + i * STEP * AT_MMA_STRIDE<D>, o);
        }
        at_sync_warp();
        at_mma_keep_tail<KEYS>(rows, length);
    }
    __device__ void store() const {
        const int g = at_lane() / 4, t = at_lane() % 4;
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            AT_UNROLL
            for (int i = 0; i < D / 8 && queries.first + g + 8 * half < queries.end; i++)
                at_store32(a.o + queries.element(g + 8 * half) + 8 * i + 2 * t,
                           at_pack<T>(o[i][2 * half], o[i][2 * half + 1]));
        }
    }
};

/* Shared memory: STAGES tiles of KEYS keys, K and V of each, then the rows of scores of WARPS warps. */
template <class T, int D, int KEYS, int STAGES = 1> struct at_mma_shared {
    static constexpr int TILE = KEYS * AT_MMA_STRIDE<D>; /* elements of K, or of V */
    T *memory;

    __device__ T *k(int stage = 0) const { return memory + 2 * stage * TILE; }
    __device__ T *v(int stage = 0) const { return k(stage) + TILE; }
    __device__ float *rows(int warp, int n_taps) const {
        return reinterpret_cast<float *>(k(STAGES)) + warp * AT_MMA_ROWS * at_mma_row_length<KEYS>(n_taps);
    }
    static int64_t bytes(int warps, const struct at_sizes *z) {
        return STAGES * 2 * TILE * (int64_t)sizeof(T) +
               warps * AT_MMA_ROWS * at_mma_row_length<KEYS>((int)z->taps) * (int64_t)sizeof(float);
    }
};

/* The queries of tile `tile` of WARPS times 16, by the whole block. Ends with a barrier, or without any where no query
 * of the tile sees a key. */
template <class T, int D, int WARPS, class Sum, int KEYS, class Load>
__device__ __forceinline__ void at_mma_attend(const at_asynct_view<T> &a, const at_mma_shared<T, D, KEYS> &shared,
                                              int request, int head, int tile) {
    const int warp = (int)threadIdx.x / 32;
    const at_mma_queries<T> last(a, request, head, tile * WARPS + WARPS - 1),
        queries(a, request, head, tile * WARPS + warp);
    if (tile * WARPS * AT_MMA_ROWS >= queries.end)
        return;
    const int keys = last.visible(AT_MMA_ROWS - 1); /* of the block */
    at_mma_walk<T, D, Sum, KEYS, Load> walk(a, queries, shared.rows(warp, a.n_taps));
    for (int begin = 0; begin < keys; begin += KEYS) {
        at_mma_stage<D, KEYS>(a, request, queries.kv_head, begin, keys, shared.k(), shared.v());
        at_sync();
        if (begin < queries.keys)
            walk.take(begin, shared.k(), shared.v());
        at_sync();
    }
    walk.store();
}

template <class T, int D, int WARPS, class Sum, int KEYS, class Load>
static __global__ void __launch_bounds__(32 * WARPS, 1) at_mma_prefill(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    at_mma_attend<T, D, WARPS, Sum, KEYS, Load>(a, at_mma_shared<T, D, KEYS>{ memory }, (int)blockIdx.y,
                                                (int)blockIdx.x, (int)blockIdx.z);
}

/* A kernel on a grid that may be empty; `args` follow the view. */
template <class T, class... P, class... A>
int at_mma_launch(const struct at_launch *launch, void (*kernel)(at_asynct_view<T>, P...), dim3 grid, int warps,
                  int64_t shared, A... args) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return 0;
    return at_launch(kernel, grid, dim3{ 32 * (unsigned)warps, 1, 1 }, shared, launch->stream,
                     at_asynct_view<T>::of(launch->problem), args...);
}

template <class T, int WARPS, class Sum, int KEYS = AT_MMA_KEYS, class Load = at_mma_ldmatrix>
int at_mma_prefill_launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    return at_mma_with_head_size(z->d, [=]<int D>() {
        return at_mma_launch(launch, at_mma_prefill<T, D, WARPS, Sum, KEYS, Load>, at_mma_grid(z, WARPS * AT_MMA_ROWS),
                             WARPS, at_mma_shared<T, D, KEYS>::bytes(WARPS, z));
    });
}

#endif
