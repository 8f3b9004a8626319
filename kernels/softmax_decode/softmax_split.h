/* Softmax decode with the keys of a row in parts: what a part leaves behind, and how parts are joined.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part is d sums of weights times V, then its maximum score m_j, then its sum of weights l_j: d + 2 floats, of
 * weights relative to its own maximum. A row's parts lie one after the other, in shared memory or in a workspace. With
 * m the largest m_j, a part counts e^(m_j - m) times in sums of V and of weights. That is the merge by e^(lse_j - lse)
 * of outputs that are already divided, without the rounding of a logarithm in every weight. */
#ifndef AT_DEVICE_SOFTMAX_SPLIT_H
#define AT_DEVICE_SOFTMAX_SPLIT_H

#include "kernels/attention/softmax.h"

__host__ __device__ inline int64_t at_softmax_part(int64_t d) { return d + 2; }

/* Part `part` of up to `parts` of a query in a workspace. */
template <class T>
__device__ float *at_softmax_part_of(const at_softmax_view<T> &a, int request, int head, float *workspace, int parts,
                                     int part) {
    return workspace + (((int64_t)request * a.h + head) * parts + part) * at_softmax_part(a.d);
}

/* o and lse of a query from its `parts` parts, in ascending order; by all threads of the block. */
template <class T> __device__ void at_softmax_join(const at_softmax_query<T> &query, const float *from, int parts) {
    const int d = query.a.d;
    const auto part = [=](int i) { return from + i * at_softmax_part(d); };
    float most = -INFINITY;
    for (int i = 0; i < parts; i++)
        most = fmaxf(most, part(i)[d]);
    for (int c = (int)threadIdx.x; c < d; c += (int)blockDim.x) {
        float o = 0.0f, sum = 0.0f;
        for (int i = 0; i < parts; i++) {
            const float weight = at_softmax_factor(part(i)[d], most), scaled = part(i)[c] * weight;
            o = i > 0 ? o + scaled : scaled;
            sum += part(i)[d + 1] * weight;
        }
        query.put(c, parts > 0 ? o / sum : 0.0f);
        if (c == 0)
            query.put_lse(most, sum);
    }
}

/* The second launch: joins the parts that ranges of RANGE keys left in the workspace. */
template <class T, int RANGE>
static __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    at_softmax_join_ranges(at_softmax_view<T> a, float *workspace, int most_ranges) {
    const at_softmax_query<T> query(a);
    if (query.absent())
        return;
    at_softmax_join(query, at_softmax_part_of(a, query.request, query.head, workspace, most_ranges, 0),
                    at_split_ranges<RANGE>(query.keys));
}

/* Room for as many ranges as a request's pages hold: lengths seen at a launch must not decide, a graph keeps them. */
template <int RANGE> int64_t at_softmax_split_workspace(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->b * z->h * at_split_ranges<RANGE>(z->capacity) * at_softmax_part(z->d) * (int64_t)sizeof(float);
}

/* A kernel on grid (x, requests, ranges that the longest request can have), then the join. */
template <int RANGE, class T>
int at_softmax_split_launch(const struct at_launch *launch, void (*kernel)(at_softmax_view<T>, float *), int64_t x,
                            int64_t shared) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    const int ranges = at_split_ranges<RANGE>(z->capacity);
    const dim3 grid{ (unsigned)x, (unsigned)z->b, (unsigned)ranges }, rows{ (unsigned)z->h, (unsigned)z->b, 1 };
    const dim3 block{ AT_DECODE_THREADS, 1, 1 };
    const auto view = at_softmax_view<T>::of(problem);
    float *workspace = static_cast<float *>(launch->workspace);
    if (z->tokens == 0)
        return 0;
    const int code = ranges ? at_launch(kernel, grid, block, shared, launch->stream, view, workspace) : 0;
    return code ? code
                : at_launch(at_softmax_join_ranges<T, RANGE>, rows, block, 0, launch->stream, view, workspace, ranges);
}

#endif
