/* Softmax attention on mma.sync with the maximum and the sum of a row kept online.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tile of 64 keys: K and V to shared memory; scores by m16n8k16; their maximum over the four lanes that share a row;
 * sums so far rescaled to it; weights e^(s - m) as an operand in the registers that held the scores; P V by m16n8k16.
 * A lane adds up the weights of its own keys; the four of a row join at the end. */
#ifndef AT_DEVICE_SOFTMAX_MMA_H
#define AT_DEVICE_SOFTMAX_MMA_H

#include "kernels/attention/attention_mma.h"
#include "kernels/attention/softmax.h"

constexpr int AT_SOFTMAX_KEYS = 64;

/* What kernels by mma.sync and wgmma declare: the unit of both products, the format of P, keys an online step, keys of a
 * range (0: all), and the guard of sums in f16. */
#define AT_SOFTMAX_MMA_NUMERICS(UNIT, P, BLOCK, SPLIT, GUARD) \
    { \
        .qk_unit = UNIT, .qk_lanes = 1, .scale_on = AT_SCALE_ON_SCORE, .p = P, .exp = AT_EXP_LIBM, .block = BLOCK, \
        .pv_unit = UNIT, .pv_chunk = 16, .split = SPLIT, .guard = GUARD, .repeats = 1, .batch_invariant = 1, \
        .tail = AT_TAIL_UNREAD, .pv_zero = AT_PV_ZERO_MULTIPLIED, \
    }

/* What a lane keeps of rows g and g + 8. */
struct at_online_rows {
    float most[2] = { -INFINITY, -INFINITY }; /* of the row's scores; NaNs do not raise it */
    float sum[2] = {};                        /* of the weights of the lane's own keys */

    /* Takes scores of N groups of eight keys, e^(s - m) in their place, for row g + 8 half; the factor for all sums so
     * far. */
    template <int N> __device__ float take(float (&s)[N][4], int half) {
        float now = most[half];
        for (int n = 0; n < N; n++)
            for (int i = 2 * half; i < 2 * half + 2; i++)
                now = fmaxf(now, s[n][i]);
        now = fmaxf(now, at_shuffle_xor(0xffffffffu, now, 1));
        now = fmaxf(now, at_shuffle_xor(0xffffffffu, now, 2));
        const float base = at_softmax_base(now), factor = at_softmax_factor(most[half], now);
        most[half] = now;
        sum[half] *= factor;
        for (int n = 0; n < N; n++)
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                s[n][i] = at_exp(s[n][i] - base);
                sum[half] += s[n][i];
            }
        return factor;
    }
    /* The sum of the row's weights, for all its lanes. */
    __device__ float total(int half) const { return at_group_sum<4>(sum[half]); }
};

/* Weights of two groups of eight keys as an operand. */
template <class T> __device__ void at_softmax_operand(const float (&low)[4], const float (&high)[4], uint32_t (&p)[4]) {
    p[0] = at_pack<T>(low[0], low[1]);
    p[1] = at_pack<T>(low[2], low[3]);
    p[2] = at_pack<T>(high[0], high[1]);
    p[3] = at_pack<T>(high[2], high[3]);
}

/* Scores of 64 keys from `begin` on, -infinity for those that a query does not see. */
template <int D, class T, class Sum>
__device__ void at_softmax_scores(const at_softmax_view<T> &a, const at_mma_queries<T> &queries,
                                  const at_mma_q<D, T> &q, const T *k, int begin,
                                  float (&scores)[AT_SOFTMAX_KEYS / 8][4]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    const int keys[2] = { queries.visible(g) - begin, queries.visible(g + 8) - begin };
    for (int n = 0; n < AT_SOFTMAX_KEYS / 8; n += 2) {
        Sum s[2] = {};
        at_mma_scores(q, k + 8 * n * AT_MMA_STRIDE<D>, s);
        for (int i = 0; i < 8; i++) {
            const int key = 8 * (n + i / 4) + 2 * t + i % 2;
            scores[n + i / 4][i % 4] = key < keys[i % 4 / 2] ? s[i / 4][i % 4] * a.scale : -INFINITY;
        }
    }
}

