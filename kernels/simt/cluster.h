/* Clusters, from the inside of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_CLUSTER_H
#define AT_SIMT_CLUSTER_H

#include "kernels/simt/machine.h"

/* The blocks of a cluster begin, the first of which this is; a thread has left. */
void at_cluster_begin(const struct at_simt_block *first);
void at_cluster_left(const struct at_simt_thread *thread);
/* Adds what threads wait for to a report of a deadlock. */
void at_cluster_waits(const struct at_simt_block *block, char *text, size_t size);
/* The other block of the cluster in whose arena the running thread reaches for an address; NULL: none. */
struct at_simt_block *at_cluster_reach(const uint8_t *address, const void *where);
/* Whether what a thread of another block of the cluster did in that epoch happens before what self does now. */
int at_cluster_happens_before(const struct at_simt_thread *self, uint32_t block, int thread, uint32_t epoch);
/* Whether two blocks are of one cluster. */
static inline int at_cluster_same(uint32_t a, uint32_t b) {
    return a == b || (at_simt_machine.cluster > 1 &&
                      a / (uint32_t)at_simt_machine.cluster == b / (uint32_t)at_simt_machine.cluster);
}

#endif
