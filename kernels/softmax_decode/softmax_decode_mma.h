/* Softmax decode on mma.sync: the query heads of a kv head are the rows, a block has a range of their keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tile of 64 keys: K and V to shared memory; the scores of 16 keys a warp, to shared memory; then every warp has all
 * of them, keeps maximum and sum of the rows for itself, and adds P V in its share of the channels. What a range leaves
 * is joined as in softmax_split.h. All rows see the same keys: rows of V past the range are zeros, their P is 0. */
#ifndef AT_DEVICE_SOFTMAX_DECODE_MMA_H
#define AT_DEVICE_SOFTMAX_DECODE_MMA_H

#include "kernels/attention/softmax_mma.h"
#include "kernels/softmax_decode/softmax_split.h"

constexpr int AT_HEADS_WARPS = AT_SOFTMAX_KEYS / AT_MMA_KEYS;
static_assert(AT_HEADS_WARPS * 32 == AT_DECODE_THREADS, "a warp for every 16 keys of a tile");

/* Floats from one row of scores to the next: pairs that a warp reads together lie in different banks. */
constexpr int AT_HEADS_STRIDE = AT_SOFTMAX_KEYS + 8;

/* The query heads of kv head blockIdx.x for the only query of request blockIdx.y. Rows past the last head repeat it and
 * are not stored. */
template <class T> struct at_mma_heads {
    const at_softmax_view<T> &a;
    int request, kv_head, token, group, keys;

    __device__ explicit at_mma_heads(const at_softmax_view<T> &view)
        : a(view), request((int)blockIdx.y), kv_head((int)blockIdx.x), token(view.query_start[request]),
          group(view.h / view.hk), keys(view.seq_lens[request]) {}

    __device__ bool absent() const { return a.query_start[request + 1] == token; }
    __device__ int head(int row) const { return kv_head * group + (row < group ? row : group - 1); }
    __device__ int64_t element(int row) const { return ((int64_t)token * a.h + head(row)) * a.d; }
};

/* Scores of this warp's 16 keys of a tile of `keys` keys, -infinity past the last, to rows of shared memory. */
template <int D, class Sum, class T>
__device__ void at_heads_put_scores(const at_mma_q<D, T> &q, const T *k, int keys, float scale, float *scores) {
    const int g = at_lane() / 4, t = at_lane() % 4, first = (int)threadIdx.x / 32 * AT_MMA_KEYS;
    Sum s[2] = {};
    at_mma_scores(q, k + first * AT_MMA_STRIDE<D>, s);
    for (int i = 0; i < 8; i++) {
        const int key = first + i / 4 * 8 + 2 * t + i % 2;
        scores[(g + i % 4 / 2 * 8) * AT_HEADS_STRIDE + key] = key < keys ? s[i / 4][i % 4] * scale : -INFINITY;
    }
}

/* Scores of a tile as a lane's part of 16 rows. */
__device__ inline void at_heads_take_scores(const float *scores, float (&s)[AT_SOFTMAX_KEYS / 8][4]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int n = 0; n < AT_SOFTMAX_KEYS / 8; n++)
        for (int i = 0; i < 4; i++)
            s[n][i] = scores[(g + i / 2 * 8) * AT_HEADS_STRIDE + 8 * n + 2 * t + i % 2];
}

template <class T, int D, int RANGE, class Sum>
static __global__ void __launch_bounds__(AT_DECODE_THREADS, 1)
    at_softmax_heads_range(at_softmax_view<T> a, float *workspace) {
    constexpr int SHARES = D / 16, OWN = (SHARES + AT_HEADS_WARPS - 1) / AT_HEADS_WARPS;
    AT_SHARED_DYNAMIC(T, k);
    T *v = k + AT_SOFTMAX_KEYS * AT_MMA_STRIDE<D>;
    float *scores = reinterpret_cast<float *>(v + AT_SOFTMAX_KEYS * AT_MMA_STRIDE<D>);
    const int warp = (int)threadIdx.x / 32, g = at_lane() / 4, t = at_lane() % 4;
    const at_mma_heads<T> heads(a);
    const int begin = (int)blockIdx.z * RANGE, end = heads.keys < begin + RANGE ? heads.keys : begin + RANGE;
    if (heads.absent() || begin >= end)
        return;
    const at_mma_q<D, T> q(heads);
    at_online_rows rows;
    Sum o[OWN][2] = {};
    for (int tile = begin; tile < end; tile += AT_SOFTMAX_KEYS) {
        at_mma_stage<D, AT_SOFTMAX_KEYS>(a, heads.request, heads.kv_head, tile, end, k, v);
        at_sync();
        at_heads_put_scores<D, Sum>(q, k, end - tile, a.scale, scores);
        at_sync();
        float s[AT_SOFTMAX_KEYS / 8][4];
        at_heads_take_scores(scores, s);
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            const float factor = rows.take(s, half);
            for (int i = 0; i < 2 * OWN; i++)
                o[i / 2][i % 2].scale(factor, half);
        }
        AT_UNROLL
        for (int n = 0; n < AT_SOFTMAX_KEYS / 8; n += 2) {
            uint32_t p[4];
            at_softmax_operand<T>(s[n], s[n + 1], p);
            AT_UNROLL
            for (int i = 0; i < OWN; i++)
                if (warp + AT_HEADS_WARPS * i < SHARES)
                    at_mma_values_of<D>(p, v + 8 * n * AT_MMA_STRIDE<D>, 16 * (warp + AT_HEADS_WARPS * i), o[i]);
        }
        at_sync();
    }
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half;
        const float sum = rows.total(half);
        if (row >= heads.group)
            continue;
        float *part = at_softmax_part_of(a, heads.request, heads.head(row), workspace, (int)gridDim.z, (int)blockIdx.z);
        AT_UNROLL
        for (int i = 0; i < 4 * OWN; i++) {
            const int channel = 16 * (warp + AT_HEADS_WARPS * (i / 4)) + i / 2 % 2 * 8 + 2 * t + i % 2;
            if (channel < D)
                part[channel] = o[i / 4][i / 2 % 2][2 * half + i % 2];
        }
        if (warp == 0 && t == 0) {
            part[D] = rows.most[half];
            part[D + 1] = sum;
        }
    }
}

/* Reasons to decline but the format of activations. */
static inline const char *at_softmax_heads_declines(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    const char *reason = at_softmax_decode_declines(problem, 0);
    if (z->h / z->hk > AT_MMA_ROWS)
        return "more than 16 query heads a kv head";
    return reason ? reason : at_mma_declines(problem);
}

template <class T, int RANGE, class Sum> int at_softmax_heads_launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const int64_t shared =
        2 * AT_SOFTMAX_KEYS * (z->d + 8) * (int64_t)sizeof(T) + AT_MMA_ROWS * AT_HEADS_STRIDE * (int64_t)sizeof(float);
    return at_mma_with_head_size(z->d, [=]<int D>() {
        return at_softmax_split_launch<RANGE>(launch, at_softmax_heads_range<T, D, RANGE, Sum>, z->hk, shared);
    });
}

#endif
