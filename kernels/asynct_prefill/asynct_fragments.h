/* AsyncT's gate on scores in fragments: the filter by shuffles within a quad, no scores in shared memory.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A thread of a product has, of rows g and g + 8, two neighbouring keys out of every eight. The filter of up to three
 * taps needs the two scores before them: its neighbour in the quad has those, or, for the quad's first lane, the keys
 * before. The last two scores of a row, which every lane of its quad keeps, go on to the next keys. */
#ifndef AT_ASYNCT_FRAGMENTS_H
#define AT_ASYNCT_FRAGMENTS_H

#include "kernels/attention/asynct.h"
#include "kernels/attention/attention_mma.h"

/* A head's filter of at most three taps. */
struct at_fragment_filter {
    float scale, tap[3], sigma, gamma;
    int n_taps, shrink;

    template <class T>
    __device__ at_fragment_filter(const at_asynct_view<T> &a, int head)
        : scale(a.scale), sigma(a.sigma[head]), gamma(a.gamma[head]), n_taps(a.n_taps), shrink(a.pooled && a.shrink) {
        for (int i = 0; i < 3; i++)
            tap[i] = i < n_taps ? a.taps[head * n_taps + i] : 0.0f;
    }
    /* The filtered score of key t from r0, its own score after the ReLU, and those of the two keys before. */
    __device__ float filtered(float r0, float r1, float r2, int t) const {
        float z;
        if (shrink && t + 1 < n_taps) { /* a shorter window has taps of its own */
            const float share = sigma / (float)(t + 1);
            z = (1.0f - share) * r0;
            if (t > 0)
                z = fmaf(-share, r1, z);
        } else {
            z = tap[0] * r0;
            if (n_taps > 1 && t > 0)
                z = fmaf(tap[1], r1, z);
            if (n_taps > 2 && t > 1)
                z = fmaf(tap[2], r2, z);
        }
        return z;
    }
};

/* The gate. score(s): what the filter reads of a dot product s. gate(r0, r1, r2, t): p of key t. */
struct at_fragment_gate : at_fragment_filter {
    float clip_min, clip_max;
    int relu_pre;

    template <class T>
    __device__ at_fragment_gate(const at_asynct_view<T> &a, int head)
        : at_fragment_filter(a, head), clip_min(a.clip_min), clip_max(a.clip_max), relu_pre(a.relu_pre) {}
    __device__ float score(float s) const {
        const float x = s * scale;
        return relu_pre ? fmaxf(x, 0.0f) : x;
    }
    __device__ float operator()(float r0, float r1, float r2, int t) const {
        return gamma * fmaxf(fminf(fmaxf(filtered(r0, r1, r2, t), 0.0f), clip_max), clip_min);
    }
};

/* The same gate for a ReLU before the filter and a range from 0 to 1, compiled in. */
struct at_unit_gate : at_fragment_filter {
    using at_fragment_filter::at_fragment_filter;
    __device__ float score(float s) const { return fmaxf(s * scale, 0.0f); }
    __device__ float operator()(float r0, float r1, float r2, int t) const {
        return gamma * fminf(fmaxf(filtered(r0, r1, r2, t), 0.0f), 1.0f);
    }
};

/* The last two scores before the next keys, of rows g (0) and g + 8 (1), the older first. */
struct at_score_tail {
    float before[2][2] = {};
};

/* P of the 16 keys from `begin` on, from their scores in fragments of 8 keys: put(r, low, high) for the two numbers of
 * register r of an operand, 0 where a query does not see the key. The tail goes on to the next 16 keys. */
template <class T, class Gate, class F>
__device__ void at_fragment_gates_of(const at_mma_queries<T> &queries, const Gate &gate, const float (&s)[2][4],
                                     int begin, at_score_tail &tail, F put) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const int keys = queries.visible(g + 8 * half);
        float *before = tail.before[half];
        AT_UNROLL
        for (int n = 0; n < 2; n++) {
            const int key = begin + 8 * n + 2 * t;
            const float r0 = gate.score(s[n][2 * half]), r1 = gate.score(s[n][2 * half + 1]);
            const float up0 = at_shuffle_up(0xffffffffu, r0, 1, 4), up1 = at_shuffle_up(0xffffffffu, r1, 1, 4);
            const float b2 = t == 0 ? before[0] : up0, b1 = t == 0 ? before[1] : up1;
            const float low = key < keys ? gate(r0, b1, b2, key) : 0.0f;
            const float high = key + 1 < keys ? gate(r1, r0, b1, key + 1) : 0.0f;
            put(2 * n + half, low, high);
            before[0] = at_shuffle(0xffffffffu, r0, 3, 4);
            before[1] = at_shuffle(0xffffffffu, r1, 3, 4);
        }
    }
}

/* The same as an operand of the product with V. */
template <class T, class Gate>
__device__ void at_fragment_gates(const at_mma_queries<T> &queries, const Gate &gate, const float (&s)[2][4], int begin,
                                  at_score_tail &tail, uint32_t (&p)[4]) {
    at_fragment_gates_of(queries, gate, s, begin, tail,
                         [&](int r, float low, float high) { p[r] = at_pack<T>(low, high); });
}

#endif
