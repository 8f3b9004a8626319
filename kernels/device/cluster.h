/* Clusters of sm_90: blocks that run together, wait for each other, and reach each other's shared memory.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   at_launch_cluster(kernel, grid, block, size, shared, stream, ...)   as at_launch; clusters of `size` neighbours along
 *                             x: 1, 2, 4, 8 or 16, and grid.x a multiple
 *   at_cluster_rank(), at_cluster_size()     of the block within its cluster
 *   at_cluster_arrive(), at_cluster_wait()   the barrier of the cluster, for every thread of it: what precedes any
 *                             arrival, in shared and global memory, is ordered before what follows a wait
 *   at_cluster_arrive_relaxed()   an arrival that orders no memory: enough to say that the block has begun, and
 *                             cheaper, since nothing that is under way is waited for
 *   at_cluster_map(p, rank)   the address, in block `rank`, of what p points to in this block's shared memory
 *
 * Findings: an access to a block before a barrier of the cluster shows that it has started, or when it may have exited;
 * accesses without an order; a wait without an arrival. Before sm_90 a launch traps. */
#ifndef AT_CLUSTER_H
#define AT_CLUSTER_H

#include "kernels/device/device.h"

#ifdef __CUDACC__
#include "kernels/device/cluster_cuda.h"
#else
#include "kernels/simt/cluster_simt.h"
#endif

#endif
