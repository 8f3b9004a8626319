/* Barriers in shared memory, from the inside of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_MBARRIER_H
#define AT_SIMT_MBARRIER_H

#include "kernels/simt/machine.h"
#include "kernels/simt/mbarrier_state.h"

/* The start of a block. */
void at_mbarrier_begin(struct at_simt_block *block);
/* The mbarrier at an address, for use by self. Uses are not accesses that race with each other. */
struct at_mbarrier_state *at_mbarrier_use(struct at_simt_thread *self, void *at, const void *site);
/* `bytes` of a bulk copy have landed. */
void at_mbarrier_landed(struct at_simt_block *block, struct at_mbarrier_state *m, int64_t bytes);
/* Adds what threads wait for to a report of a deadlock. */
void at_mbarrier_waits(const struct at_simt_block *block, char *text, size_t size);

#endif
