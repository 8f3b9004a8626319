/* UClip norm: plain f32, any activation format.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: alpha * x, fmaxf and fminf (a NaN becomes lo), gamma * c, + beta; one
 * rounding to the activations' format.
 * Launch: one thread; no scratch.
 * Limits: activations f32, f16 or bf16.
 * Source: ours; the shared body is kernels/host/norms.c. */
#include "uclip_norm/uclip_norm.h"
#include "kernels/host/norms.h"

static const char *supports(const struct at_problem *problem) {
    return at_host_norm_declines(problem, AT_FORMAT_COUNT);
}

static int launch(const struct at_launch *launch);

AT_KERNEL(uclip_norm, 00_fp32) = {
    .summary = "y = gamma * clamp(alpha * x, lo, hi) + beta, plain f32",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .clamp = AT_CLAMP_FMINMAX,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = supports,
    .launch = launch,
};

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_host_uclip uclip =
        at_host_uclip(p, AT_UCLIP_ALPHA, AT_UCLIP_GAMMA, AT_UCLIP_BETA, &at_kernel_uclip_norm_00_fp32.numerics);
    at_host_uclip_tensor(&uclip, p->sizes.channels, &p->tensors[AT_UCLIP_X], &p->tensors[AT_UCLIP_Y]);
    return 0;
}
