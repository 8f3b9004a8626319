/* Softmax of few queries a request, the rows of a kv head packed: parts of ranges, their join, the launch of both.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rows, ranges and the ring of tiles: kernels/attention/packed_rows.h. Steps: kernels/attention/softmax_mma.h. What a part
 * is and how parts are joined: kernels/attention/softmax_parts.h. */
#ifndef AT_SOFTMAX_APPEND_H
#define AT_SOFTMAX_APPEND_H

#include "kernels/attention/packed_rows.h"
#include "kernels/attention/softmax_mma.h"
#include "kernels/attention/softmax_parts.h"

constexpr int AT_APPEND_STAGES = 2;
template <class T, int D> using at_append_ring = at_packed_ring<T, D, AT_SOFTMAX_KEYS, AT_APPEND_STAGES>;

/* Epilogue: stores the part that the block's keys leave for each row that sees one of them. */
template <int N, class T, class Sum, class Exp>
__device__ void at_append_store_part(const at_softmax_view<T> &a, const at_packed_block<T> &block,
                                     const at_online_rows<Exp> &rows, const Sum (&o)[N], float *workspace) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half;
        const float sum = rows.total(half);
        if (!block.rows.has(row) || block.rows.visible(row) <= block.begin)
            continue;
        float *part = at_softmax_part_of(a, block.rows.token(row), block.rows.head(row), workspace, (int)gridDim.z,
                                         (int)blockIdx.z);
        AT_UNROLL
        for (int i = 0; i < N; i++)
            for (int j = 0; j < 2; j++)
                part[8 * i + 2 * t + j] = o[i][2 * half + j];
        if (t == 0) {
            part[8 * N] = rows.max[half];
            part[8 * N + 1] = sum;
        }
    }
}

/* The second launch: joins the ranges of which the token sees a key. */
template <class T, class Exp>
static __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    at_append_join(at_softmax_view<T> a, float *workspace, int max_ranges) {
    const int head = (int)blockIdx.x, request = (int)blockIdx.y, token = a.query_start[request] + (int)blockIdx.z;
    if (token >= a.query_start[request + 1])
        return;
    const at_softmax_query<T> query(a, head, request, token, a.visible(request, (int)blockIdx.z));
    at_softmax_join<Exp>(query, at_softmax_part_of(a, token, head, workspace, max_ranges, 0),
                         at_split_ranges<AT_PACKED_RANGE>(query.keys));
}

static inline int64_t at_append_workspace(const struct at_problem *problem) {
    return at_packed_workspace(&problem->sizes, at_softmax_part(problem->sizes.d));
}

/* Reasons to decline other than the format of activations. */
static inline const char *at_append_declines(const struct at_problem *problem) {
    const char *reason = at_packed_declines(problem);
    return reason ? reason : at_softmax_ex2_declines(problem);
}

/* Launches kernel.operator()<D>() for the head size D, then the join. */
template <class T, class Exp, class F> int at_append_launch(const struct at_launch *launch, F kernel) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_packed_launch<at_softmax_view<T>>(launch, kernel.template operator()<D>(),
                                                    at_append_ring<T, D>::BYTES, at_append_join<T, Exp>);
    });
}

#endif
