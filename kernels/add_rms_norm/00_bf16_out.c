/* Residual add and RMS norm: f32 inside, bf16 out.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: division, + eps, square root, reciprocal; gamma * (x * r). Unlike
 * 00_fp32, the squares are added as a warp would: 32 partial sums of every 32nd channel, each a chain of fmaf, joined
 * by the butterfly with masks 16 to 1; one rounding to bf16 at the end. The sum is stored rounded once; y starts from
 * the rounded sum, or from the f32 one with from=exact.
 * Launch: one thread; scratch for one row.
 * Limits: bf16 activations.
 * Source: ours; the shared body is kernels/host/norms.c. */
#include "add_rms_norm/add_rms_norm.h"
#include "kernels/host/norms.h"

static const char *supports(const struct at_problem *problem) { return at_host_norm_declines(problem, AT_BF16); }

static int launch(const struct at_launch *launch);

AT_KERNEL(add_rms_norm, 00_bf16_out) = {
    .summary = "res' = x + res; y = RMS(res'), bf16 out",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 32,
        .qk_run = 1,
        .qk_tree = AT_TREE_BUTTERFLY,
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
    at_host_rms_tensor(launch, &at_kernel_add_rms_norm_00_bf16_out.numerics,
                       (const float *)p->tensors[AT_ADD_RMS_GAMMA].data, &p->tensors[AT_ADD_RMS_X],
                       &p->tensors[AT_ADD_RMS_RES], &p->tensors[AT_ADD_RMS_RES_OUT], &p->tensors[AT_ADD_RMS_Y]);
    return 0;
}
