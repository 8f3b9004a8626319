/* Softmax decode on mma.sync: the query heads of a kv head are the rows of a tile; steps, shared memory and launch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block has one kv head and a range of keys, and walks over it in tiles of 64. The steps: load K and V
 * (at_mma_stage); scores (at_heads_put_scores), each of the four warps those of 16 keys, to shared memory; online
 * softmax (at_heads_take_scores, at_softmax_update), by every warp for all rows; products P V (at_heads_values), each
 * warp a share of the channels; epilogue (at_heads_store_part): the part that kernels/attention/softmax_parts.h
 * joins. All rows see the same keys: rows of V past the range are zeros, and the weights there are 0. */
#ifndef AT_SOFTMAX_DECODE_MMA_H
#define AT_SOFTMAX_DECODE_MMA_H

#include "kernels/attention/softmax_mma.h"
#include "kernels/softmax_decode/softmax_split.h"

constexpr int AT_HEADS_WARPS = AT_SOFTMAX_KEYS / AT_MMA_KEYS;
static_assert(AT_HEADS_WARPS * 32 == AT_DECODE_THREADS, "a warp for every 16 keys of a tile");

/* Floats from one row of scores to the next: pairs that a warp reads together lie in different banks. */
constexpr int AT_HEADS_STRIDE = AT_SOFTMAX_KEYS + 8;

/* Sums of 8 channels that a warp has: warp w has channels [16 w, 16 w + 16) of every 64. */
template <int D> constexpr int AT_HEADS_SUMS = 2 * ((D / 16 + AT_HEADS_WARPS - 1) / AT_HEADS_WARPS);

/* Shared memory: a tile of K, one of V, scores of 16 rows. */
template <int D, class T> struct at_heads_room {
    T *const k, *const v;
    float *const scores;

    __device__ explicit at_heads_room(T *memory)
        : k(memory), v(k + AT_SOFTMAX_KEYS * AT_MMA_STRIDE<D>),
          scores(reinterpret_cast<float *>(v + AT_SOFTMAX_KEYS * AT_MMA_STRIDE<D>)) {}
    static constexpr int64_t bytes() {
        return 2 * AT_SOFTMAX_KEYS * AT_MMA_STRIDE<D> * (int64_t)sizeof(T) +
               AT_MMA_ROWS * AT_HEADS_STRIDE * (int64_t)sizeof(float);
    }
};

/* The query heads of kv head blockIdx.x, for the only query of request blockIdx.y, and the keys [begin, end) of the
 * block. Rows past the last head repeat it and are not stored. */
template <class T> struct at_mma_heads {
    const at_softmax_view<T> &a;
    int request, kv_head, token, group;
    int begin, end;

    __device__ at_mma_heads(const at_softmax_view<T> &view, int range)
        : a(view), request((int)blockIdx.y), kv_head((int)blockIdx.x), token(view.query_start[request]),
          group(view.h / view.hk), begin((int)blockIdx.z * range),
          end(view.seq_lens[request] < begin + range ? view.seq_lens[request] : begin + range) {}

    /* The request has no query, or no key in the range. */
    __device__ bool empty() const { return a.query_start[request + 1] == token || begin >= end; }
    __device__ int head(int row) const { return kv_head * group + (row < group ? row : group - 1); }
    __device__ int64_t element(int row) const { return ((int64_t)token * a.h + head(row)) * a.d; }
};

/* Stores the scores of this warp's 16 keys of a tile to rows of shared memory, -infinity for keys from `keys` on. */
template <class Sum, int D, class T, class Exp>
__device__ void at_heads_put_scores(const at_online_rows<Exp> &rows, const at_mma_q<D, T> &q, const T *k, int keys,
                                    float *scores) {
    const int g = at_lane() / 4, t = at_lane() % 4, first = (int)threadIdx.x / 32 * AT_MMA_KEYS;
    Sum s[2] = {};
    at_mma_scores(q, k + first * AT_MMA_STRIDE<D>, s);
    for (int i = 0; i < 8; i++) {
        const int key = first + i / 4 * 8 + 2 * t + i % 2;
        scores[(g + i % 4 / 2 * 8) * AT_HEADS_STRIDE + key] = key < keys ? rows.exp.score(s[i / 4][i % 4]) : -INFINITY;
    }
}

/* Loads the scores of a tile as a lane's fragments of all 16 rows. */
__device__ inline void at_heads_take_scores(const float *scores, float (&s)[AT_SOFTMAX_KEYS / 8][4]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int n = 0; n < AT_SOFTMAX_KEYS / 8; n++)
        for (int i = 0; i < 4; i++)
            s[n][i] = scores[(g + i / 2 * 8) * AT_HEADS_STRIDE + 8 * n + 2 * t + i % 2];
}

/* o += P V of a tile for the warp's channels, the weights rounded to T. */
template <int D, class T, class Sum>
__device__ __forceinline__ void at_heads_values(const float (&weights)[AT_SOFTMAX_KEYS / 8][4], const T *v,
                                                Sum (&o)[AT_HEADS_SUMS<D>]) {
    const int warp = (int)threadIdx.x / 32;
    AT_UNROLL
    for (int n = 0; n < AT_SOFTMAX_KEYS / 8; n += 2) {
        uint32_t p[4];
        at_softmax_operand<T>(weights[n], weights[n + 1], p);
        AT_UNROLL
        for (int i = 0; i < AT_HEADS_SUMS<D> / 2; i++)
            if (warp + AT_HEADS_WARPS * i < D / 16)
                at_mma_values_of<D>(p, v + 8 * n * AT_MMA_STRIDE<D>, 16 * (warp + AT_HEADS_WARPS * i), &o[2 * i]);
    }
}

/* Epilogue: stores the part that the block's keys leave for each head of the group. */
template <int D, class T, class Sum, class Exp>
__device__ void at_heads_store_part(const at_mma_heads<T> &heads, const at_online_rows<Exp> &rows,
                                    const Sum (&o)[AT_HEADS_SUMS<D>], float *workspace) {
    const int warp = (int)threadIdx.x / 32, g = at_lane() / 4, t = at_lane() % 4;
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half;
        const float sum = rows.total(half);
        if (row >= heads.group)
            continue;
        float *part =
            at_softmax_part_of(heads.a, heads.request, heads.head(row), workspace, (int)gridDim.z, (int)blockIdx.z);
        AT_UNROLL
        for (int i = 0; i < 2 * AT_HEADS_SUMS<D>; i++) {
            const int channel = 16 * (warp + AT_HEADS_WARPS * (i / 4)) + i / 2 % 2 * 8 + 2 * t + i % 2;
            if (channel < D)
                part[channel] = o[i / 2][2 * half + i % 2];
        }
        if (warp == 0 && t == 0) {
            part[D] = rows.max[half];
            part[D + 1] = sum;
        }
    }
}

/* Reasons to decline other than the format of activations. */
static inline const char *at_softmax_heads_declines(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->h / z->hk > AT_MMA_ROWS ? "more than 16 query heads a kv head" : at_mma_declines(problem);
}

/* Launches kernel.operator()<D>() for the head size D on ranges of RANGE keys, then the kernel that joins their
 * parts. */
template <class T, int RANGE, class Exp = at_softmax_natural, class F>
int at_softmax_heads_launch(const struct at_launch *launch, F kernel) {
    const struct at_sizes *z = &launch->problem->sizes;
    return at_mma_with_head_size(z->d, [=]<int D>() {
        return at_softmax_split_launch<RANGE, Exp>(launch, kernel.template operator()<D>(), z->hk,
                                                   at_heads_room<D, T>::bytes());
    });
}

#endif
