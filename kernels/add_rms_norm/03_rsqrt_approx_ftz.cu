/* Residual add and RMS norm: a warp a token, 1 / sqrt by rsqrt.approx.ftz.f32, as rsqrtf is compiled with fast math.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_rsqrt_approx, but a subnormal mean square counts as 0: rows so small become infinite, and their
 * zeros NaN, unless eps is added. Only this instruction flushes; fast math would flush the others too.
 * Launch: a warp a token, 8 tokens a block of 256 threads; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 002 has the operator; this form is ours. */
#include "kernels/add_rms_norm/warp_per_row.h"

AT_KERNEL(add_rms_norm, 03_rsqrt_approx_ftz) = {
    .summary = "res' = x + res; y = RMS(res') by rsqrt.approx.ftz, a warp a token",
    .source = "002",
    .numerics = AT_RMS_NUMERICS(AT_RSQRT_APPROX_FTZ),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch<at_rsqrt_approx_ftz>,
};
