/* What is remembered of every two bytes of memory that threads share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SHADOW_H
#define AT_SIMT_SHADOW_H

#include "kernels/simt/machine.h"

/* The last write, and the readers since. Times count synchronisations of the job (at_simt_machine.now). Several readers
 * of one block are kept as the set of their warps times the set of their lanes, with the latest of their times: a
 * larger set than the real one where warps read with different lanes. */
struct at_shadow_cell {
    uint32_t write_time, read_time;   /* 0: never in this job */
    uint32_t write_block, read_block; /* numbers, modulo 2^32 */
    uint32_t read_warps, read_lanes;
    uint16_t write_thread;
    uint8_t write_atomic, read_by_blocks; /* readers in several blocks */
};

enum at_access { AT_ACCESS_READ, AT_ACCESS_WRITE, AT_ACCESS_ATOMIC };

/* Starts a job: nothing is remembered of memory outside `regions`, nor of what was there before. */
void at_shadow_job(const struct at_simt_region *regions, int n);
/* Checks and records one access of the running thread. `where`: a return address inside the kernel, for the message. */
void at_shadow_access(const void *address, int bytes, enum at_access access, const void *where);

#endif
