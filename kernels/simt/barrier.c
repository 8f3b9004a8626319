/* The barrier of a block.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/barrier.h"

#include <string.h>

#include "kernels/simt/clock.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"

static void release(struct at_simt_block *block) {
    struct at_simt_thread *members[AT_BLOCK_MAX];
    int n = 0;
    for (int i = 0; i < block->n; i++)
        if (block->threads[i].state == AT_THREAD_IN_BARRIER) {
            block->threads[i].state = AT_THREAD_READY;
            members[n++] = &block->threads[i];
        }
    block->n_in_barrier = 0;
    at_counters_barrier(block);
    at_clock_order(block, members, n);
}

void at_simt_barrier(struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    struct at_simt_block *block = self->in;
    const struct at_simt_thread *first = block->first_in_barrier;
    self->place = place;
    if (block->n_left > 0)
        at_simt_report(AT_FINDING_RACE, place,
                       "block %lld: thread %d is at a barrier that another thread has left without",
                       (long long)block->number, self->index);
    if (block->n_in_barrier > 0 && (first->place.line != place.line ||
                                    (first->place.file != place.file && strcmp(first->place.file, place.file) != 0)))
        at_simt_report(AT_FINDING_RACE, place,
                       "block %lld: thread %d is at this barrier while thread %d is at the one of %s:%d",
                       (long long)block->number, self->index, first->index, first->place.file, first->place.line);
    if (block->n_in_barrier == 0)
        block->first_in_barrier = self;
    self->state = AT_THREAD_IN_BARRIER;
    if (++block->n_in_barrier == block->n)
        release(block);
    else
        at_simt_wait();
}

void at_barrier_left(const struct at_simt_block *block) {
    const struct at_simt_thread *first = block->first_in_barrier;
    if (block->n_in_barrier > 0)
        at_simt_report(AT_FINDING_RACE, first->place,
                       "block %lld: thread %d is at a barrier that thread %d has left without",
                       (long long)block->number, first->index, at_simt_thread()->index);
}
