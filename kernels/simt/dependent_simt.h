/* kernels/device/dependent.h for the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEPENDENT_SIMT_H
#define AT_DEPENDENT_SIMT_H

#include "kernels/simt/simt_dependent.h"

static inline void at_dependency_wait(AT_PLACE) { at_simt_dependency_wait({ file, line }); }
static inline void at_dependency_trigger() {}
template <class T> void at_prefetch_l2(const T *) {}

template <class... P, class... A>
int at_launch_dependent(void (*kernel)(P...), dim3 grid, dim3 block, int size, int64_t dynamic_shared, void *stream,
                        A... args) {
    at_simt_next_is_dependent();
    return at_launch_cluster(kernel, grid, block, size, dynamic_shared, stream, args...);
}

#endif
