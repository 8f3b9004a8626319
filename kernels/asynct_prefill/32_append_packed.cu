/* AsyncT of up to 16 queries a request against many keys, the query heads of a kv head packed; bf16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 09_mma_bk_32, the rows of a warp are those of all query heads of a kv head, each with the gate of its head, a
 * block has a range of 1024 keys, two tiles of K and V are under way by cp.async while one is multiplied, and scores of a
 * gate of three taps stay in registers. Rows, ranges and tiles are in kernels/attention/packed_rows.h. A range after the
 * first begins a tile earlier, of whose scores the filter takes the last K - 1 as its halo; that tile's values belong to
 * the range before.
 *
 * Numerically: as 04_mma in each range of 1024 keys, whose f32 sums are added in ascending order.
 *
 * Launch: grid (kv heads times blocks of rows, requests, ranges that the longest request can have), 2 warps of 16 rows
 * each, or 4 where a request may have more than 32 rows; shared memory 384 (d + 8) bytes for three tiles of 32 keys; one
 * barrier of the block a tile. Unless K is 3: 64 (31 + K) bytes of scores and two barriers of its own a warp, too. Then
 * grid (query heads, requests, queries of the longest request), 128 threads, which add the ranges. Scratch: 4 d bytes for
 * each token, query head and range.
 *
 * Limits: bf16; d 32, 64, 96 or 128; at most 16 queries a request and 16 query heads a kv head.
 *
 * Source: ours. */
#include "kernels/asynct_prefill/asynct_mma.h"
#include "kernels/attention/asynct_decode.h"
#include "kernels/attention/packed_rows.h"

namespace {

using T = at_bf16;
using sum = at_sum_f32;
constexpr int KEYS = 32, STAGES = 3, STEP = AT_MMA_KEYS;
constexpr int BATCH = 8; /* ranges whose sums a thread loads at once: one after the other, each would wait for memory */
static_assert(KEYS >= AT_ASYNCT_MAX_TAPS - 1, "one tile before a range holds its halo");
using places = at_packed_places<KEYS>;
template <int D> using ring_of = at_packed_ring<T, D, KEYS, STAGES>;

/* The gates of a lane's rows g and g + 8. */
struct gates_of_rows {
    at_asynct_gate gate[2];

    __device__ static gates_of_rows of(const at_asynct_view<T> &view, const at_packed_rows<T> &rows) {
        const int g = at_lane() / 4;
        return { { at_asynct_gate::of(view, rows.head(g)), at_asynct_gate::of(view, rows.head(g + 8)) } };
    }
};
__device__ inline const at_asynct_gate &at_gate_of_row(const gates_of_rows &gates, int half) {
    return gates.gate[half];
}

/* ---- from a tile's scores to P ---- */

/* Any number of taps: scores go through shared memory. */
template <int D> struct filter_in_rows {
    const at_packed_rows<T> &rows;
    const at_score_rows<T, KEYS, gates_of_rows> scores;

    __device__ filter_in_rows(const at_asynct_view<T> &view, const at_packed_block<T> &block, float *memory)
        : rows(block.rows),
          scores(view, rows, memory + block.warp * AT_MMA_ROWS * at_mma_row_length<KEYS>(view.n_taps)) {}

    static int64_t bytes(int warps, const struct at_launch *launch) { return at_mma_rows_bytes<KEYS>(warps, launch); }
    /* The scores of a tile. */
    __device__ void take(const at_mma_q<D, T> &q, const T *k) {
        AT_UNROLL
        for (int key = 0; key < KEYS; key += STEP) {
            sum s[STEP / 8] = {};
            at_mma_scores(q, k + key * AT_MMA_STRIDE<D>, s);
            scores.put(s, key);
        }
        at_sync_warp();
    }
    /* P of a step, the tile's key `key` and those behind it, where the tile begins with key `begin`. */
    __device__ void gates(int begin, int key, uint32_t (&p)[STEP / 4]) const { scores.gates(rows, begin, p, key); }
    __device__ void leave() {
        at_sync_warp();
        scores.keep_tail();
    }
};

/* Three taps: a lane has the scores of keys 2 t and 2 t + 1 of every eight, and lane t - 1 those of the two keys before them.
 * No shared memory, no loop over taps, no wait of the warp. */
template <int D> struct filter_of_3_taps {
    const at_asynct_view<T> &a;
    gates_of_rows of_row;
    float taps[2][3];
    int visible[2];
    const int least;           /* keys that every row of the warp sees */
    const float low;           /* of the gate and its ReLU: as clip_min <= clip_max, both with one maximum */
    float s[KEYS / 8][4] = {}; /* as the product leaves them, scaled */
    float tail[4] = {};        /* of the tile before, its last eight keys */

    __device__ filter_of_3_taps(const at_asynct_view<T> &view, const at_packed_block<T> &block, float *)
        : a(view), of_row(gates_of_rows::of(view, block.rows)), least(block.rows.least),
          low(fmaxf(view.clip_min, 0.0f)) {
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            visible[half] = block.rows.visible(at_lane() / 4 + 8 * half);
            of_row.gate[half].n_taps = 3; /* for the compiler */
            for (int j = 0; j < 3; j++)
                taps[half][j] = of_row.gate[half].taps[j];
        }
    }

