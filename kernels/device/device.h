/* The language of kernels: one interface with two implementations, CUDA and the SIMT machine. Kernels hold no #ifdef.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   threadIdx blockIdx blockDim gridDim, __global__ __device__ __launch_bounds__   as in CUDA
 *   at_bf16 at_f16, at_float(x), at_round_to<T>(f)     16-bit formats; round to nearest even
 *   at_load_pair(p, a, b)                              p[0] and p[1] of a 16-bit format by one load of 32 bits; p even
 *   at_load32(p), at_store32(p, bits)                  p[0] (lower half) and p[1] of a 16-bit format as they lie; p even
 *   at_load16(p, x), at_store16(p, x)                  the 16 bytes at p to or from an array x by one access; p aligned
 *   at_load16_once(p, x), at_store16_once(p, x)        the same for what nobody reads again soon: its line is evicted first
 *   AT_SHARED(T[N], name), AT_SHARED_DYNAMIC(T, name)  shared memory; uninitialised until it is written
 *   at_sync(), at_sync_warp(mask)                      barriers of block and warp; order memory
 *   at_barrier(id, threads)                            named barrier 1 to 15 of some whole warps, all lanes together
 *   at_mbarrier                                        a barrier in shared memory that counts arrivals:
 *     at_mbarrier_init(b, count)                       by one thread, once; others use it behind a barrier of the block
 *     at_mbarrier_arrive(b), at_mbarrier_wait(b, parity)   orders what precedes an arrival before what follows
 *   at_copy_async<BYTES>(to, from)                     4, 8 or 16 aligned bytes from global to shared memory; until
 *                                                      the wait no thread writes either side or reads `to`
 *   at_copy_commit(), at_copy_wait<N>()                closes a group of copies; waits for all but the last N
 *   at_shuffle, at_shuffle_xor, at_shuffle_up          32-bit values between the lanes of a mask; order no memory
 *   at_ballot(mask, yes), at_lane(), at_count_ones(u32)
 *   at_multiply_high(u32, u32)                         upper half of the product
 *   at_atomic_add(address, x)                          u32, f32; returns the value before
 *   at_atomic_exchange(address, x)                     u32; returns the value before
 *   at_atomic_max(address, x)                          u32; returns the value before
 *   AT_UNROLL                                          before a loop over registers that nvcc would not unroll
 *   AT_NO_UNROLL                                       before a loop that unrolled would not fit the registers
 *   at_launch(kernel, grid, block, shared, stream, ...)
 *   at_multiprocessors()                               host: those of the device; persistent kernels have as many blocks
 *   at_fma_sat(a, b, c)                                fmaf, then 0 for what lies below 0 or is NaN, 1 for what lies above 1
 *   at_fma_where(yes, a, b[8], c[8])                   c[i] = fmaf(a, b[i], c[i]) where yes: a predicate, no branch
 *   fmaf, fminf, fmaxf                                 correctly rounded; NaN gives way to a number */
/* Tensor cores: all 32 lanes of a warp together, at one place. A lane is 4 g + t; a 32-bit register of operands holds n
 * elements of T, the first in its lowest bits: n = 2 for at_f16 and at_bf16, 1 for at_tf32 (an f32 whose low 13 bits
 * are dropped), 4 for at_e4m3 and at_e5m2.
 *
 * at_mma_16816(d, a[4], b[2], c, T{})   d = a b + c, 16 x 16 times 16 x 8;  T: at_f16, at_bf16
 * at_mma_1688(d, a[2], b[1], c, T{})    16 x 8 times 8 x 8;                 T: at_f16, at_bf16
 * at_mma_1688(d, a[4], b[2], c, T{})    the same;                           T: at_tf32
 * at_mma_16832(d, a[4], b[2], c, T{})   16 x 32 times 32 x 8;               T: at_e4m3, at_e5m2 (sm_89 and newer)
 *   a[r], element j:  row g + 8 (r % 2), column n t + j + 4 n (r / 2)
 *   b[r], element j:  row n t + j + 4 n r, column g: neighbours along k, as k lies in memory when b is stored by columns
 *   c and d as float[4]:     rows g, g, g + 8, g + 8; columns 2 t, 2 t + 1, 2 t, 2 t + 1
 *   c and d as uint32_t[2]:  the same elements as f16, two a register (not for at_bf16 and at_tf32)
 * d may be c. Arithmetic: mma.sync's of sm_90 (reference/tensor_core/instruction.h, hopper_mma_*); NaN is 0x7fffffff or
 * 0x7fff. Findings: a lane that has exited, or waits elsewhere or with another instruction.
 *
 * at_ldmatrix_x1(r[1], row), _x2(r[2], row), _x4(r[4], row), each also _trans
 *   matrices of 8 x 8 elements of 16 bits in shared memory, one a register. Lane 8 m + i gives the address of row i of
 *   matrix m: 16 bytes, aligned; addresses of lanes past the last matrix are ignored. Lane 4 g + t gets of matrix
 *   m in r[m] the elements (g, 2 t) and (g, 2 t + 1), the first in the lower half; _trans: (2 t, g) and (2 t + 1, g). Of
 *   a row-major tile the plain form makes an a operand, or a b operand whose columns are the tile's rows; _trans makes a
 *   b operand whose rows are the tile's rows. Orders no memory. Findings: rows that are misaligned or not in shared
 *   memory; bytes that were never written, or whose write is not ordered before the load, for the lane that names the
 *   row and for the lane that receives them. */
#ifndef AT_DEVICE_H
#define AT_DEVICE_H

#ifdef __CUDACC__
#include "kernels/device/device_cuda.h"
#else
#include "kernels/simt/device_simt.h"
#endif

#endif
