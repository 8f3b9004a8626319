/* When every thread of a block waits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_DEADLOCK_H
#define AT_SIMT_DEADLOCK_H

#include "kernels/simt/machine.h"

/* Reports who waits for what. Nothing when all threads have left. */
void at_deadlock_report(const struct at_simt_block *block);

#endif
