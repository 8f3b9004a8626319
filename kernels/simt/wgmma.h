/* wgmma, from the inside of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_WGMMA_H
#define AT_SIMT_WGMMA_H

#include "kernels/simt/machine.h"

/* The start of a block; a thread has left. */
void at_wgmma_begin(struct at_simt_block *block);
void at_wgmma_left(const struct at_simt_thread *thread);

#endif