/* The queries of tile `tile` of WARPS times 16, by the whole block; k: shared memory. Ends with a barrier, or without
 * any where no query of the tile sees a key. */
template <class T, int D, int WARPS, class Sum>
__device__ __forceinline__ void at_softmax_attend(const at_softmax_view<T> &a, T *k, int request, int head, int tile) {
    T *v = k + AT_SOFTMAX_KEYS * AT_MMA_STRIDE<D>;
    const int warp = (int)threadIdx.x / 32, g = at_lane() / 4, t = at_lane() % 4;
    const at_mma_queries<T> last(a, request, head, tile * WARPS + WARPS - 1),
        queries(a, request, head, tile * WARPS + warp);
    if (tile * WARPS * AT_MMA_ROWS >= queries.end)
        return;
    const int keys = last.visible(AT_MMA_ROWS - 1); /* of the block */
    const at_mma_q<D, T> q(queries);
    at_online_rows rows;
    Sum o[D / 8] = {};
    for (int begin = 0; begin < keys; begin += AT_SOFTMAX_KEYS) {
        at_mma_stage<D, AT_SOFTMAX_KEYS>(a, queries.request, queries.kv_head, begin, keys, k, v);
        at_sync();
        if (begin < queries.keys) {
            float s[AT_SOFTMAX_KEYS / 8][4];
            at_softmax_scores<D, T, Sum>(a, queries, q, k, begin, s);
            AT_UNROLL
            for (int half = 0; half < 2; half++) {
                const float factor = rows.take(s, half);
                for (int i = 0; i < D / 8; i++)
                    o[i].scale(factor, half);
            }
            AT_UNROLL
            for (int n = 0; n < AT_SOFTMAX_KEYS / 8; n += 2) {
                uint32_t p[4];
                at_softmax_operand<T>(s[n], s[n + 1], p);
                at_mma_values<D>(queries, begin + 8 * n, p, v + 8 * n * AT_MMA_STRIDE<D>, o);
            }
        }
        at_sync();
    }
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half, seen = queries.first < queries.end ? queries.visible(row) : 0;
        const float sum = rows.total(half);
        if (queries.first + row >= queries.end)
            continue;
        for (int i = 0; i < D / 8; i++)
            at_store32(a.o + queries.element(row) + 8 * i + 2 * t,
                       seen ? at_pack<T>(o[i][2 * half] / sum, o[i][2 * half + 1] / sum) : 0u);
        if (t == 0)
            a.lse[queries.element(row) / D] = rows.most[half] + at_log(sum);
    }
}

template <class T, int D, int WARPS, class Sum>
static __global__ void __launch_bounds__(32 * WARPS, 1) at_softmax_prefill(at_softmax_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    at_softmax_attend<T, D, WARPS, Sum>(a, memory, (int)blockIdx.y, (int)blockIdx.x, (int)blockIdx.z);
}

/* Bytes of shared memory: a tile of K and of V. */
template <class T> int64_t at_softmax_prefill_shared(int64_t d) {
    return 2 * AT_SOFTMAX_KEYS * (d + 8) * (int64_t)sizeof(T);
}

template <class T, int WARPS, class Sum> int at_softmax_prefill_launch(const struct at_launch *launch) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    const dim3 grid = at_mma_grid(z, WARPS * AT_MMA_ROWS);
    const int64_t shared = at_softmax_prefill_shared<T>(z->d);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return 0;
    return at_mma_with_head_size(z->d, [=]<int D>() {
        return at_launch(at_softmax_prefill<T, D, WARPS, Sum>, grid, dim3{ 32 * WARPS, 1, 1 }, shared, launch->stream,
                         at_softmax_view<T>::of(problem));
    });
}

#endif
