/* RMS norm: a warp a token.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32; the squares of every 32nd channel are a chain of fmaf in a lane, a butterfly joins the lanes;
 * division, + eps, square root, reciprocal, each rounded once; gamma * (x * r); one rounding to the activations'
 * format.
 * Launch: a warp a token, 8 tokens a block of 256 threads; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 002 has the operator; this form is ours. */
#include "kernels/rms_norm/warp_per_row.h"

AT_KERNEL(rms_norm, 01_warp_per_row) = {
    .summary = "y = gamma * x / sqrt(mean(x^2) + eps), a warp a token",
    .source = "002",
    .numerics = AT_RMS_NUMERICS(AT_RSQRT_LIBM),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch<at_rsqrt_rounded>,
};
