/* UClip norm of q and k in one launch: f32 inside, bf16 out.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: alpha * x, fmaxf and fminf (a NaN becomes lo), gamma * c, as in 00_fp32:
 * without a beta there is nothing to fuse. One rounding to bf16.
 * Launch: one thread; no scratch.
 * Limits: bf16 activations.
 * Source: ours; the shared body is kernels/host/norms.c. */
#include "qk_uclip_norm/qk_uclip_norm.h"
#include "kernels/host/norms.h"

static const char *supports(const struct at_problem *problem) { return at_host_norm_declines(problem, AT_BF16); }

static int launch(const struct at_launch *launch);

AT_KERNEL(qk_uclip_norm, 00_bf16_out) = {
    .summary = "UClip of q and of k, parameters per channel of a head, bf16 out",
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
    const struct at_numerics *numerics = &at_kernel_qk_uclip_norm_00_bf16_out.numerics;
    const struct at_host_uclip q = at_host_uclip(p, AT_QK_UCLIP_ALPHA_Q, AT_QK_UCLIP_GAMMA_Q, -1, numerics);
    const struct at_host_uclip k = at_host_uclip(p, AT_QK_UCLIP_ALPHA_K, AT_QK_UCLIP_GAMMA_K, -1, numerics);
    at_host_uclip_tensor(&q, p->sizes.d, &p->tensors[AT_QK_UCLIP_Q], &p->tensors[AT_QK_UCLIP_Q_OUT]);
    at_host_uclip_tensor(&k, p->sizes.d, &p->tensors[AT_QK_UCLIP_K], &p->tensors[AT_QK_UCLIP_K_OUT]);
    return 0;
}
