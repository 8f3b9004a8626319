/* Warp specialisation: producer and consumer warps of one block, registers that move between them, named barriers at
 * which some warps only arrive.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   at_barrier_arrive(id, threads)   arrives at named barrier `id` without waiting: whole warps; `threads` counts
 *                                    those that wait, too. What precedes is ordered before what they do next
 *   at_registers_give<N>(), at_registers_take<N>()   setmaxnreg: all four warps of a warpgroup go on with N registers a
 *                                    thread, a multiple of 8 from 24 to 256: fewer than before, or more, for which they
 *                                    wait until other warps have given enough up. The kernel must be declared with
 *                                    __launch_bounds__(threads, 1), and starts with 65536 / threads registers each */
#ifndef AT_WARP_ROLES_H
#define AT_WARP_ROLES_H

#include "kernels/device/device.h"

#ifdef __CUDACC__
#include "kernels/device/warp_roles_cuda.h"
#else
#include "kernels/simt/warp_roles_simt.h"
#endif

#endif
