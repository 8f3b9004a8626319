/* Post-attention and pre-MLP UClip norms in one launch, the residual stream updated in place.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32; in both norms gamma * c + beta by one fmaf. The post-attention norm is rounded to the format of the
 * activations before it is added; the sum is stored rounded once, and y starts from the rounded sum, or from the f32 one
 * with from=exact.
 * Launch: a block of 256 threads a token, which take its channels in turn, each reading before it writes; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 section 6.3, v1. */
#include "post_attn_pre_mlp_uclip_in_place/post_attn_pre_mlp_uclip_in_place.h"
#include "kernels/norm/peri_norm.h"

namespace {

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_norm_launch(launch, [=]<class T>() {
        T *stream = at_activations<T>(p, AT_PERI_RES);
        return at_peri_launch<T>(launch, stream, stream, at_activations<T>(p, AT_PERI_IN_PLACE_Y));
    });
}

} // namespace

AT_KERNEL(post_attn_pre_mlp_uclip_in_place, 01_one_launch) = {
    .summary = "both norms in one launch, the residual stream in place",
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
