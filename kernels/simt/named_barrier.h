/* Named barriers, from the inside of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_NAMED_BARRIER_H
#define AT_SIMT_NAMED_BARRIER_H

#include "kernels/simt/machine.h"

/* The start of a block; a thread has left. */
void at_named_begin(struct at_simt_block *block);
void at_named_left(const struct at_simt_thread *left);
/* Adds what threads wait for to a report of a deadlock. */
void at_named_waits(const struct at_simt_block *block, char *text, size_t size);

#endif