    static int64_t bytes(int, const struct at_launch *) { return 0; }
    __device__ void take(const at_mma_q<D, T> &q, const T *k) {
        AT_UNROLL
        for (int n = 0; n < KEYS / 8; n += 2) {
            sum x[2] = {};
            at_mma_scores(q, k + 8 * n * AT_MMA_STRIDE<D>, x);
            for (int i = 0; i < 8; i++) {
                const float score = x[i / 4][i % 4] * a.scale;
                s[n + i / 4][i % 4] = a.relu_pre ? fmaxf(score, 0.0f) : score;
            }
        }
    }
    __device__ void gates(int begin, int key, uint32_t (&p)[STEP / 4]) const {
        if (begin > 0 && begin + KEYS <= least)
            gates_of<1>(begin, key, p);
        else
            gates_of<0>(begin, key, p);
    }
    __device__ void leave() {
        for (int i = 0; i < 4; i++)
            tail[i] = s[KEYS / 8 - 1][i];
    }

  private:
    /* PLAIN: tiles of which all rows see every key, none of them among the first two; most tiles are. */
    template <bool PLAIN> __device__ __forceinline__ void gates_of(int begin, int key, uint32_t (&p)[STEP / 4]) const {
        const int t = at_lane() % 4, before = at_lane() - t + (t + 3) % 4;
        AT_UNROLL
        for (int r = 0; r < STEP / 4; r++) {
            const int half = r % 2, n = key / 8 + r / 2, first = begin + 8 * n + 2 * t;
            const float *now = &s[n][2 * half], *last = n > 0 ? &s[n - 1][2 * half] : &tail[2 * half];
            /* lane 3's go to lane 0 of the next eight keys */
            const float two = at_shuffle(0xffffffffu, t == 3 ? last[0] : now[0], before);
            const float one = at_shuffle(0xffffffffu, t == 3 ? last[1] : now[1], before);
            const float z[2] = { filtered(half, now[0], one, two), filtered(half, now[1], now[0], one) };
            float gated[2];
            AT_UNROLL
            for (int i = 0; i < 2; i++)
                gated[i] = of_row.gate[half].gamma * fminf(fmaxf(z[i], low), a.clip_max);
            if (!PLAIN) {
                if (first < 2) { /* fewer keys than taps; a copy, so that s stays in registers */
                    const float keys[2] = { now[0], now[1] };
                    gated[0] = of_row.gate[half](keys, 0);
                    gated[1] = of_row.gate[half](keys + 1, 1);
                }
                gated[0] = first < visible[half] ? gated[0] : 0.0f;
                gated[1] = first + 1 < visible[half] ? gated[1] : 0.0f;
            }
            p[r] = at_pack<T>(gated[0], gated[1]);
        }
    }
    __device__ float filtered(int half, float now, float one, float two) const {
        const float(&tap)[3] = taps[half];
        return fmaf(tap[2], two, fmaf(tap[1], one, tap[0] * now));
    }
};

/* ---- ranges ---- */

/* Channel 0 of what range `range` of `ranges` leaves for a token and a query head. */
static __device__ float *partial_of(const at_asynct_view<T> &a, int token, int head, float *partials, int ranges,
                                    int range) {
    return partials + (((int64_t)token * a.h + head) * ranges + range) * a.d;
}

/* Stores the sums of rows that see a key of the range. */
template <int N>
__device__ void store_partials(const at_asynct_view<T> &a, const at_packed_block<T> &block, const sum (&o)[N],
                               float *partials) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half;
        if (!block.rows.has(row) || block.rows.visible(row) <= block.begin)
            continue;
        float *partial =
            partial_of(a, block.rows.token(row), block.rows.head(row), partials, (int)gridDim.z, (int)blockIdx.z);
        AT_UNROLL
        for (int i = 0; i < N; i++)
            for (int j = 0; j < 2; j++)
                partial[8 * i + 2 * t + j] = o[i][2 * half + j];
    }
}

