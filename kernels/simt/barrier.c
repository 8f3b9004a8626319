/* The barrier of a block, and its shared variables.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/simt/counters.h"
#include "kernels/simt/machine.h"

static void release(struct at_simt_block *block) {
    struct at_simt_thread *members[AT_BLOCK_MOST];
    int n = 0;
    for (int i = 0; i < block->n; i++)
        if (block->threads[i].state == AT_THREAD_IN_BARRIER) {
            block->threads[i].state = AT_THREAD_READY;
            members[n++] = &block->threads[i];
        }
    block->n_in_barrier = 0;
    at_counters_barrier(block);
    at_simt_order(block, members, n);
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

void at_simt_barrier_left(struct at_simt_block *block) {
    const struct at_simt_thread *first = block->first_in_barrier;
    if (block->n_in_barrier > 0)
        at_simt_report(AT_FINDING_RACE, first->place,
                       "block %lld: thread %d is at a barrier that thread %d has left without",
                       (long long)block->number, first->index, at_simt_thread()->index);
}

void *at_simt_shared_dynamic(void) { return at_simt_thread()->in->arena; }

void *at_simt_shared(const void *key, int64_t bytes, int64_t align) {
    struct at_simt_block *block = at_simt_thread()->in;
    for (int i = 0; i < block->n_variables; i++)
        if (block->variables[i].key == key)
            return block->arena + block->variables[i].offset;
    /* A gap between variables, so that an index past the end is seen. */
    int64_t offset = (block->arena_used + 16 + align - 1) / align * align;
    if (block->n_variables == AT_SHARED_VARIABLES || offset + bytes > AT_SHARED_MOST)
        at_simt_report_at(AT_FINDING_BOUNDS, __builtin_return_address(0),
                          "more than %d shared variables, or more than %d bytes of them", (int)AT_SHARED_VARIABLES,
                          (int)AT_SHARED_MOST);
    block->variables[block->n_variables++] = (struct at_shared_variable){ key, offset, bytes };
    block->arena_used = offset + bytes;
    return block->arena + offset;
}
