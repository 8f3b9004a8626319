/* Clusters as kernels/device/cluster.h sees them: blocks that run together and reach each other's shared memory. C and
 * C++.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SIMT_CLUSTER_H
#define AT_SIMT_SIMT_CLUSTER_H

#include "kernels/simt/simt.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AT_SIMT_CLUSTER_MAX = 16 };

/* at_simt_launch for clusters of `size` neighbours along x: 1, 2, 4, 8 or 16, and grid.x a multiple. */
int at_simt_launch_cluster(void (*entry)(void *), void *arguments, int64_t arguments_bytes, struct at_dim3 grid,
                           struct at_dim3 block, int size, int64_t dynamic_shared, const void *stream);

/* Of the running block within its cluster. */
int at_simt_cluster_rank(void);
int at_simt_cluster_size(void);
/* What all threads of the cluster did before they arrived is ordered before what each does after it has waited; not what one
 * did that arrived without `orders`. */
void at_simt_cluster_arrive(struct at_simt_place place, int orders);
void at_simt_cluster_wait(struct at_simt_place place);
/* Where block `rank` of the cluster has what lies at this address of the own shared memory. */
void *at_simt_cluster_map(const void *own, int rank, struct at_simt_place place);

#ifdef __cplusplus
}
#endif
#endif
