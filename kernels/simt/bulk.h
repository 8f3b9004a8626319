/* Bulk copies, from the inside of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_BULK_H
#define AT_SIMT_BULK_H

#include "kernels/simt/machine.h"

/* A load in flight lands, one that the seed names; 0: there is none. */
int at_bulk_land_one(struct at_simt_block *block);
/* A thread has left; the start of a launch. */
void at_bulk_left(const struct at_simt_thread *thread);
void at_bulk_launch(void);

#endif
