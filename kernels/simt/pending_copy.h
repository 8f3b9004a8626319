/* Copies in flight: those from global to shared memory that their thread has not waited for.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_PENDING_COPY_H
#define AT_SIMT_PENDING_COPY_H

#include "kernels/simt/machine.h"

struct at_pending_copy {
    uint8_t *to;
    const uint8_t *from;
    struct at_simt_place place;
    int bytes, from_writable;
    uint32_t group, next; /* next: number of the same thread's next one */
};

/* How many copies in flight have a source that kernels may write: zero keeps writes cheap. */
extern int at_copies_from_writable;

/* Adds one to the end of its thread's; takes away the first. */
void at_pending_copy_add(struct at_simt_thread *thread, const struct at_pending_copy *copy);
void at_pending_copy_drop(struct at_simt_thread *thread);
/* A thread's first; NULL: none. */
const struct at_pending_copy *at_pending_copy_first(const struct at_simt_thread *thread);
/* Ends in a finding when the running thread's write meets the source of a copy of its block in flight, its own too:
 * what orders the two accesses does not help. Other blocks' are never ordered anyway. */
void at_pending_copy_source_written(const void *address, int bytes, const void *where);
/* The copy of the block in flight to a byte of shared memory; NULL: none. */
const struct at_pending_copy *at_pending_copy_to(const struct at_simt_block *block, const void *address);
/* All threads of the block have left: what they never waited for. */
void at_pending_copy_forget(struct at_simt_block *block);
/* A launch begins; that before may have ended in a finding. */
void at_pending_copy_launch(void);

#endif
