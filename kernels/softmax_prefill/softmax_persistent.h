/* Softmax prefill by persistent blocks: the launch of kernels that a scheduler of kernels/attention/persistent.h deals
 * tiles of 64 queries.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SOFTMAX_PERSISTENT_H
#define AT_SOFTMAX_PERSISTENT_H

#include "kernels/attention/persistent.h"
#include "kernels/softmax_prefill/softmax_prefill_mma.h"

/* Blocks at a time: two a multiprocessor. */
static inline uint32_t at_fa2_blocks() { return 2 * at_multiprocessors(); }

/* Launches kernel.operator()<D>() for the head size D with persistent blocks, after what Schedule must launch first. */
template <class T, class Schedule, class F> int at_fa2_persistent_launch(const struct at_launch *launch, F kernel) {
    const struct at_problem *problem = launch->problem;
    const at_mma_work work(launch, AT_FA2_QUERIES);
    const int code = work.items ? Schedule::prepare(launch, work, at_softmax_view<T>::of(problem)) : 0;
    if (code)
        return code;
    return at_mma_with_head_size(problem->sizes.d, [=]<int D>() {
        return work.launch(launch, kernel.template operator()<D>(), 1, at_fa2_blocks(), AT_FA2_WARPS,
                           AT_FA2_SHARED<T, D>);
    });
}

#endif
