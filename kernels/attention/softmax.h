/* What softmax kernels share: the view of a problem, one query of it, the weights of a row computed by a block.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ATTENTION_SOFTMAX_H
#define AT_ATTENTION_SOFTMAX_H

#include "kernels/attention/decode.h"
#include "kernels/attention/softmax_exp.h"
#include "softmax_attention/softmax_attention.h"

/* A problem with activations of type T; every pointer in device memory. */
template <class T> struct at_softmax_view : at_attention_view<T> {
    T *o;
    float *lse;
    float scale;

    static at_softmax_view of(const struct at_problem *p) {
        at_softmax_view view{};
        view.attend_to(p);
        view.o = static_cast<T *>(p->tensors[AT_SOFTMAX_O].data);
        view.lse = static_cast<float *>(p->tensors[AT_SOFTMAX_LSE].data);
        view.scale = p->params.scale;
        return view;
    }
};

/* One query head of one request, of a grid (query heads, requests, ...) unless the head is given. */
template <class T> struct at_softmax_query : at_decode_query_of<T, at_softmax_view<T>> {
    using at_decode_query_of<T, at_softmax_view<T>>::at_decode_query_of;
    using at_decode_query_of<T, at_softmax_view<T>>::a;
    using at_decode_query_of<T, at_softmax_view<T>>::token;
    using at_decode_query_of<T, at_softmax_view<T>>::head;

    __device__ float r(float dot) const { return dot * a.scale; }
    /* -infinity for a row without keys. */
    __device__ void put_lse(float lse) const { a.lse[(int64_t)token * a.h + head] = lse; }
};

/* The maximum of a row's scores (NaNs do not raise it) and the sum of its weights e^(s - max). */
struct at_softmax_total {
    float max, sum;
};

/* Replaces n scores in shared memory by their weights. Thread i of THREADS reads scores i, i + THREADS, ... and needs
 * no barrier before if it stored these itself. Ends with a barrier: all weights may be read afterwards. */
template <int THREADS> static __device__ at_softmax_total at_softmax_weights(float *row, int n) {
    constexpr int WARPS = THREADS / 32;
    AT_SHARED(float[WARPS], maxima);
    AT_SHARED(float[WARPS], sums);
    const int thread = (int)threadIdx.x, warp = thread / 32;
    at_softmax_total all{ -INFINITY, 0.0f };
    for (int t = thread; t < n; t += THREADS)
        all.max = fmaxf(all.max, row[t]);
    all.max = at_group_max<32>(all.max);
    if (at_lane() == 0)
        maxima[warp] = all.max;
    at_sync();
    for (int i = 0; i < WARPS; i++)
        all.max = fmaxf(all.max, maxima[i]);
    float own = 0.0f;
    for (int t = thread; t < n; t += THREADS) {
        row[t] = at_exp(row[t] - at_softmax_base(all.max));
        own += row[t];
    }
    own = at_group_sum<32>(own);
    if (at_lane() == 0)
        sums[warp] = own;
    at_sync();
    for (int i = 0; i < WARPS; i++)
        all.sum += sums[i];
    return all;
}

/* Attention of one query by a block of AT_DECODE_THREADS, its whole row of scores in shared memory. */
template <class T> static __device__ void at_softmax_row(const at_softmax_query<T> &query, float *row) {
    const int keys = query.keys;
    at_decode_scores<1>(query, 0, keys, row, [&](int t) { return at_chain(query.q(), query.k(t), query.a.d); });
    const at_softmax_total all = at_softmax_weights<AT_DECODE_THREADS>(row, keys);
    for (int c = (int)threadIdx.x; c < query.a.d; c += AT_DECODE_THREADS)
        query.put(c, keys > 0 ? at_decode_every(query, row, 0, keys, c) / all.sum : 0.0f);
    if (threadIdx.x == 0)
        query.put_lse(at_softmax_natural::lse(all.max, all.sum));
}

#endif
