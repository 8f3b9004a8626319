/* The barrier of a block, from the inside of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_BARRIER_H
#define AT_SIMT_BARRIER_H

#include "kernels/simt/machine.h"

/* The running thread has left: those at the barrier wait in vain. */
void at_barrier_left(const struct at_simt_block *block);

#endif
