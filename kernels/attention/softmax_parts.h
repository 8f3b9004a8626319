/* Softmax with the keys of a row in ranges: the part that a range leaves, and how parts are joined.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part is D + 2 floats: D sums of weights times V, the maximum score m_j, the sum of weights l_j; the weights are
 * relative to the part's own maximum. The parts of a row lie one after the other, in shared memory or in a workspace.
 * With m the largest m_j, the join weights a part's sums of V and of weights by e^(m_j - m) (softmax_exp.h). That is the merge by
 * e^(lse_j - lse) of outputs that are already divided, without a logarithm's rounding in every weight. */
#ifndef AT_ATTENTION_SOFTMAX_PARTS_H
#define AT_ATTENTION_SOFTMAX_PARTS_H

#include "kernels/attention/softmax.h"

/* Floats of a part for head size d. */
__host__ __device__ inline int64_t at_softmax_part(int64_t d) { return d + 2; }

/* Part `part` of up to `parts` of query `query` and a query head in a workspace; `query`: the number of a token, or of
 * the request where each has one. */
template <class T>
__device__ float *at_softmax_part_of(const at_softmax_view<T> &a, int query, int head, float *workspace, int parts,
                                     int part) {
    return workspace + (((int64_t)query * a.h + head) * parts + part) * at_softmax_part(a.d);
}

/* Parts whose numbers a thread loads at once: one after the other, each would wait for memory anew. */
constexpr int AT_JOIN_BATCH = 8;

/* o and lse of a query from its `parts` parts, joined in ascending order; by all threads of the block, or by some. */
template <class Exp, class T>
__device__ void at_softmax_join(const at_softmax_query<T> &query, const float *from, int parts,
                                int thread = (int)threadIdx.x, int threads = (int)blockDim.x) {
    const Exp exp(query.a.scale);
    const int d = query.a.d;
    const auto part = [=](int i) { return from + i * at_softmax_part(d); };
    float max = -INFINITY;
    for (int i = 0; i < parts; i += AT_JOIN_BATCH) {
        float m[AT_JOIN_BATCH];
        AT_UNROLL
        for (int k = 0; k < AT_JOIN_BATCH; k++)
            m[k] = i + k < parts ? part(i + k)[d] : -INFINITY;
        AT_UNROLL
        for (int k = 0; k < AT_JOIN_BATCH; k++)
            max = fmaxf(max, m[k]);
    }
    for (int c = thread; c < d; c += threads) {
        float o = 0.0f, sum = 0.0f;
        for (int i = 0; i < parts; i += AT_JOIN_BATCH) {
            float x[AT_JOIN_BATCH], m[AT_JOIN_BATCH], l[AT_JOIN_BATCH];
            AT_UNROLL
            for (int k = 0; k < AT_JOIN_BATCH; k++)
                if (i + k < parts) {
                    x[k] = part(i + k)[c];
                    m[k] = part(i + k)[d];
                    l[k] = part(i + k)[d + 1];
                }
            AT_UNROLL
            for (int k = 0; k < AT_JOIN_BATCH; k++)
                if (i + k < parts) {
                    const float weight = exp.factor(m[k], max), scaled = x[k] * weight;
                    o = i + k > 0 ? o + scaled : scaled;
                    sum += l[k] * weight;
                }
        }
        query.put(c, parts > 0 ? exp.quotient(o, exp.divisor(sum)) : 0.0f);
        if (c == 0)
            query.put_lse(exp.lse(max, sum));
    }
}

#endif
