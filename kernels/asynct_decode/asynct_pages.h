/* AsyncT decode by warps that own keys: the filter and the gate on fragments of scores, and a warp's walk over its keys.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ASYNCT_PAGES_H
#define AT_ASYNCT_PAGES_H

#include "kernels/attention/asynct.h"
#include "kernels/attention/warp_pages_walk.h"

/* What a walk does for AsyncT: the filter's history in registers, gates, sums into shared memory. */
template <class T, int D, int HEADS> struct at_asynct_pages {
    using share = at_pages_share<HEADS>;
    static constexpr bool BEHIND = true, EVERY = false;
    static constexpr int HELD = 3; /* taps in registers; further ones are read when they are wanted */
    const at_asynct_view<T> &a;
    const at_pages_block<T, HEADS> &block;
    const at_pages_partials<D, HEADS> &partials;
    const at_pages_lane &lane;
    float tap[share::COUNT][HELD], gamma[share::COUNT];
    float before[share::COUNT]; /* what the filter reads of the step before */

    __device__ at_asynct_pages(const at_asynct_view<T> &view, const at_pages_block<T, HEADS> &of,
                               const at_pages_partials<D, HEADS> &to, const at_pages_lane &at)
        : a(view), block(of), partials(to), lane(at) {}
    __device__ bool has(int i) const { return share::head(lane, i) < block.heads; }
    __device__ int head(int i) const { return block.head + (has(i) ? share::head(lane, i) : 0); }
    __device__ void prepare() {
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++)
            gamma[i] = a.gamma[head(i)];
        load_taps();
    }
    __device__ void load_taps() {
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) {
            AT_UNROLL
            for (int j = 0; j < HELD; j++)
                tap[i][j] = j < a.n_taps ? a.taps[head(i) * a.n_taps + j] : 0.0f;
        }
    }
    __device__ int behind() const { return a.n_taps - 1; }
    __device__ float read(float dot) const {
        const float s = dot * a.scale;
        return a.relu_pre ? fmaxf(s, 0.0f) : s;
    }
    __device__ void begin(const at_sum_f32 &dots, bool first) {
        share::take(dots, lane, before);
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++)
            before[i] = first ? 0.0f : read(before[i]);
    }
    /* The scores of the keys j before the lane's, those of the step before in front: each lane gives what the one that
     * asks it wants. */
    __device__ void earlier(const float (&now)[share::COUNT], int j, float (&x)[share::COUNT]) const {
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) {
            if constexpr (share::COUNT == 4) {
                const int asks = (lane.g + j) % 4 + 4 * (i / 2), wanted = asks - j; /* keys */
                const float low = wanted < 0 ? before[i % 2] : now[i % 2],
                            high = wanted < 0 ? before[2 + i % 2] : now[2 + i % 2];
                x[i] = at_shuffle(0xffffffffu, (wanted & 4) ? high : low, at_lane() - 4 * j, 16);
            } else {
                const int own = share::key(lane, i), wanted = (own - j) & 7;
                x[i] = at_shuffle(0xffffffffu, own + j >= AT_PAGES_STEP ? before[i] : now[i],
                                  4 * (wanted & 3) + 2 * (wanted / 4) + lane.t % 2, 16);
            }
        }
    }
    /* Gives the lane's keys from t on whose window is shorter the taps of such a window. */
    __device__ void shorten(int t) {
        for (int i = 0; i < share::COUNT; i++) {
            const int key = t + share::key(lane, i);
            if (key + 1 >= a.n_taps)
                continue;
            const float share = a.sigma[head(i)] / (float)(key + 1);
            tap[i][0] = 1.0f - share;
            for (int j = 1; j < HELD; j++)
                tap[i][j] = -share;
        }
    }
    /* Tap j, of those that are not held. */
    __device__ float further_tap(int i, int j, bool shrinks, int t) const {
        return shrinks && t + share::key(lane, i) + 1 < a.n_taps ? tap[i][1] : a.taps[head(i) * a.n_taps + j];
    }
    __device__ void weights(float (&x)[share::COUNT], int t, int end, at_pages_sums<D, HEADS> &) {
        const bool shrinks = a.pooled && a.shrink && t < a.n_taps - 1; /* the same for all lanes of a half */
        float now[share::COUNT], z[share::COUNT], past[share::COUNT];
        if (shrinks)
            shorten(t);
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) {
            now[i] = read(x[i]);
            z[i] = tap[i][0] * now[i];
        }
        AT_UNROLL
        for (int j = 1; j < HELD; j++) {
            earlier(now, j, past);
            AT_UNROLL
            for (int i = 0; i < share::COUNT; i++)
                z[i] = j < a.n_taps ? fmaf(tap[i][j], past[i], z[i]) : z[i];
        }
        AT_NO_UNROLL
        for (int j = HELD; j < a.n_taps; j++) {
            earlier(now, j, past);
            AT_UNROLL
            for (int i = 0; i < share::COUNT; i++)
                z[i] = fmaf(further_tap(i, j, shrinks, t), past[i], z[i]);
        }
        if (shrinks)
            load_taps();
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) {
            const float p = gamma[i] * fmaxf(fminf(fmaxf(z[i], 0.0f), a.clip_max), a.clip_min);
            x[i] = has(i) && t + share::key(lane, i) < end ? p : 0.0f;
            before[i] = now[i];
        }
    }
    __device__ void end(int range, const at_pages_sums<D, HEADS> &sums) const { partials.put(range, sums, lane); }
};

