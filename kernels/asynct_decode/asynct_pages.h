/* AsyncT decode by warps that own keys: the filter and the gate on fragments of scores, and a warp's walk over its keys.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ASYNCT_PAGES_H
#define AT_ASYNCT_PAGES_H

#include "kernels/attention/asynct.h"
#include "kernels/attention/warp_pages_walk.h"

/* What a walk does for AsyncT: the filter's history in registers, gates, sums into shared memory. */
template <class T, int D, int HEADS> struct at_asynct_pages {
    using share = at_pages_share<HEADS>;
    static constexpr bool BEHIND = true;
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
        for (int i = 0; i < share::COUNT; i++) {
            gamma[i] = a.gamma[head(i)];
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
            before[i] = first && share::half(lane, i) == 0 ? 0.0f : read(before[i]);
    }
    /* The score of the key j before this lane's: four lanes a key, the last keys of the step before in front. */
    __device__ float earlier(float now, float last, int j) const {
        return at_shuffle(0xffffffffu, lane.g >= AT_PAGES_STEP - j ? last : now, at_lane() - 4 * j + 32);
    }
    /* p of key t. */
    __device__ float gate(int i, float now, int t) const {
        const bool shrunk = a.pooled && a.shrink && t + 1 < a.n_taps; /* a shorter window has taps of its own */
        float share = 0.0f;
        if (shrunk)
            share = a.sigma[head(i)] / (float)(t + 1);
        float z = (shrunk ? 1.0f - share : tap[i][0]) * now;
        AT_UNROLL
        for (int j = 1; j < HELD; j++)
            if (j < a.n_taps)
                z = fmaf(shrunk ? -share : tap[i][j], earlier(now, before[i], j), z);
        AT_NO_UNROLL
        for (int j = HELD; j < a.n_taps; j++)
            z = fmaf(shrunk ? -share : a.taps[head(i) * a.n_taps + j], earlier(now, before[i], j), z);
        return gamma[i] * fmaxf(fminf(fmaxf(z, 0.0f), a.clip_max), a.clip_min);
    }
    __device__ void weights(float (&x)[share::COUNT], const int (&t)[2], const at_pages_run (&run)[2],
                            at_pages_sums<D, HEADS> &) {
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) {
            const bool second = share::half(lane, i) == 1;
            const float now = read(x[i]);
            const int key = (second ? t[1] : t[0]) + lane.g;
            const float p = gate(i, now, key);
            x[i] = has(i) && key < (second ? run[1].end : run[0].end) ? p : 0.0f;
            before[i] = now;
        }
    }
    __device__ void end(const int (&ranges)[2], const at_pages_sums<D, HEADS> &sums) const {
        partials.put(lane.half ? ranges[1] : ranges[0], sums, lane);
    }
};

static inline const char *at_asynct_pages_declines(const struct at_problem *problem) {
    const char *reason = at_pages_declines(problem);
    if (!reason && problem->sizes.taps > AT_PAGES_STEP + 1)
        reason = "more than 9 taps: the filter reaches further back than the step before";
    return reason ? reason : at_asynct_declines(problem, 0);
}

#endif
