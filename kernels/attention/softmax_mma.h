/* Softmax attention on mma.sync: the steps of the online softmax that prefill and decode kernels are composed of.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tile has 64 keys. The steps in their order: load K and V (at_mma_stage); scores by m16n8k16, hidden keys masked
 * (at_softmax_scores); online softmax (at_softmax_update): the row maximum over the four lanes that share a row, sums
 * so far rescaled to it, scores replaced by weights (softmax_exp.h); products P V by m16n8k16, the weights packed as
 * operands in the registers that held the scores (at_softmax_values); epilogue (at_softmax_store). A lane sums the
 * weights of its own keys; the four lanes of a row add their sums in the epilogue. */
#ifndef AT_ATTENTION_SOFTMAX_MMA_H
#define AT_ATTENTION_SOFTMAX_MMA_H

#include "kernels/attention/attention_mma.h"
#include "kernels/attention/softmax.h"

constexpr int AT_SOFTMAX_KEYS = 64;

/* Declared numerics of kernels by mma.sync and wgmma. UNIT: of both products; P: the format of P; BLOCK: keys of a step
 * of the online softmax; SPLIT: keys of a range that has sums of its own (0: all); GUARD: of sums in f16. */
#define AT_SOFTMAX_MMA_NUMERICS(UNIT, P, BLOCK, SPLIT, GUARD) \
    { \
        .qk_unit = UNIT, .qk_lanes = 1, .scale_on = AT_SCALE_ON_SCORE, .p = P, .exp = AT_EXP_LIBM, .block = BLOCK, \
        .pv_unit = UNIT, .pv_chunk = 16, .split = SPLIT, .guard = GUARD, .repeats = 1, .batch_invariant = 1, \
        .tail = AT_TAIL_UNREAD, .pv_zero = AT_PV_ZERO_MULTIPLIED, \
    }

/* Declared numerics of kernels with at_softmax_ex2: sums in f32; the sum of weights lies in the four lanes that share a
 * row, each of which has two keys of every eight. */
#define AT_SOFTMAX_EX2_NUMERICS(P, BLOCK, SPLIT, DIVIDE, POLY3) \
    { \
        .qk_unit = AT_UNIT_TC_F32, .qk_lanes = 1, .scale_on = AT_SCALE_ON_SCORE, .p = P, .exp = AT_EXP_EX2_APPROX_FTZ, \
        .exp_arg = AT_EXP_ARG_FMA, .ex2_poly3 = POLY3, .l_lanes = 4, .l_run = 2, .l_tree = AT_TREE_BUTTERFLY, \
        .divide = DIVIDE, .lse = AT_LSE_LG2_APPROX_FTZ, .block = BLOCK, .pv_unit = AT_UNIT_TC_F32, .pv_chunk = 16, \
        .split = SPLIT, .repeats = 1, .batch_invariant = 1, .tail = AT_TAIL_UNREAD, .pv_zero = AT_PV_ZERO_MULTIPLIED, \
    }

/* The running maximum and sum of rows g and g + 8, as one lane keeps them; Exp: a class of softmax_exp.h. */
template <class Exp = at_softmax_natural> struct at_online_rows {
    Exp exp;
    float max[2] = { -INFINITY, -INFINITY }; /* of the row's scores; NaNs do not raise it */
    float sum[2] = {};                       /* of the weights of the lane's own keys */

    __device__ explicit at_online_rows(float scale) : exp(scale) {}

    /* Row g + 8 half: raises the maximum by the scores of N groups of eight keys and replaces them by their weights.
     * Returns the factor that rescales all sums so far. */
    template <int N> __device__ float update(float (&s)[N][4], int half) {
        float now = max[half];
        for (int n = 0; n < N; n++)
            for (int i = 2 * half; i < 2 * half + 2; i++)
                now = fmaxf(now, s[n][i]);
        now = fmaxf(now, at_shuffle_xor(0xffffffffu, now, 1));
        now = fmaxf(now, at_shuffle_xor(0xffffffffu, now, 2));
        const float base = exp.base(now), factor = exp.factor(max[half], now);
        max[half] = now;
        sum[half] *= factor;
        for (int n = 0; n < N; n++)
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                s[n][i] = exp.weight(s[n][i], base, n);
                sum[half] += s[n][i];
            }
        return factor;
    }
    /* The sum of the row's weights, for all its lanes. */
    __device__ float total(int half) const { return at_group_sum<4>(sum[half]); }
};

