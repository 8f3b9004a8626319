/* Counts of what a kernel does to memory, on request.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Lanes run one after another here, so a warp's access is put together afterwards: what lanes do at one place for the
 * n-th time since the last barrier of the block is one request. */
#ifndef AT_SIMT_COUNTERS_H
#define AT_SIMT_COUNTERS_H

#include "attest/run_mode.h"
#include "kernels/simt/memory.h"

extern int at_counters_on;
/* A job begins: nothing is counted yet. What has been counted in it. */
void at_counters_job(void);
const struct at_counters *at_counters_get(void);
void at_counters_access(const struct at_spot *spot, const void *address, int bytes, enum at_access access,
                        const void *where);
/* A warp operation is complete. */
void at_counters_warp_operation(void);
/* All threads of the block are at a barrier; or the last one is about to leave. */
void at_counters_barrier(struct at_simt_block *block);
void at_counters_flush(struct at_simt_block *block);

#endif
