/* Post-attention and pre-MLP UClip norms in one: the residual stream is updated in place.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation; the post-attention norm is rounded to the activations' format before it
 * is added; the sum is stored rounded once, and y starts from the rounded sum, or the f32 one with from=exact.
 * Launch: one thread; no scratch.
 * Limits: activations f32, f16 or bf16.
 * Source: ours; the shared body is kernels/host/norms.c. */
#include "post_attn_pre_mlp_uclip_in_place/post_attn_pre_mlp_uclip_in_place.h"
#include "kernels/host/norms.h"

static const char *supports(const struct at_problem *problem) {
    return at_host_norm_declines(problem, AT_FORMAT_COUNT);
}

static int launch(const struct at_launch *launch);

AT_KERNEL(post_attn_pre_mlp_uclip_in_place, 00_fp32) = {
    .summary = "residual stream updated in place",
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
    const struct at_numerics *numerics = &at_kernel_post_attn_pre_mlp_uclip_in_place_00_fp32.numerics;
    const struct at_host_uclip post =
        at_host_uclip(p, AT_PERI_ALPHA_POST, AT_PERI_GAMMA_POST, AT_PERI_BETA_POST, numerics);
    const struct at_host_uclip pre = at_host_uclip(p, AT_PERI_ALPHA_PRE, AT_PERI_GAMMA_PRE, AT_PERI_BETA_PRE, numerics);
    const struct at_tensor *stream = &p->tensors[AT_PERI_RES];
    at_host_peri_tensor(&post, &pre, p->sizes.channels, p->params.from, &p->tensors[AT_PERI_A], stream, stream,
                        &p->tensors[AT_PERI_IN_PLACE_Y]);
    return 0;
}