/* Packs the weights of two groups of eight keys as an a operand. */
template <class T> __device__ void at_softmax_operand(const float (&low)[4], const float (&high)[4], uint32_t (&p)[4]) {
    p[0] = at_pack<T>(low[0], low[1]);
    p[1] = at_pack<T>(low[2], low[3]);
    p[2] = at_pack<T>(high[0], high[1]);
    p[3] = at_pack<T>(high[2], high[3]);
}

/* Scores of the 64 keys from `begin` on, summed in Sum, as the rows want them; -infinity for keys that a query does not
 * see. */
template <class Sum, int D, class T, class Exp, class Queries>
__device__ void at_softmax_scores(const at_online_rows<Exp> &rows, const Queries &queries, const at_mma_q<D, T> &q,
                                  const T *k, int begin, float (&scores)[AT_SOFTMAX_KEYS / 8][4]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    const int keys[2] = { queries.visible(g) - begin, queries.visible(g + 8) - begin };
    for (int n = 0; n < AT_SOFTMAX_KEYS / 8; n += 2) {
        Sum s[2] = {};
        at_mma_scores(q, k + 8 * n * AT_MMA_STRIDE<D>, s);
        for (int i = 0; i < 8; i++) {
            const int key = 8 * (n + i / 4) + 2 * t + i % 2;
            scores[n + i / 4][i % 4] = key < keys[i % 4 / 2] ? rows.exp.score(s[i / 4][i % 4]) : -INFINITY;
        }
    }
}

/* A step of the online softmax: scores become weights, and sums o so far are rescaled to the new maximum. */
template <class Sum, int N, class Exp>
__device__ __forceinline__ void at_softmax_update(at_online_rows<Exp> &rows, float (&s)[AT_SOFTMAX_KEYS / 8][4],
                                                  Sum (&o)[N]) {
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const float factor = rows.update(s, half);
        for (int i = 0; i < N; i++)
            o[i].scale(factor, half);
    }
}

/* o += P V of the 64 keys from `begin` on, the weights rounded to T. */
template <int D, class Queries, class T, class Sum>
__device__ __forceinline__ void at_softmax_values(const Queries &queries, int begin,
                                                  const float (&weights)[AT_SOFTMAX_KEYS / 8][4], const T *v,
                                                  Sum (&o)[D / 8]) {
    AT_UNROLL
    for (int n = 0; n < AT_SOFTMAX_KEYS / 8; n += 2) {
        uint32_t p[4];
        at_softmax_operand<T>(weights[n], weights[n + 1], p);
        at_mma_values<D>(queries, begin + 8 * n, p, v + 8 * n * AT_MMA_STRIDE<D>, o);
    }
}

/* Epilogue: a warp divides the sums of its 16 queries by their sums of weights, rounds them to T and stores them and
 * the lse. A query that sees no key gets zeros. */
template <int N, class T, class Sum, class Exp>
__device__ void at_softmax_store(const at_softmax_view<T> &a, const at_mma_queries<T> &queries,
                                 const at_online_rows<Exp> &rows, const Sum (&o)[N]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half, seen = queries.first < queries.end ? queries.visible(row) : 0;
        const float sum = rows.total(half), divisor = rows.exp.divisor(sum);
        if (queries.first + row >= queries.end)
            continue;
        AT_UNROLL
        for (int i = 0; i < N; i++)
            at_store32(a.o + queries.element(row) + 8 * i + 2 * t,
                       seen ? at_pack<T>(rows.exp.quotient(o[i][2 * half], divisor),
                                         rows.exp.quotient(o[i][2 * half + 1], divisor))
                            : 0u);
        if (t == 0)
            a.lse[queries.element(row) / (8 * N)] = rows.exp.lse(rows.max[half], sum);
    }
}

#endif
