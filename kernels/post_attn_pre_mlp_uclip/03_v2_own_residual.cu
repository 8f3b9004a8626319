/* Post-attention and pre-MLP UClip norms in one launch, the new residual stream in memory of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01_two_launches: f32; in both norms gamma * c + beta by one fmaf. The post-attention norm is rounded
 * to the format of the activations before it is added; the sum is stored rounded once, and y starts from the rounded
 * sum, or from the f32 one with from=exact.
 * Launch: a block of 256 threads a token, which take its channels in turn; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 section 6.3, v2. */
#include "post_attn_pre_mlp_uclip/post_attn_pre_mlp_uclip.h"
#include "kernels/norm/peri_norm.h"

namespace {

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_norm_launch(launch, [=]<class T>() {
        return at_peri_launch<T>(launch, at_activations<T>(p, AT_PERI_RES), at_activations<T>(p, AT_PERI_RES_OUT),
                                 at_activations<T>(p, AT_PERI_Y));
    });
}

} // namespace

AT_KERNEL(post_attn_pre_mlp_uclip, 03_v2_own_residual) = {
    .summary = "residual stream read and written apart",
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
