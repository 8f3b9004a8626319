/* Vector clocks: which accesses happen before which.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Synchronisations are counted by at_simt_machine.now. A thread's epoch is its stretch between two of its own, named by
 * the count with which it began; an access is remembered by its thread and that thread's epoch. clock[t] of a thread is
 * the latest epoch of thread t of which all accesses happen before what the thread does now. A synchronisation joins
 * the clocks of those that take part (the greater of each element) and begins a new epoch for each.
 *
 * A barrier of the whole block orders everything before it, which one number says: at_simt_block.epoch.
 *
 * Clocks have a second part, which counts once a thread of the block has put up a proxy fence: the same n elements for
 * accesses that a proxy fence stands behind (proxy.c), and element n in the place of the block's epoch. Behind it lie
 * AT_MBARRIERS_MAX elements for bulk copies: what landed by mbarrier m in that epoch or earlier happens before. */
#ifndef AT_SIMT_CLOCK_H
#define AT_SIMT_CLOCK_H

#include "kernels/simt/machine.h"

enum { AT_CLOCK_WIDTH_MAX = 2 * AT_BLOCK_MAX + 1 + AT_MBARRIERS_MAX };

/* Elements of a clock in a block of n threads. */
static inline int at_clock_width(int n, int fenced) { return fenced ? 2 * n + 1 + AT_MBARRIERS_MAX : n; }
static inline int at_clock_width_now(const struct at_simt_block *block) {
    return at_clock_width(block->n, block->fenced);
}
/* A clock of the greatest width, of zeros. */
uint32_t *at_clock_create(void);
/* The greater of each element; the two may be one, and overlap no otherwise. */
void at_clock_join(uint32_t *clock, const uint32_t *other, int width);
/* The lesser of each. */
void at_clock_meet(uint32_t *clock, const uint32_t *other, int width);
/* What a thread has done in this epoch and knows of others goes into a clock; what it does from here on does not. */
void at_clock_release(uint32_t *clock, struct at_simt_thread *self);
/* All that the members have done happens before what each of them does next. */
void at_clock_order(struct at_simt_block *block, struct at_simt_thread *const *members, int n);
/* Sets the count of synchronisations back, and the clocks of resident threads with it. */
void at_clock_restart(void);

/* Whether what `thread` of self's block did in that epoch happens before what self does now. AT_BLOCK_MAX + m: what
 * landed by mbarrier m, where no barrier helps as long as nobody has waited for the mbarrier. */
static inline int at_happens_before(const struct at_simt_thread *self, int thread, uint32_t epoch) {
    if (thread >= AT_BLOCK_MAX)
        return self->in->fenced && self->clock[2 * self->in->n + 1 + thread - AT_BLOCK_MAX] >= epoch;
    return thread == self->index || epoch < self->in->epoch || self->clock[thread] >= epoch;
}

/* Whether a proxy fence stands between what `thread` did in that epoch and what self does now. */
static inline int at_clock_fenced(const struct at_simt_thread *self, int thread, uint32_t epoch) {
    const uint32_t *fenced = self->clock + self->in->n;
    return self->in->fenced && (epoch < fenced[self->in->n] || fenced[thread] >= epoch);
}

#endif
