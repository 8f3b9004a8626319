/* Softmax prefill in the shape of FlashAttention 3: how the scores of a tile become weights.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The steps of the walk are those of kernels/attention/attention_tma.h, of which this is the class Weights. */
#ifndef AT_SOFTMAX_TMA_H
#define AT_SOFTMAX_TMA_H

#include "kernels/attention/tma_launch.h"
#include "kernels/attention/softmax_mma.h"

/* The online softmax of a warp's 16 rows, a tile of keys a step. */
template <class T, int D, class Sum, class Exp = at_softmax_natural> struct at_tma_softmax {
    static constexpr int STEPS = AT_TMA_KEYS / 16;
    const at_softmax_view<T> &a;
    at_online_rows<Exp> rows;
    float s[AT_TMA_KEYS / 8][4], factor[2];

    __device__ at_tma_softmax(const at_softmax_view<T> &view, const at_mma_queries<T> &) : a(view), rows(view.scale) {}

    /* Scores of the tile from key `begin` on become weights. MASKED: some query does not see some key of the tile. */
    template <bool MASKED>
    __device__ void take(const at_mma_queries<T> &queries, int begin, const Sum (&sums)[AT_TMA_KEYS / 8]) {
        const int g = at_lane() / 4, t = at_lane() % 4;
        const int keys[2] = { queries.visible(g) - begin, queries.visible(g + 8) - begin };
        AT_UNROLL
        for (int n = 0; n < AT_TMA_KEYS / 8; n++)
            for (int i = 0; i < 4; i++)
                s[n][i] = !MASKED || 8 * n + 2 * t + i % 2 < keys[i / 2] ? rows.exp.score(sums[n][i]) : -INFINITY;
        factor[0] = rows.update(s, 0);
        factor[1] = rows.update(s, 1);
    }
    /* Rescales the sums so far to the new maximum; packs the weights as operands of the next product. */
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
        at_softmax_store(a, queries, rows, o);
    }
};

#endif
