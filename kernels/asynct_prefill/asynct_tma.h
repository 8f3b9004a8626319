/* AsyncT attention with tiles by TMA and warpgroups in turns: what its warps make of scores.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_ASYNCT_TMA_H
#define AT_DEVICE_ASYNCT_TMA_H

#include "kernels/asynct_prefill/asynct_wgmma.h"
#include "kernels/attention/attention_tma.h"

/* The gate on fragments of scores, packed when the products with the tile before are over: until then those have the
 * registers of the operand. The last two scores of each row stay in registers for the next tile. */
template <class T, int D, class Sum> struct at_tma_gates {
    static constexpr int STEPS = AT_TMA_KEYS / 16;
    const at_asynct_view<T> &a;
    const at_fragment_gate<false> gate;
    at_score_tail tail;
    float s[STEPS][8]; /* P: what each register of an operand will have */

    __device__ at_tma_gates(const at_asynct_view<T> &view, const at_mma_queries<T> &of)
        : a(view), gate(view, of.head) {}

    template <bool>
    __device__ void take(const at_mma_queries<T> &queries, int begin, const Sum (&sums)[AT_TMA_KEYS / 8]) {
        AT_UNROLL
        for (int i = 0; i < STEPS; i++) {
            const float scores[2][4] = { { sums[2 * i][0], sums[2 * i][1], sums[2 * i][2], sums[2 * i][3] },
                                         { sums[2 * i + 1][0], sums[2 * i + 1][1], sums[2 * i + 1][2],
                                           sums[2 * i + 1][3] } };
            at_fragment_gates_of(queries, gate, scores, begin + 16 * i, tail, [&](int r, float low, float high) {
                s[i][2 * r] = low;
                s[i][2 * r + 1] = high;
            });
        }
    }
    __device__ void put(Sum (&)[D / 8], uint32_t (&p)[STEPS][4]) const {
        AT_UNROLL
        for (int i = 0; i < STEPS; i++)
            for (int r = 0; r < 4; r++)
                p[i][r] = at_pack<T>(s[i][2 * r], s[i][2 * r + 1]);
    }
    __device__ void store(const at_mma_queries<T> &queries, const Sum (&o)[D / 8]) const {
        const int g = at_lane() / 4, t = at_lane() % 4;
        for (int half = 0; half < 2; half++) {
            AT_UNROLL
            for (int i = 0; i < D / 8 && queries.first + g + 8 * half < queries.end; i++)
                at_store32(a.o + queries.element(g + 8 * half) + 8 * i + 2 * t,
                           at_pack<T>(o[i][2 * half], o[i][2 * half + 1]));
        }
    }
};

template <class T, class Sum> int at_asynct_tma_launch(const struct at_launch *launch) {
    return at_tma_prefill_launch<T, Sum, at_asynct_view, at_tma_gates>(launch);
}

#endif
