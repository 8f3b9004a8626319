/* Softmax decode by warps that own keys: an online softmax in each half of a warp, and the join of their parts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SOFTMAX_PAGES_H
#define AT_SOFTMAX_PAGES_H

#include "kernels/attention/softmax.h"
#include "kernels/attention/warp_pages_walk.h"

using at_softmax_pages_exp = at_softmax_ex2<AT_DIVIDE_RCP_APPROX_FTZ>;

/* A maximum and a sum of weights for each range and head, in every block of the cluster; behind them those of rows. */
template <int HEADS> struct at_softmax_totals {
    at_softmax_total (*x)[HEADS];
    int cluster;

    __device__ void put(int range, int head, float max, float sum) const {
        for (int r = 0; r < cluster; r++) {
            at_softmax_total *to = &x[range][head];
            if (cluster > 1)
                to = at_cluster_map(to, r);
            to->max = max;
            to->sum = sum;
        }
    }
};

/* What a walk does for softmax. */
template <class T, int D, int HEADS> struct at_softmax_pages {
    using share = at_pages_share<HEADS>;
    static constexpr bool BEHIND = false, EVERY = true;
    const at_pages_block<T, HEADS> &block;
    const at_pages_partials<D, HEADS> &partials;
    const at_softmax_totals<HEADS> &total;
    const at_pages_lane &lane;
    const at_softmax_pages_exp exp;
    float max[share::COUNT], sum[share::COUNT]; /* of a range; the sum of this lane's keys */

    __device__ at_softmax_pages(const at_softmax_view<T> &a, const at_pages_block<T, HEADS> &of,
                                const at_pages_partials<D, HEADS> &to, const at_softmax_totals<HEADS> &and_to,
                                const at_pages_lane &at)
        : block(of), partials(to), total(and_to), lane(at), exp(a.scale) {}
    __device__ bool has(int i) const { return share::head(lane, i) < block.heads; }
    __device__ bool seen(int i, int t, int end) const { return has(i) && t + share::key(lane, i) < end; }
    __device__ void prepare() {
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) {
            max[i] = -INFINITY;
            sum[i] = 0.0f;
        }
    }
    __device__ static int behind() { return 0; }
    __device__ static void begin(const at_sum_f32 &, bool) {}
    __device__ void weights(float (&x)[share::COUNT], int t, int end, at_pages_sums<D, HEADS> &sums) {
        float factor[share::COUNT], score[share::COUNT], now[share::COUNT];
        bool rescales = false;
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) {
            score[i] = seen(i, t, end) ? at_softmax_pages_exp::score(x[i]) : -INFINITY;
            now[i] = fmaxf(max[i], score[i]);
            AT_UNROLL
            for (int with = share::COUNT == 4 ? 4 : 2; with < 16; with *= 2) /* the half's other keys */
                now[i] = fmaxf(now[i], at_shuffle_xor(0xffffffffu, now[i], with));
        }
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) {
            const float all = share::COUNT == 4 ? fmaxf(now[i], now[(i + share::COUNT / 2) % share::COUNT]) : now[i];
            factor[i] = exp.factor(max[i], all);
            rescales |= factor[i] != 1.0f;
            x[i] = seen(i, t, end) ? exp.weight(score[i], exp.base(all), 0) : 0.0f;
            max[i] = all;
            sum[i] *= factor[i];
            sum[i] += x[i];
        }
        if (at_ballot(0xffffffffu, rescales)) {
            AT_UNROLL
            for (int n = 0; n < HEADS; n++)
                sums.scale(n, share::of(factor, 0, n));
        }
    }
    __device__ void end(int range, const at_pages_sums<D, HEADS> &sums) {
        partials.put(range, sums, lane);
        float l[share::COUNT];
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) /* key k and k + 4, then k + 2, then k + 1 */
            l[i] = sum[i] + (share::COUNT == 4 ? sum[(i + share::COUNT / 2) % share::COUNT]
                                               : at_shuffle_xor(0xffffffffu, sum[i], 2));
        AT_UNROLL
        for (int i = 0; i < share::COUNT; i++) {
            l[i] += at_shuffle_xor(0xffffffffu, l[i], 8);
            l[i] += at_shuffle_xor(0xffffffffu, l[i], 4);
            if (range >= 0 && share::key(lane, i) == 0 && has(i))
                total.put(range, share::head(lane, i), max[i], l[i]);
        }
        prepare();
    }
};

/* Output and log-sum-exp of the block's heads from the parts of all ranges; by all threads of the block. First a warp for each
 * head puts factors in the place of maxima, and multiplies sums by them: with 256 ranges, every thread would otherwise ask
 * for 256 exponentials. */
