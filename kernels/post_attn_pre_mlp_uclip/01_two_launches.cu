/* Post-attention and pre-MLP UClip norms: a launch for each norm.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32; in both norms gamma * c + beta by one fmaf. The post-attention norm is rounded to the activations'
 * format before it is added; the sum is stored rounded once, and y starts from the rounded sum, or from the f32 one
 * with from=exact.
 * Launch: twice a block of 256 threads a token; the first norm lies in y until the second reads it. No shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 section 6.3, the two launches that 02_v1_in_place and 03_v2_own_residual merge. */
#include "post_attn_pre_mlp_uclip/post_attn_pre_mlp_uclip.h"
#include "kernels/norm/norm.h"

namespace {

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int channels = (int)p->sizes.channels;
    return at_norm_launch(launch, [=]<class T>() {
        T *y = at_activations<T>(p, AT_PERI_Y);
        const int code = at_norm_rows(launch, p->sizes.tokens, at_uclip_rows<T>,
                                      at_uclip_step::of(p, AT_PERI_ALPHA_POST, AT_PERI_GAMMA_POST, AT_PERI_BETA_POST),
                                      channels, at_activations<T>(p, AT_PERI_A), y);
        return code ? code
                    : at_norm_rows(launch, p->sizes.tokens, at_add_uclip_rows<T>,
                                   at_uclip_step::of(p, AT_PERI_ALPHA_PRE, AT_PERI_GAMMA_PRE, AT_PERI_BETA_PRE),
                                   channels, p->params.from, y, at_activations<T>(p, AT_PERI_RES),
                                   at_activations<T>(p, AT_PERI_RES_OUT), y);
    });
}

} // namespace

AT_KERNEL(post_attn_pre_mlp_uclip, 01_two_launches) = {
    .summary = "the post-attention norm, then sum and pre-MLP norm",
    .source = "000 6.3",
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
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
