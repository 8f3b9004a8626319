/* kernels/device/cluster.h for the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CLUSTER_SIMT_H
#define AT_CLUSTER_SIMT_H

#include "kernels/simt/simt_cluster.h"

static inline int at_cluster_rank() { return at_simt_cluster_rank(); }
static inline int at_cluster_size() { return at_simt_cluster_size(); }
static inline void at_cluster_arrive(AT_PLACE) { at_simt_cluster_arrive({ file, line }, 1); }
static inline void at_cluster_arrive_relaxed(AT_PLACE) { at_simt_cluster_arrive({ file, line }, 0); }
static inline void at_cluster_wait(AT_PLACE) { at_simt_cluster_wait({ file, line }); }
template <class T> T *at_cluster_map(T *own, int rank, AT_PLACE) {
    return static_cast<T *>(at_simt_cluster_map(own, rank, { file, line }));
}

template <class... P, class... A>
int at_launch_cluster(void (*kernel)(P...), dim3 grid, dim3 block, int size, int64_t dynamic_shared, void *stream,
                      A... args) {
    auto call = [kernel, ... held = static_cast<P>(args)] { kernel(held...); };
    return at_simt_launch_cluster([](void *context) { (*static_cast<const decltype(call) *>(context))(); }, &call,
                                  (int64_t)sizeof call, grid, block, size, dynamic_shared, stream);
}

#endif
