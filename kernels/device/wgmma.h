/* wgmma of one step of k and 8 columns: the Hopper instruction, waited for at once.
 * SPDX-License-Identifier: Apache-2.0
 *
 * at_wgmma_n8(d, a[4], tile, A{}, B{})   d += a b, 64 rows, 8 columns, 32 bytes of k: all 128 threads of a warpgroup
 * together a: fragment of 16 rows a warp, warp w rows 16 w on, laid out as at_mma's (kernels/device/device.h); d as
 * well tile: b in shared memory, 128-byte aligned: 8 columns of 16 bytes (the first half of k), then 8 columns of 16
 * bytes A, B: at_f16 twice, at_bf16 twice, at_tf32 twice, or any two of at_e4m3 and at_e5m2; d as float[4], or as
 * uint32_t[2] of f16 (not for at_bf16 and at_tf32) at_wgmma_publish()   a barrier of the block; what its threads wrote
 * to shared memory before is seen by wgmma after it Arithmetic: hopper_wgmma_* of reference/tensor_core/instruction.h.
 * On the SIMT machine the instruction is synchronous: a fence or a wait that is missing is not seen there, which is why
 * both are part of the call. */
#ifndef AT_WGMMA_H
#define AT_WGMMA_H

#include "kernels/device/device.h"

#ifdef __CUDACC__
#include "kernels/device/wgmma_cuda.h"
#else
#include "kernels/simt/wgmma_simt.h"
#endif

#endif
