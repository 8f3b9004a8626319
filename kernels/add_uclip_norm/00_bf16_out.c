/* Residual add and UClip norm: f32 inside, bf16 out.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: alpha * x, fmaxf and fminf (a NaN becomes lo). Unlike 00_fp32, gamma * c
 * + beta is one fmaf; one rounding to bf16. The sum is stored rounded once; y starts from the rounded sum, or from the
 * f32 one with from=exact.
 * Launch: one thread; no scratch.
 * Limits: bf16 activations.
 * Source: ours; the shared body is kernels/host/norms.c. */
#include "add_uclip_norm/add_uclip_norm.h"
#include "kernels/host/norms.h"

static const char *supports(const struct at_problem *problem) { return at_host_norm_declines(problem, AT_BF16); }

static int launch(const struct at_launch *launch);

AT_KERNEL(add_uclip_norm, 00_bf16_out) = {
    .summary = "res' = x + res; y = UClip(res'), bf16 out",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .fir_fma = 1,
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
    const struct at_host_uclip uclip = at_host_uclip(p, AT_ADD_UCLIP_ALPHA, AT_ADD_UCLIP_GAMMA, AT_ADD_UCLIP_BETA,
                                                     &at_kernel_add_uclip_norm_00_bf16_out.numerics);
    at_host_add_uclip_tensor(&uclip, p->sizes.channels, p->params.from, &p->tensors[AT_ADD_UCLIP_X],
                             &p->tensors[AT_ADD_UCLIP_RES], &p->tensors[AT_ADD_UCLIP_RES_OUT],
                             &p->tensors[AT_ADD_UCLIP_Y]);
    return 0;
}
