/* Copies in bulk of sm_90: boxes of a tensor, or plain bytes, between global and shared memory, by one thread.
 * SPDX-License-Identifier: Apache-2.0
 *
 * On the host, inside `launch`:
 *   at_tensor_box        a tensor in device memory and the box that a copy moves (kernels/device/tensor_box.h)
 *   at_tensor_map_encode(map, box)   0, or cudaErrorInvalidValue where at_tensor_box_wrong says why, or what the driver
 *                                    says; a kernel takes the map as `const __grid_constant__ at_tensor_map name`
 * In kernels, by any one thread:
 *   AT_SHARED_TILES(T, name)                as AT_SHARED_DYNAMIC, at a multiple of 1024, where every swizzle begins
 *   at_tensor_load(to, map, {x, y, ...}, b) the box whose first element has these coordinates, as many as the tensor has
 *                                           dimensions; what lies outside the tensor is zeros. `to`: a multiple of 128
 *   at_bulk_load(to, from, bytes, b)        multiples of 16 all three
 *   at_mbarrier_arrive_expect(b, bytes)     arrives; the phase then also waits for so many bytes, those of whole boxes
 *   at_tensor_store(map, {x, y, ...}, from), at_bulk_store(to, from, bytes)   the way back; outside nothing is stored
 *   at_bulk_commit(), at_bulk_wait_read<N>(), at_bulk_wait<N>()   a group of this thread's stores; waits until all groups
 *                                           but its last N have read their source, or are over
 *
 * A box in shared memory is contiguous, dimension 0 first. With a swizzle of W = 32, 64 or 128 its
 * rows have W bytes and lie as at_matrix::swizzled<W> and at_matrix_mn::swizzled<W> of kernels/device/wgmma.h take
 * them.
 *
 * These copies go by the async proxy: what threads wrote, the mbarrier itself included, they see or write over only
 * past an at_proxy_fence(). A load may be read by threads that have waited for its mbarrier or are ordered after that; wgmma
 * then needs no fence. Findings: bytes read or written before that, or again before those that read them have arrived
 * somewhere the loading thread waits; a block that ends before its copies do; a wrong number of bytes is a deadlock. */
#ifndef AT_TMA_H
#define AT_TMA_H

#include "kernels/device/tensor_box.h"
#include "kernels/device/wgmma.h"

#ifdef __CUDACC__
#include "kernels/device/tma_cuda.h"
#else
#include "kernels/simt/tma_simt.h"
#endif

#endif
