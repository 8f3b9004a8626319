/* What kernels are written in: one interface, for CUDA and for the SIMT machine. Kernels themselves hold no #ifdef.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   threadIdx blockIdx blockDim gridDim, __global__ __device__ __launch_bounds__   as in CUDA
 *   at_bf16 at_f16, at_float(x), at_round_to<T>(f)     16-bit formats; round to nearest even
 *   at_load_pair(p, a, b)                              p[0] and p[1] of a 16-bit format by one load of 32 bits; p even
 *   AT_SHARED(T[N], name), AT_SHARED_DYNAMIC(T, name)  shared memory; holds nothing until it is written
 *   at_sync(), at_sync_warp(mask)                      barriers of block and warp; order memory
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
