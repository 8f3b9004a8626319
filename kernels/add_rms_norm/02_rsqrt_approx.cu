/* Residual add and RMS norm: a warp a token, 1 / sqrt by rsqrt.approx.f32, which is what rsqrtf compiles to.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01_warp_per_row but for the square root and the reciprocal, in whose place stands one instruction of
 * the special-function unit, within 2^-22.9 of 1 / sqrt; a subnormal mean square counts as it is.
 * Launch: a warp a token, 8 tokens a block of 256 threads; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 002 has the operator; this form is ours. */
#include "kernels/add_rms_norm/warp_per_row.h"

AT_KERNEL(add_rms_norm, 02_rsqrt_approx) = {
    .summary = "res' = x + res; y = RMS(res') by rsqrt.approx, a warp a token",
    .source = "002",
    .numerics = AT_RMS_NUMERICS(AT_RSQRT_APPROX),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch<at_rsqrt_approx>,
};
