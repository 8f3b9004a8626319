/* AsyncT of up to 16 queries a request against many keys, the query heads of a kv head packed; bf16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 09_mma_bk_32, the rows of a warp are those of all query heads of a kv head, each with the gate of its head, a
 * block has a range of 1024 keys, and three tiles of K and V are under way by cp.async while one is multiplied. Rows,
 * ranges and tiles are in kernels/attention/packed_rows.h. A range after the first begins a tile earlier, of whose scores
 * the filter takes the last K - 1 as its halo; that tile's values belong to the range before.
 *
 * Numerically: as 04_mma in each range of 1024 keys, whose f32 sums are added in ascending order.
 *
 * Launch: grid (kv heads times blocks of 64 rows, requests, ranges that the longest request can have), 4 warps of 16 rows
 * each; shared memory 512 (d + 8) bytes for four tiles of 32 keys and 256 (31 + K) bytes of scores. One barrier of the
 * block and two of each warp a tile. Then grid (query heads, requests, queries of the longest request), 128 threads, which
 * add the ranges. Scratch: 4 d bytes for each token, query head and range.
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
constexpr int KEYS = 32, STAGES = 4, STEP = AT_MMA_KEYS;
constexpr int BATCH = 8; /* ranges whose sums a thread loads at once: one after the other, each would wait for memory */
static_assert(KEYS >= AT_ASYNCT_MAX_TAPS - 1, "one tile before a range holds its halo");
template <int D> using ring_of = at_packed_ring<T, D, KEYS, STAGES>;

/* The gates of a lane's rows g and g + 8, and the keys that these see. */
struct gates_of_rows {
    at_asynct_gate gate[2];
    int visible[2];
    float taps[2][3]; /* of three taps, in registers */

    __device__ static gates_of_rows of(const at_asynct_view<T> &view, const at_packed_rows<T> &rows) {
        gates_of_rows all;
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            const int row = at_lane() / 4 + 8 * half;
            all.gate[half] = at_asynct_gate::of(view, rows.head(row));
            all.visible[half] = rows.visible(row);
            for (int j = 0; j < 3; j++)
                all.taps[half][j] = view.n_taps == 3 ? all.gate[half].taps[j] : 0.0f;
        }
        return all;
    }
};
__device__ inline const at_asynct_gate &at_gate_of_row(const gates_of_rows &gates, int half) {
    return gates.gate[half];
}

/* P of a step whose first key is `from`, as scores.gates gives it, where the filter has three taps and every key two before
 * it: no loop, nothing read but scores, and gates of a lane that do not wait for each other. */
__device__ void gates_of_3_taps(const at_score_rows<T, KEYS, gates_of_rows> &scores, int from, int key,
                                uint32_t (&p)[STEP / 4]) {
    const gates_of_rows &gates = scores.gates_of;
    const int g = at_lane() / 4, t = at_lane() % 4;
    AT_UNROLL
    for (int r = 0; r < STEP / 4; r++) {
        const int half = r % 2, first = 2 * t + 8 * (r / 2), keys = gates.visible[half] - from;
        const float *score = scores.rows + (g + 8 * half) * scores.length + key + first; /* two keys before `first` */
        const float s[4] = { score[0], score[1], score[2], score[3] };
        float gated[2];
        AT_UNROLL
        for (int i = 0; i < 2; i++) {
            const float(&tap)[3] = gates.taps[half];
            const float z = fmaf(tap[2], s[i], fmaf(tap[1], s[i + 1], tap[0] * s[i + 2]));
            const float clipped = fmaxf(fminf(fmaxf(z, 0.0f), scores.a.clip_max), scores.a.clip_min);
            gated[i] = first + i < keys ? gates.gate[half].gamma * clipped : 0.0f;
        }
        p[r] = at_pack<T>(gated[0], gated[1]);
    }
}

/* Channel 0 of what range `range` of `ranges` leaves for a token and a query head. */
__device__ float *partial_of(const at_asynct_view<T> &a, int token, int head, float *partials, int ranges, int range) {
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

template <int D>
__global__ void __launch_bounds__(AT_PACKED_THREADS, 1) attend_range(at_asynct_view<T> a, float *partials) {
    AT_SHARED_DYNAMIC(T, memory);
    const ring_of<D> ring{ memory };
    const at_packed_block<T> block(a);
    if (block.empty())
        return;
    const at_packed_rows<T> &rows = block.rows;
    const at_score_rows<T, KEYS, gates_of_rows> scores(
        a, rows,
        reinterpret_cast<float *>(ring.k(STAGES)) + block.warp * AT_MMA_ROWS * at_mma_row_length<KEYS>(a.n_taps));
    const at_mma_q<D, T> q(rows);
    sum o[D / 8] = {};
    const int first = block.begin > 0 ? block.begin - KEYS : 0; /* the halo's tile, or that of the first keys */
    for (int i = 0; i < STAGES - 1; i++)
        ring.copy(block, first + i * KEYS, i);
    for (int begin = first, stage = 0; begin < block.keys; begin += KEYS, stage = (stage + 1) % STAGES) {
        at_copy_wait<STAGES - 2>();
        at_sync(); /* the tile is there, and all have left the one before it */
        ring.copy(block, begin + (STAGES - 1) * KEYS, (stage + STAGES - 1) % STAGES);
        if (begin >= rows.keys)
            continue;
        AT_UNROLL
        for (int key = 0; key < KEYS; key += STEP) {
            sum s[STEP / 8] = {};
            at_mma_scores(q, ring.k(stage) + key * AT_MMA_STRIDE<D>, s);
            scores.put(s, key);
        }
        at_sync_warp();
        AT_UNROLL
        for (int key = 0; key < KEYS && begin >= block.begin; key += STEP) {
            uint32_t p[STEP / 4];
            if (a.n_taps == 3 && begin + key >= 2)
                gates_of_3_taps(scores, begin + key, key, p);
            else
                scores.gates(rows, begin, p, key);
            at_mma_values<D>(rows, begin + key, p, ring.v(stage) + key * AT_MMA_STRIDE<D>, o);
        }
        at_sync_warp();
        scores.keep_tail();
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

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_packed_launch<at_asynct_view<T>>(
            launch, attend_range<D>, ring_of<D>::BYTES + at_mma_rows_bytes<KEYS>(AT_PACKED_WARPS, launch), add_ranges);
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