static inline const char *at_asynct_pages_declines(const struct at_problem *problem) {
    const char *reason = at_pages_declines(problem);
    if (!reason && problem->sizes.taps > AT_PAGES_STEP + 1)
        reason = "more than 9 taps: the filter reaches further back than the step before";
    return reason ? reason : at_asynct_declines(problem, 0);
}

/* The kernels: a block for some ranges of the keys of a kv head's query heads. */
template <class T, int D, int HEADS>
__global__ void __launch_bounds__(at_pages_threads(D, HEADS), 1)
    at_asynct_pages_attend(at_asynct_view<T> a, at_pages_shape shape) {
    AT_SHARED_DYNAMIC(float, shared);
    at_pages_await_turn(a, shape);
    const at_pages_block<T, HEADS> block(a, shape);
    if (block.absent())
        return;
    if (shape.log_cluster > 0)
        at_cluster_arrive_relaxed();
    const at_pages_lane lane;
    const at_pages_start start(a, shape, lane);
    const at_pages_partials<D, HEADS> partials(shared, shape);
    at_asynct_pages<T, D, HEADS> op(a, block, partials, lane);
    op.prepare();
    at_pages_walk<T, D, HEADS>(a, shape, block, start, lane, op);
    at_pages_meet(shape);
    const auto as_it_is = [](int, int, float sum) { return sum; };
    partials.template join<32>(block.ranges(), block.heads, as_it_is, [&](int head, int channel, float sum) {
        a.o[((int64_t)block.token * a.h + block.head + head) * a.d + channel] = at_round_to<T>(sum);
    });
}

/* A row's keys in 2 ^ log_ranges ranges. */
static inline int at_asynct_pages_launch(const struct at_launch *launch, int log_ranges) {
    return at_pages_with_sizes(&launch->problem->sizes, [=]<int D, int HEADS>() {
        return at_pages_launch<at_asynct_view>(
            launch, []<class T>() { return at_asynct_pages_attend<T, D, HEADS>; }, log_ranges, 0);
    });
}

/* What a kernel of 2 ^ log_ranges ranges declares. */
#define AT_ASYNCT_PAGES_NUMERICS(log_ranges) \
    { \
        .qk_unit = AT_UNIT_TC_F32, .qk_lanes = 1, .qk_run = 8, .scale_on = AT_SCALE_ON_SCORE, \
        .fir_order = AT_FIR_ORDER_TAPS, .fir_fma = 1, .p = AT_F32, .gamma_on = AT_GAMMA_ON_P, \
        .clamp = AT_CLAMP_FMINMAX, .pv_unit = AT_UNIT_F32_FMA, .pv_chunk = 1, .split = AT_PAGES_STEP, \
        .splits = 1 << (log_ranges), .repeats = 1, .batch_invariant = 1, .tail = AT_TAIL_UNREAD, \
        .pv_zero = AT_PV_ZERO_SKIPPED, \
    }

#endif
