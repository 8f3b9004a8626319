/* Softmax with a softcap and ALiBi's biases: scores, weights and output of one query by a block.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A score is fma(slope, key - place, cap tanh(dot to_cap)), to_cap = scale / cap: as kernels of the field fold the scale, so
 * that a cap costs no product of its own. Weights are 2^x by ex2.approx.ftz of (score - max) log2(e). Their sum is one of
 * AT_DECODE_THREADS lanes joined by a butterfly, so that the whole is one value to the bit. */
#ifndef AT_ATTENTION_SOFTMAX_CAPPED_H
#define AT_ATTENTION_SOFTMAX_CAPPED_H

#include "kernels/attention/softmax.h"
#include "kernels/device/special.h"

template <class T> struct at_capped_view : at_softmax_view<T> {
    const float *slopes; /* [h]; NULL: no biases */
    float cap, to_cap;   /* cap 0: none */

    static at_capped_view of(const struct at_problem *p) {
        at_capped_view view{ at_softmax_view<T>::of(p) };
        view.slopes = static_cast<const float *>(p->tensors[AT_SOFTMAX_SLOPES].data);
        view.cap = at_softmax_cap(p);
        view.to_cap = view.cap > 0.0f ? view.scale / view.cap : 0.0f;
        return view;
    }
};

/* tanh by one instruction: 134 units in the last place. */
struct at_tanh_by_instruction {
    __device__ static float of(float y) { return at_tanh_approx(y); }
};
/* 1 - 2 / (1 + e^2y) by two: 2^-21 of 1, which near 0 is much of the result. */
struct at_tanh_by_ex2 {
    __device__ static float of(float y) {
        return fmaf(-2.0f, at_rcp_approx_ftz(1.0f + at_ex2_approx_ftz(y * 0x1.715476p1f)), 1.0f);
    }
};

template <class T, class Tanh> struct at_capped_query : at_decode_query_of<T, at_capped_view<T>> {
    using at_decode_query_of<T, at_capped_view<T>>::a;
    using at_decode_query_of<T, at_capped_view<T>>::token;
    using at_decode_query_of<T, at_capped_view<T>>::head;
    int place; /* of the query among its request's keys */

    __device__ at_capped_query(const at_capped_view<T> &view, int query_head, int of, int i, int visible)
        : at_decode_query_of<T, at_capped_view<T>>(view, query_head, of, view.query_start[of] + i, visible),
          place(view.seq_lens[of] - (view.query_start[of + 1] - view.query_start[of]) + i) {}

    /* Without its bias. */
    __device__ float r(float dot) const { return a.cap > 0.0f ? a.cap * Tanh::of(dot * a.to_cap) : dot * a.scale; }
    __device__ float biased(float score, int t) const {
        return a.slopes ? fmaf(a.slopes[head], (float)(t - place), score) : score;
    }
    __device__ void put_lse(float lse) const { a.lse[(int64_t)token * a.h + head] = lse; }
};

/* Replaces n capped scores in shared memory by their weights: as at_softmax_weights(), biases before the maximum. */
template <class Query> static __device__ at_softmax_total at_capped_weights(const Query &query, float *row, int n) {
    constexpr int WARPS = AT_DECODE_THREADS / 32;
    static_assert(WARPS == 4, "the butterfly's first two steps");
    AT_SHARED(float[WARPS], maxima);
    AT_SHARED(float[AT_DECODE_THREADS], sums);
    const int thread = (int)threadIdx.x, lane = at_lane();
    at_softmax_total all{ -INFINITY, 0.0f };
    for (int t = thread; t < n; t += AT_DECODE_THREADS) {
        row[t] = query.biased(row[t], t);
        all.max = fmaxf(all.max, row[t]);
    }
    all.max = at_group_max<32>(all.max);
    if (lane == 0)
        maxima[thread / 32] = all.max;
    at_sync();
    for (int i = 0; i < WARPS; i++)
        all.max = fmaxf(all.max, maxima[i]);
    float own = 0.0f;
    for (int t = thread; t < n; t += AT_DECODE_THREADS) {
        row[t] = at_ex2_approx_ftz((row[t] - at_softmax_base(all.max)) * 0x1.715476p0f);
        own += row[t];
    }
    sums[thread] = own;
    at_sync();
    all.sum = at_group_sum<32>((sums[lane] + sums[lane + 64]) + (sums[lane + 32] + sums[lane + 96]));
    return all;
}

/* Attention of one query by a block of AT_DECODE_THREADS, its whole row of scores in shared memory. */
template <class T, class Tanh> static __device__ void at_capped_row(const at_capped_query<T, Tanh> &query, float *row) {
    const int keys = query.keys;
    at_decode_scores<1>(query, 0, keys, row, [&](int t) { return at_chain(query.q(), query.k(t), query.a.d); });
    const at_softmax_total all = at_capped_weights(query, row, keys);
    for (int c = (int)threadIdx.x; c < query.a.d; c += AT_DECODE_THREADS)
        query.put(c, keys > 0 ? at_decode_every(query, row, 0, keys, c) / all.sum : 0.0f);
    if (threadIdx.x == 0)
        query.put_lse(all.max + at_lg2_approx_ftz(all.sum) * 0x1.62e43p-1f);
}

/* What a variant of these steps declares; TANH: AT_TANH_... */
#define AT_CAPPED_NUMERICS(TANH) \
    { \
        .qk_unit = AT_UNIT_F32_FMA, .qk_lanes = 1, .scale_on = AT_SCALE_ON_SCORE, .fir_fma = 1, .p = AT_F32, \
        .exp = AT_EXP_EX2_APPROX_FTZ, .tanh = TANH, .exp_arg = AT_EXP_ARG_DIFFERENCE, .l_lanes = AT_DECODE_THREADS, \
        .l_run = 1, .l_tree = AT_TREE_BUTTERFLY, .divide = AT_DIVIDE_DIVISION, .lse = AT_LSE_LG2_APPROX_FTZ, \
        .pv_unit = AT_UNIT_F32_FMA, .pv_chunk = 1, .repeats = 1, .batch_invariant = 1, .tail = AT_TAIL_UNREAD, \
        .pv_zero = AT_PV_ZERO_MULTIPLIED, \
    }

#endif
