/* Softmax attention in the shape of FlashAttention 3: what its warps make of scores.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_SOFTMAX_TMA_H
#define AT_DEVICE_SOFTMAX_TMA_H

#include "kernels/attention/attention_tma.h"
#include "kernels/attention/softmax_mma.h"

/* The maximum and the sum of each row kept online, a tile of keys a step. */
template <class T, int D, class Sum> struct at_tma_softmax {
    static constexpr int STEPS = AT_TMA_KEYS / 16;
    const at_softmax_view<T> &a;
    at_online_rows rows;
    float s[AT_TMA_KEYS / 8][4], factor[2];

    __device__ at_tma_softmax(const at_softmax_view<T> &view, const at_mma_queries<T> &) : a(view) {}

    template <bool MASKED>
    __device__ void take(const at_mma_queries<T> &queries, int begin, const Sum (&sums)[AT_TMA_KEYS / 8]) {
        const int g = at_lane() / 4, t = at_lane() % 4;
        const int keys[2] = { queries.visible(g) - begin, queries.visible(g + 8) - begin };
        AT_UNROLL
        for (int n = 0; n < AT_TMA_KEYS / 8; n++)
            for (int i = 0; i < 4; i++)
                s[n][i] = !MASKED || 8 * n + 2 * t + i % 2 < keys[i / 2] ? sums[n][i] * a.scale : -INFINITY;
        factor[0] = rows.take(s, 0);
        factor[1] = rows.take(s, 1);
    }
    __device__ void put(Sum (&o)[D / 8], uint32_t (&p)[STEPS][4]) const {
        AT_UNROLL
        for (int n = 0; n < D / 8; n++)
            for (int half = 0; half < 2; half++)
                o[n].scale(factor[half], half);
        AT_UNROLL
        for (int i = 0; i < STEPS; i++)
            at_softmax_operand<T>(s[2 * i], s[2 * i + 1], p[i]);
    }
    __device__ void store(const at_mma_queries<T> &queries, const Sum (&o)[D / 8]) const {
        const int g = at_lane() / 4, t = at_lane() % 4;
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            const int row = g + 8 * half, seen = queries.first < queries.end ? queries.visible(row) : 0;
            const float sum = rows.total(half);
            if (queries.first + row >= queries.end)
                continue;
            AT_UNROLL
            for (int i = 0; i < D / 8; i++)
                at_store32(a.o + queries.element(row) + 8 * i + 2 * t,
                           seen ? at_pack<T>(o[i][2 * half] / sum, o[i][2 * half + 1] / sum) : 0u);
            if (t == 0)
                a.lse[queries.element(row) / D] = rows.most[half] + at_log(sum);
        }
    }
};

template <class T, class Sum> int at_softmax_tma_launch(const struct at_launch *launch) {
    return at_tma_prefill_launch<T, Sum, at_softmax_view, at_tma_softmax>(launch);
}

#endif
