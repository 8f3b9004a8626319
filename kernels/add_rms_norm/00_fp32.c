/* Residual add and RMS norm: plain f32, any activation format.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: squares rounded, then added in channel order; division, + eps, square
 * root, reciprocal; gamma * (x * r); one rounding to the activations' format. The sum is stored rounded once; y starts
 * from the rounded sum, or from the f32 one with from=exact.
 * Launch: one thread; scratch for one row.
 * Limits: activations f32, f16 or bf16.
 * Source: ours; the shared body is kernels/host/norms.c. */
#include "add_rms_norm/add_rms_norm.h"
#include "kernels/host/norms.h"

static const char *supports(const struct at_problem *problem) {
    return at_host_norm_declines(problem, AT_FORMAT_COUNT);
}

static int launch(const struct at_launch *launch);

AT_KERNEL(add_rms_norm, 00_fp32) = {
    .summary = "res' = x + res; y = RMS(res'), plain f32",
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
    at_host_rms_tensor(launch, &at_kernel_add_rms_norm_00_fp32.numerics,
                       (const float *)p->tensors[AT_ADD_RMS_GAMMA].data, &p->tensors[AT_ADD_RMS_X],
                       &p->tensors[AT_ADD_RMS_RES], &p->tensors[AT_ADD_RMS_RES_OUT], &p->tensors[AT_ADD_RMS_Y]);
    return 0;
}
