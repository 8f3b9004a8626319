/* What kernels are written in: one interface, for CUDA and for the SIMT machine. Kernels themselves hold no #ifdef.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   threadIdx blockIdx blockDim gridDim, __global__ __device__ __launch_bounds__   as in CUDA
 *   at_bf16 at_f16, at_float(x), at_round_to<T>(f)     16-bit formats; round to nearest even
 *   at_load_pair(p, a, b)                              p[0] and p[1] of a 16-bit format by one load of 32 bits; p even
 *   at_load16(p, x), at_store16(p, x)                  the 16 bytes at p to or from an array x by one access; p aligned
 *   AT_SHARED(T[N], name), AT_SHARED_DYNAMIC(T, name)  shared memory; holds nothing until it is written
 *   at_sync(), at_sync_warp(mask)                      barriers of block and warp; order memory
 *   at_barrier(id, threads)                            barrier 1 to 15 of some whole warps, all lanes together
 *   at_mbarrier                                        a barrier in shared memory that counts arrivals:
 *     at_mbarrier_init(b, count)                       by one thread, once; others after a barrier of the block
 *     at_mbarrier_arrive(b), at_mbarrier_wait(b, parity)   what is done before arriving is ordered before what waits
 *   at_copy_async<BYTES>(to, from)                     4, 8, 16 aligned bytes from global to shared memory; until it
 *                                                      is waited for nobody writes either or reads `to`
 *   at_copy_commit(), at_copy_wait<N>()                a group of this thread's copies; waits for all but its last N
 *   at_shuffle, at_shuffle_xor, at_shuffle_up          32-bit values between the lanes of a mask; order no memory
 *   at_ballot(mask, yes), at_lane(), at_count_ones(u32)
 *   at_multiply_high(u32, u32)                         upper half of the product
 *   at_atomic_add(address, x)                          u32, f32; the value before
 *   at_launch(kernel, grid, block, shared, stream, ...)
 *   fmaf, fminf, fmaxf                                 correctly rounded; NaN gives way to a number */
#ifndef AT_DEVICE_H
#define AT_DEVICE_H

#ifdef __CUDACC__
#include "kernels/device/device_cuda.h"
#else
#include "kernels/simt/device_simt.h"
#endif

#endif
