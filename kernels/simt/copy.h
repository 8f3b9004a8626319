/* Copies from global to shared memory that a thread starts and waits for later.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_COPY_H
#define AT_SIMT_COPY_H

#include "kernels/simt/machine.h"

/* How many copies in flight have a source that kernels may write: zero keeps writes cheap. */
extern int at_copies_from_writable;

/* Ends in a finding when the running thread's write meets the source of a copy of its block in flight, its own too:
 * what orders the two accesses does not help. Other blocks' are never ordered anyway. */
void at_copy_source_written(const void *address, int bytes, const void *where);
/* The copy of self's block in flight to a byte of shared memory. */
const struct at_pending_copy *at_copy_to(const struct at_simt_block *block, const void *address);
/* All threads of the block have left: what they never waited for. */
void at_copy_forget(struct at_simt_block *block);
/* A launch begins; that before may have ended in a finding. */
void at_copy_launch(void);

#endif
