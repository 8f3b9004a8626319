/* Softmax decode with the keys of a row in ranges: a block for each range, then the kernel that joins their parts.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a part is and how parts are joined: kernels/attention/softmax_parts.h. */
#ifndef AT_SOFTMAX_SPLIT_H
#define AT_SOFTMAX_SPLIT_H

#include "kernels/attention/softmax_parts.h"

/* The second launch: joins the parts that ranges of RANGE keys left in the workspace. */
template <class T, int RANGE, class Exp>
static __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    at_softmax_join_ranges(at_softmax_view<T> a, float *workspace, int max_ranges) {
    const at_softmax_query<T> query(a);
    if (query.absent())
        return;
    at_softmax_join<Exp>(query, at_softmax_part_of(a, query.request, query.head, workspace, max_ranges, 0),
                         at_split_ranges<RANGE>(query.keys));
}

/* Bytes for as many ranges as a request's pages hold. The lengths at the launch must not decide: a captured graph keeps
 * the grid while lengths grow. */
template <int RANGE> int64_t at_softmax_split_workspace(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->b * z->h * at_split_ranges<RANGE>(z->capacity) * at_softmax_part(z->d) * (int64_t)sizeof(float);
}

/* Launches a kernel on grid (x, requests, ranges that the longest request can have), then the join. */
template <int RANGE, class Exp = at_softmax_natural, class T>
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
                : at_launch(at_softmax_join_ranges<T, RANGE, Exp>, rows, block, 0, launch->stream, view, workspace,
                            ranges);
}

#endif
