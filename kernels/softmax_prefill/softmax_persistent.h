/* Softmax prefill on mma.sync by blocks that stay: the tiles of kernels/attention/softmax_mma.h, dealt by a scheduler.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_SOFTMAX_PERSISTENT_H
#define AT_DEVICE_SOFTMAX_PERSISTENT_H

#include "kernels/attention/persistent.h"
#include "kernels/attention/softmax_mma.h"

template <class T, int D, int WARPS, class Sum, class Schedule>
static __global__ void __launch_bounds__(32 * WARPS, 1) at_softmax_persistent(at_softmax_view<T> a, at_mma_work work) {
    AT_SHARED_DYNAMIC(T, memory);
    AT_SHARED(uint32_t[2], taken);
    Schedule schedule(work, taken);
    for (uint32_t item; schedule.next(item);)
        at_softmax_attend<T, D, WARPS, Sum>(a, memory, work.request(item), work.head(item), work.tile(item));
}

/* At most two blocks for each of the 132 processors of an H100. */
template <class T, int WARPS, class Sum, class Schedule>
int at_softmax_persistent_launch(const struct at_launch *launch) {
    constexpr uint32_t BLOCKS = 264;
    const struct at_problem *problem = launch->problem;
    const at_mma_work work(launch, WARPS * AT_MMA_ROWS);
    const int code = work.items ? Schedule::prepare(launch, work, at_softmax_view<T>::of(problem)) : 0;
    if (code)
        return code;
    return at_mma_with_head_size(problem->sizes.d, [=]<int D>() {
        return work.launch(launch, at_softmax_persistent<T, D, WARPS, Sum, Schedule>, 1, BLOCKS, WARPS,
                           at_softmax_prefill_shared<T>(D));
    });
}

#endif