template <class T, int D, int HEADS>
__device__ void at_softmax_pages_join(const at_softmax_view<T> &a, const at_pages_block<T, HEADS> &block,
                                      const at_pages_partials<D, HEADS> &partials,
                                      const at_softmax_totals<HEADS> &total, const at_softmax_pages_exp &exp) {
    const int ranges = block.ranges();
    at_softmax_total(&row_total)[HEADS] = total.x[partials.most];
    for (int i = (int)threadIdx.x; i < 32 * block.heads; i += (int)blockDim.x) {
        const int head = i / 32;
        float max = -INFINITY;
        for (int r = i % 32; r < ranges; r += 32)
            max = fmaxf(max, total.x[r][head].max);
        max = at_group_max<32>(max);
        for (int r = i % 32; r < ranges; r += 32) {
            at_softmax_total &part = total.x[r][head];
            part.max = exp.factor(part.max, max);
            part.sum *= part.max;
        }
        if (i % 32 == 0)
            row_total[head].max = max;
    }
    at_sync();
    float sum = 0.0f; /* of the weights of the row */
    const auto weighed = [&](int range, int head, float x) {
        const at_softmax_total part = total.x[range][head];
        sum = range > 0 ? sum + part.sum : part.sum;
        return x * part.max;
    };
    partials.template join<16>(ranges, block.heads, weighed, [&](int head, int channel, float o) {
        const int64_t row = (int64_t)block.token * a.h + block.head + head;
        a.o[row * a.d + channel] =
            at_round_to<T>(ranges > 0 ? at_softmax_pages_exp::quotient(o, at_softmax_pages_exp::divisor(sum)) : 0.0f);
        if (channel == 0)
            a.lse[row] = ranges > 0 ? exp.lse(row_total[head].max, sum) : -INFINITY;
    });
}

static inline const char *at_softmax_pages_declines(const struct at_problem *problem) {
    const char *reason = at_pages_declines(problem);
    if (!reason)
        reason = at_attention_declines(problem, 0);
    return reason ? reason : at_softmax_ex2_declines(problem);
}

/* The kernels: a block for some ranges of the keys of a kv head's query heads. */
template <class T, int D, int HEADS>
__global__ void __launch_bounds__(at_pages_threads(D, HEADS), 1)
    at_softmax_pages_attend(at_softmax_view<T> a, at_pages_shape shape) {
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
    const at_softmax_totals<HEADS> total{ reinterpret_cast<at_softmax_total(*)[HEADS]>(partials.past()),
                                          shape.cluster };
    at_softmax_pages<T, D, HEADS> op(a, block, partials, total, lane);
    op.prepare();
    at_pages_walk<T, D, HEADS>(a, shape, block, start, lane, op);
    at_pages_meet(shape);
    at_softmax_pages_join<T, D, HEADS>(a, block, partials, total, op.exp);
}

/* A row's keys in 2 ^ log_ranges ranges. */
static inline int at_softmax_pages_launch(const struct at_launch *launch, int log_ranges) {
    return at_pages_with_sizes(&launch->problem->sizes, [=]<int D, int HEADS>() {
        return at_pages_launch<at_softmax_view>(
            launch, []<class T>() { return at_softmax_pages_attend<T, D, HEADS>; }, log_ranges,
            sizeof(at_softmax_total));
    });
}

/* What a kernel of 2 ^ log_ranges ranges declares. */
#define AT_SOFTMAX_PAGES_NUMERICS(log_ranges) \
    { \
        .qk_unit = AT_UNIT_TC_F32, .qk_lanes = 1, .qk_run = 8, .scale_on = AT_SCALE_ON_SCORE, .p = AT_F32, \
        .exp = AT_EXP_EX2_APPROX_FTZ, .exp_arg = AT_EXP_ARG_FMA, .l_lanes = AT_PAGES_STEP, .l_run = 1, \
        .l_tree = AT_TREE_BUTTERFLY, .divide = AT_DIVIDE_RCP_APPROX_FTZ, .lse = AT_LSE_LG2_APPROX_FTZ, \
        .block = AT_PAGES_STEP, .pv_unit = AT_UNIT_F32_FMA, .pv_chunk = 1, .split = AT_PAGES_STEP, \
        .splits = 1 << (log_ranges), .repeats = 1, .batch_invariant = 1, .tail = AT_TAIL_UNREAD, \
        .pv_zero = AT_PV_ZERO_SKIPPED, \
    }

#endif
