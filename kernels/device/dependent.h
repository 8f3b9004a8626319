/* Programmatic dependent launch, of sm_90: a kernel begins while the one before it on the stream ends.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   at_launch_dependent(kernel, grid, block, size, shared, stream, ...)   as at_launch, or with clusters of size > 1 as
 *                             at_launch_cluster; the kernel may begin when each block of the one before it has ended or has
 *                             called at_dependency_trigger(), and there is room
 *   at_dependency_wait()      waits until the kernels before it have ended and all that they wrote is there. Every thread
 *                             that touches global memory, itself or by a copy, calls it before; and in every block some
 *                             thread does, since the kernel behind relies on this one for those before it
 *   at_prefetch_l2(p)         asks for the line of global memory in which p lies, by its address alone: the one thing a
 *                             thread may do with it before it has waited
 *   at_dependency_trigger()   lets the kernel behind begin; what this one writes is there for it when this one has ended
 *
 * In a kernel that was launched otherwise, and before sm_90, both do nothing.
 *
 * Findings: a thread that touches a tensor or the workspace before it has waited, a block that ends without a wait. */
#ifndef AT_DEPENDENT_H
#define AT_DEPENDENT_H

#include "kernels/device/cluster.h"

#ifdef __CUDACC__
#include "kernels/device/dependent_cuda.h"
#else
#include "kernels/simt/dependent_simt.h"
#endif

#endif
