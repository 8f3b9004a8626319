/* Softmax decode with the keys of a row in a given number of ranges: how long they are, and the launches.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A row of n keys has SPLITS ranges of ceil(n / SPLITS) keys, rounded up to whole units of AT_SPLITS_UNIT; of a short row the
 * last ranges are empty and leave no part. Parts and their join: softmax_split.h. */
#ifndef AT_SOFTMAX_SPLITS_H
#define AT_SOFTMAX_SPLITS_H

#include "kernels/softmax_decode/softmax_split.h"

constexpr int AT_SPLITS_UNIT = 16;

/* How a row of `keys` keys is cut. */
template <int SPLITS> struct at_splits {
    __host__ __device__ static int range(int64_t keys) {
        const int64_t share = (keys + SPLITS - 1) / SPLITS;
        return (int)((share + AT_SPLITS_UNIT - 1) / AT_SPLITS_UNIT * AT_SPLITS_UNIT);
    }
    /* Those that are not empty. */
    __device__ static int ranges(int keys) { return keys > 0 ? (keys + range(keys) - 1) / range(keys) : 0; }
};

/* The second launch: joins the parts that the ranges left in the workspace. */
template <class T, int SPLITS>
static __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    at_softmax_join_splits(at_softmax_view<T> a, float *workspace) {
    const at_softmax_query<T> query(a);
    if (query.absent())
        return;
    at_softmax_join<at_softmax_natural>(query, at_softmax_part_of(a, query.request, query.head, workspace, SPLITS, 0),
                                        at_splits<SPLITS>::ranges(query.keys));
}

template <int SPLITS> int64_t at_softmax_splits_workspace(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->b * z->h * SPLITS * at_softmax_part(z->d) * (int64_t)sizeof(float);
}

/* Shared memory for the scores of the longest range that a request's pages can hold: lengths may grow in a captured graph. */
template <int SPLITS> int64_t at_softmax_splits_shared(const struct at_sizes *z) {
    return at_splits<SPLITS>::range(z->capacity) * (int64_t)sizeof(float);
}

/* Reasons to decline. */
template <int SPLITS> const char *at_softmax_splits_declines(const struct at_problem *problem) {
    const char *reason = at_head_size_declines(problem);
    if (!reason)
        reason = at_attention_declines(problem, 0);
    if (!reason && at_softmax_splits_shared<SPLITS>(&problem->sizes) > 220 * 1024)
        reason = "a range has more keys than shared memory holds";
    return reason;
}

/* Launches a kernel on grid (query heads, requests, SPLITS), then the join. */
template <int SPLITS, class T>
int at_softmax_splits_launch(const struct at_launch *launch, void (*kernel)(at_softmax_view<T>, float *)) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    const dim3 grid{ (unsigned)z->h, (unsigned)z->b, SPLITS }, rows{ (unsigned)z->h, (unsigned)z->b, 1 };
    const dim3 block{ AT_DECODE_THREADS, 1, 1 };
    const auto view = at_softmax_view<T>::of(problem);
    float *workspace = static_cast<float *>(launch->workspace);
    if (z->tokens == 0)
        return 0;
    const int code =
        at_launch(kernel, grid, block, at_softmax_splits_shared<SPLITS>(z), launch->stream, view, workspace);
    return code ? code : at_launch(at_softmax_join_splits<T, SPLITS>, rows, block, 0, launch->stream, view, workspace);
}

#endif
