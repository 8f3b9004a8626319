/* Post-attention and pre-MLP UClip norms in one: the new residual stream is written to memory of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation. Unlike 00_v1_in_place, gamma * c + beta is one fmaf in both norms. The
 * post-attention norm is rounded to the format of the activations before it is added; the sum is stored rounded once,
 * and y starts from the rounded sum, or from the f32 one with from=exact.
 * Launch: one thread; no scratch.
 * Limits: activations f32, f16 or bf16.
 * Source: ours; the shared body is kernels/host/norms.c. */
#include "post_attn_pre_mlp_uclip/post_attn_pre_mlp_uclip.h"
#include "kernels/host/norms.h"

static const char *supports(const struct at_problem *problem) {
    return at_host_norm_declines(problem, AT_FORMAT_COUNT);
}

static int launch(const struct at_launch *launch);

AT_KERNEL(post_attn_pre_mlp_uclip, 00_v2_own_residual) = {
    .summary = "residual stream read and written apart",
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
    const struct at_numerics *numerics = &at_kernel_post_attn_pre_mlp_uclip_00_v2_own_residual.numerics;
    const struct at_host_uclip post =
        at_host_uclip(p, AT_PERI_ALPHA_POST, AT_PERI_GAMMA_POST, AT_PERI_BETA_POST, numerics);
    const struct at_host_uclip pre = at_host_uclip(p, AT_PERI_ALPHA_PRE, AT_PERI_GAMMA_PRE, AT_PERI_BETA_PRE, numerics);
    at_host_peri_tensor(&post, &pre, p->sizes.channels, p->params.from, &p->tensors[AT_PERI_A],
                        &p->tensors[AT_PERI_RES], &p->tensors[AT_PERI_RES_OUT], &p->tensors[AT_PERI_Y]);
    return 0;
}
