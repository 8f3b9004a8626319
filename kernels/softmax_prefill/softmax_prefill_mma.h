/* Softmax prefill on mma.sync: shared memory and launch of kernels whose blocks have tiles of 64 queries.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The steps that the kernels are composed of are those of kernels/attention/softmax_mma.h. */
#ifndef AT_SOFTMAX_PREFILL_MMA_H
#define AT_SOFTMAX_PREFILL_MMA_H

#include "kernels/attention/softmax_mma.h"

constexpr int AT_FA2_WARPS = 4, AT_FA2_QUERIES = AT_FA2_WARPS * AT_MMA_ROWS;

/* Elements of a tile of K or V in shared memory. */
template <int D> constexpr int AT_FA2_TILE = AT_SOFTMAX_KEYS *AT_MMA_STRIDE<D>;

/* Bytes of shared memory: a tile of K and one of V. */
template <class T, int D> constexpr int64_t AT_FA2_SHARED = 2 * AT_FA2_TILE<D> *(int64_t)sizeof(T);

/* Launches kernel.operator()<D>() for the head size D, a block for each tile of queries. */
template <class T, class F> int at_fa2_launch(const struct at_launch *launch, F kernel) {
    const struct at_problem *problem = launch->problem;
    const dim3 grid = at_mma_grid(&problem->sizes, AT_FA2_QUERIES);
    if (grid.y == 0)
        return 0;
    return at_mma_with_head_size(problem->sizes.d, [=]<int D>() {
        return at_launch(kernel.template operator()<D>(), grid, dim3{ 32 * AT_FA2_WARPS, 1, 1 }, AT_FA2_SHARED<T, D>,
                         launch->stream, at_softmax_view<T>::of(problem));
    });
}

#endif