template <int D, class Filter>
__global__ void __launch_bounds__(AT_PACKED_THREADS, 1) attend_range(at_asynct_view<T> a, float *partials) {
    AT_SHARED_DYNAMIC(T, memory);
    const ring_of<D> ring{ memory };
    const at_packed_block<T> block(a);
    if (block.empty())
        return;
    Filter filter(a, block, reinterpret_cast<float *>(ring.k(STAGES)));
    const at_mma_q<D, T> q(block.rows);
    sum o[D / 8] = {};
    const int first = block.begin > 0 ? block.begin - KEYS : 0; /* the halo's tile, or that of the first keys */
    for (int i = 0; i < STAGES - 1; i++)
        ring.copy(block, places::of(block, first + i * KEYS), first + i * KEYS, i);
    auto next = places::of(block, first + (STAGES - 1) * KEYS);
    for (int begin = first, stage = 0; begin < block.keys; begin += KEYS, stage = (stage + 1) % STAGES) {
        at_copy_wait<STAGES - 2>();
        at_sync(); /* the tile is there, and all have left the one before it */
        ring.copy(block, next, begin + (STAGES - 1) * KEYS, (stage + STAGES - 1) % STAGES);
        next = places::of(block, begin + STAGES * KEYS);
        if (begin >= block.rows.keys)
            continue;
        filter.take(q, ring.k(stage));
        AT_UNROLL
        for (int key = 0; key < KEYS && begin >= block.begin; key += STEP) {
            uint32_t p[STEP / 4];
            filter.gates(begin, key, p);
            at_mma_values<D>(block.rows, begin + key, p, ring.v(stage) + key * AT_MMA_STRIDE<D>, o);
        }
        filter.leave();
    }
    store_partials(a, block, o, partials);
}

/* The second launch: adds the ranges of which the token sees a key. */
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    add_ranges(at_asynct_view<T> a, float *partials, int max_ranges) {
    const int head = (int)blockIdx.x, request = (int)blockIdx.y, token = a.query_start[request] + (int)blockIdx.z;
    if (token >= a.query_start[request + 1])
        return;
    const at_decode_query<T> query(a, head, request, token, a.visible(request, (int)blockIdx.z));
    const int ranges = at_split_ranges<AT_PACKED_RANGE>(query.keys);
    const float *partial = partial_of(a, token, head, partials, max_ranges, 0);
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS) {
        float all = ranges > 0 ? partial[c] : 0.0f;
        for (int i = 1; i < ranges; i += BATCH) {
            float more[BATCH];
            AT_UNROLL
            for (int k = 0; k < BATCH; k++)
                if (i + k < ranges)
                    more[k] = partial[(i + k) * a.d + c];
            AT_UNROLL
            for (int k = 0; k < BATCH; k++)
                if (i + k < ranges)
                    all += more[k];
        }
        query.put(c, all);
    }
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_packed_declines(problem);
}

int64_t workspace(const struct at_problem *problem) { return at_packed_workspace(&problem->sizes, problem->sizes.d); }

template <int D, class Filter> int launch_with(const struct at_launch *launch) {
    const int64_t bytes = ring_of<D>::BYTES + Filter::bytes(at_packed_warps(launch->problem), launch);
    return at_packed_launch<at_asynct_view<T>>(launch, attend_range<D, Filter>, bytes, add_ranges);
}

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return launch->problem->sizes.taps == 3 ? launch_with<D, filter_of_3_taps<D>>(launch)
                                                : launch_with<D, filter_in_rows<D>>(launch);
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 32_append_packed) = {
    .summary = "few queries and many keys: the heads of a kv head packed, ranges of 1024 keys, cp.async",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_TC_F32,
        .qk_lanes = 1,
        .scale_on = AT_SCALE_ON_SCORE,
        .fir_order = AT_FIR_ORDER_TAPS,
        .fir_fma = 1,
        .p = AT_BF16,
        .gamma_on = AT_GAMMA_ON_P,
        .clamp = AT_CLAMP_FMINMAX,
        .pv_unit = AT_UNIT_TC_F32,
        .pv_chunk = STEP,
        .split = AT_PACKED_RANGE,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = workspace,
    .launch = launch,
};
