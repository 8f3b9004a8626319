/* The registers that warpgroups give and take, from the inside of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_REGISTERS_H
#define AT_SIMT_REGISTERS_H

#include "kernels/simt/machine.h"

/* The start of a block. */
void at_registers_begin(struct at_simt_block *block);
/* Adds what threads wait for to a report of a deadlock. */
void at_registers_waits(const struct at_simt_block *block, char *text, size_t size);

#endif
