/* RMS norm: plain f32, any activation format.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: squares rounded, then added in channel order; division, + eps, square
 * root, reciprocal; gamma * (x * r); one rounding to the activations' format.
 * Launch: one thread; scratch for one row.
 * Limits: activations f32, f16 or bf16.
 * Source: ours; the shared body is kernels/host/norms.c. */
#include "rms_norm/rms_norm.h"
#include "kernels/host/norms.h"

#include <stddef.h>

static const char *supports(const struct at_problem *problem) {
    return at_host_norm_declines(problem, AT_FORMAT_COUNT);
}

static int launch(const struct at_launch *launch);

AT_KERNEL(rms_norm, 00_fp32) = {
    .summary = "y = gamma * x / sqrt(mean(x^2) + eps), plain f32",
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
    .workspace = at_host_rms_workspace,
    .launch = launch,
};

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    at_host_rms_tensor(launch, &at_kernel_rms_norm_00_fp32.numerics, (const float *)p->tensors[AT_RMS_GAMMA].data,
                       &p->tensors[AT_RMS_X], NULL, NULL, &p->tensors[AT_RMS_Y]);
    return 0;
}
