/* Softmax prefill by persistent blocks with warp roles: a warp's walk over a piece, and the launch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The producer, the consumers' loop and schedulers: kernels/attention/persistent_tma.h. */
#ifndef AT_SOFTMAX_PERSISTENT_TMA_H
#define AT_SOFTMAX_PERSISTENT_TMA_H

#include "kernels/attention/persistent_tma.h"
#include "kernels/softmax_prefill/softmax_tma.h"

/* A consumer warp of at_tma_consume_pieces, sums in f32. */
template <class T, int D>
struct at_tma_softmax_walk : at_tma_consumer<T, D, at_sum_f32, at_tma_softmax<T, D, at_sum_f32>> {
    using at_tma_consumer<T, D, at_sum_f32, at_tma_softmax<T, D, at_sum_f32>>::at_tma_consumer;

    /* Everything but the epilogue: q is given back behind the last product. */
    __device__ void walk(const at_tma_work_room<T, D> &room) {
        if (this->span.first < this->span.last) /* else it stays for the next walk */
            this->first_turn();
        this->walk_whole(this->span.last);
        this->walk_masked(this->span.last);
        this->release(room.q_empty());
    }
};

/* Launches kernel.operator()<D>() for the head size D with persistent blocks, after what Schedule must launch first. */
template <class T, class Schedule, class F> int at_fa3_persistent_launch(const struct at_launch *launch, F kernel) {
    const at_mma_work work(launch, AT_TMA_QUERIES);
    if (work.items == 0)
        return 0;
    const int code = Schedule::prepare(launch, work, at_softmax_view<T>::of(launch->problem));
    const dim3 grid{ work.items < at_tma_blocks() ? work.items : at_tma_blocks(), 1, 1 };
    return code ? code : at_tma_launch_grid<at_softmax_view<T>, at_tma_work_room>(launch, grid, kernel, work);
}

#endif
