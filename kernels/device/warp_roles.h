/* Warps of one block with different work: registers that move between them, barriers that some arrive at and pass by.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   at_barrier_arrive(id, threads)   comes to at_barrier(id, threads) and goes on: whole warps; `threads` counts those
 *                                    that wait there, too. What was done before is ordered before what those do next
 *   at_registers_give<N>(), at_registers_take<N>()   setmaxnreg: all four warps of a warpgroup go on with N registers a
 *                                    thread, a multiple of 8 from 24 to 256; fewer than before, or more, once the block
 *                                    has so many that nobody holds. The launch must be bound to its threads:
 *                                    __launch_bounds__(threads, 1), 65536 / threads registers each to begin with */
#ifndef AT_WARP_ROLES_H
#define AT_WARP_ROLES_H

#include "kernels/device/device.h"

#ifdef __CUDACC__
#include "kernels/device/warp_roles_cuda.h"
#else
#include "kernels/simt/warp_roles_simt.h"
#endif

#endif
