/* TMA of sm_90: one thread copies boxes of a tensor, or plain bytes, between global and shared memory.
 * SPDX-License-Identifier: Apache-2.0
 *
 * On the host, inside `launch`:
 *   at_tensor_box        a tensor in device memory and the box that a copy moves (kernels/device/tensor_box.h)
 *   at_tensor_map_encode(map, box)   0, cudaErrorInvalidValue (at_tensor_box_wrong says why), or the driver's error;
 *                                    a kernel takes the map as `const __grid_constant__ at_tensor_map name`
 * In kernels, by any one thread:
 *   AT_SHARED_TILES(T, name)                as AT_SHARED_DYNAMIC, aligned to 1024 bytes as every swizzle wants
 *   at_tensor_load(to, map, {x, y, ...}, b) the box whose first element has these coordinates, as many as the tensor has
 *                                           dimensions; elements outside the tensor are zeros. `to`: a multiple of 128
 *   at_tensor_prefetch(map)                 asks for the map itself, which the first copy would wait for
 *   at_bulk_load(to, from, bytes, b)        multiples of 16 all three
 *   at_mbarrier_arrive_expect(b, bytes)     arrives; the phase then also waits for this many bytes, whole boxes
 *   at_tensor_store(map, {x, y, ...}, from), at_bulk_store(to, from, bytes)   to global; nothing is stored outside
 *   at_bulk_commit(), at_bulk_wait_read<N>(), at_bulk_wait<N>()   closes a group of this thread's stores; waits until
 *                                           all groups but the last N have read their source, or are complete
 *
 * A box in shared memory has its elements one after the other, dimension 0 fastest. With a swizzle of W = 32, 64 or 128
 * its rows have W bytes and lie as at_matrix::swizzled<W> and at_matrix_mn::swizzled<W> of kernels/device/wgmma.h take
 * them.
 *
 * These copies use the async proxy: they see what threads wrote, mbarriers included, and may overwrite it, only behind
 * an at_proxy_fence(). A thread may read a loaded box once it has waited for the mbarrier or is ordered after such a
 * wait; wgmma then needs no fence. Findings: bytes read or written before that; bytes loaded again before their readers
 * have arrived where the loading thread waits; a block that ends before its copies; a wrong number of bytes, which is a
 * deadlock. */
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
