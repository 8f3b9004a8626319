/* wgmma of sm_90a: a warpgroup multiplies 64 rows by tiles in shared memory, asynchronously.
 * SPDX-License-Identifier: Apache-2.0
 *
 * By all 128 threads of a warpgroup (four warps, the first a multiple of four) together:
 *   at_wgmma(d, a, b, A{}, B{})   d += a b of 32 bytes of k; A, B: at_f16, at_bf16 or at_tf32 twice, or any two of
 *                                 at_e4m3 and at_e5m2
 *     a   uint32_t[4]: a fragment of 16 rows a warp, warp w rows 16 w on, laid out as at_mma's (kernels/device/device.h);
 *         or an at_matrix of 64 rows
 *     b   an at_matrix whose rows are the columns of the product: 8 for each element of d
 *     d   float[columns / 8][4] laid out as at_mma's, or uint32_t[columns / 8][2] of f16 (not for at_bf16 and at_tf32);
 *         8, 16, 64, 128 or 256 columns
 *   at_wgmma_first(d, a, b, A{}, B{})   d = a b, a an at_matrix: what d holds does not count
 *   at_wgmma_fence(d...)          before the first wgmma, and again whenever its registers have been accessed
 *   at_wgmma_commit()             closes a group of all wgmma since the last commit
 *   at_wgmma_wait<N>(d, ready...) waits for all groups but the last N; their sums are in d afterwards. `ready`: arrays
 *                                 float[n][4] that are computed before, while products go on: compilers would do it later
 * Until that wait d and operands in registers must not be accessed, and the matrices must not be written.
 *
 *   at_matrix::k_major(at, leading, stride)   chunk c of 16 bytes of row r at (r / 8) stride + c leading + (r % 8) 16
 *   at_matrix::swizzled<W>(at, stride)        rows of W = 32, 64 or 128 bytes, at (r / 8) stride + (r % 8) W, their
 *                                             chunks of 16 bytes permuted: at_swizzle<W>(byte)
 *   m.moved(bytes)                            the same, `bytes` further: along k, or from another row on
 *   at_matrix_mn (b of 16-bit elements only)  the columns of the product side by side, k from line to line:
 *     ::plain(at, along_mn, along_k)          columns n to n + 7 of line k at (n / 8) along_mn + (k / 8) along_k +
 *                                             (k % 8) 16
 *     ::swizzled<W>(at, along_mn, along_k)    lines of W bytes, W / 2 columns, at (n / (W / 2)) along_mn +
 *                                             (k / 8) along_k + (k % 8) W, permuted by at_swizzle<W>(byte)
 *     .moved(bytes)
 *   at_proxy_fence()   makes what this thread wrote to shared memory, and what is ordered before that, visible to every
 *                      wgmma that is ordered after the fence
 *
 * Arithmetic: hopper_wgmma_* of reference/tensor_core/instruction.h. Findings of the SIMT machine: registers
 * accessed without a fence before or a wait after, matrices written before the wait, bytes read without a proxy fence
 * behind their write, a warp that exits without a wait or with fewer wgmma than its warpgroup. */
#ifndef AT_WGMMA_H
#define AT_WGMMA_H

#include "kernels/device/device.h"

/* Where a byte of a tile of rows of W bytes lies, the tile beginning at a multiple of 8 W. */
template <int W> __device__ inline int at_swizzle(int byte) { return byte ^ (byte >> 7 & (W / 16 - 1)) << 4; }

#ifdef __CUDACC__
#include "kernels/device/wgmma_cuda.h"
#else
#include "kernels/simt/wgmma_simt.h"
#endif

#endif
