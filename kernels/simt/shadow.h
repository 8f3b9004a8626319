/* Every access of a kernel to memory that threads share, checked and remembered.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SHADOW_H
#define AT_SIMT_SHADOW_H

#include "kernels/simt/memory.h"

/* Checks and records one access of the running thread: there is one, and accesses are checked. `where`: a return address
 * inside the kernel, for the message. */
void at_shadow_access(const void *address, int bytes, enum at_access access, const void *where);
void at_shadow_read(const void *address, int bytes, const void *where);
void at_shadow_write(const void *address, int bytes, const void *where);
/* The same for what is not an access of the compiler's: findings name the thread's place, `site` is for counting. */
void at_shadow_access_at(const void *address, int bytes, enum at_access access, const void *site);
/* A copy of the running thread lands: its source is read again, its destination is written now. */
void at_shadow_landed(const void *to, const void *from, int bytes);
/* wgmma or a bulk store has read `bytes` of shared memory for the running thread and is waited for: no more
 * AT_ACCESS_MULTIPLY or AT_ACCESS_BULK_READ in flight there. */
void at_shadow_multiplied(const void *address, int bytes);
/* A bulk load by mbarrier number m, issued by the running thread: AT_ACCESS_BULK_WRITE or AT_ACCESS_BULK_LANDING. */
void at_shadow_bulk(const void *to, int bytes, int m, enum at_access access);
/* Forgets cells of single bytes (the job before ends), and vectors of readers (a launch begins). */
void at_shadow_job(void);
void at_shadow_launch(void);

#endif
