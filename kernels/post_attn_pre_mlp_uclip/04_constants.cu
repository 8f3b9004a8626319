/* Post-attention and pre-MLP UClip norms in one launch, channels, clamps and origin of y known at compile time.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32; in both norms gamma * c + beta by one fmaf. The post-attention norm is rounded to the format of the
 * activations before it is added; the sum is rounded once, stored, and y starts from it.
 * Launch: a block a token, a thread for each 8 channels, by one access of 16 bytes a tensor; the new residual stream has
 * memory of its own; no shared memory.
 * Limits: activations f16 or bf16; channels 256 or 1024; lo = -1, hi = 1; from=rounded.
 * Source: 000 section 7.3: constants as for the norms of q and k, there a little slower on short sequences and about 3 %
 * faster on long ones. */
#include "post_attn_pre_mlp_uclip/post_attn_pre_mlp_uclip.h"
#include "kernels/norm/peri_constants.h"

namespace {

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_peri_launch_half(launch, [=]<class T>() {
        return at_peri_launch_constant<T>(launch, at_activations<T>(p, AT_PERI_RES),
                                          at_activations<T>(p, AT_PERI_RES_OUT), at_activations<T>(p, AT_PERI_Y));
    });
}

} // namespace

AT_KERNEL(post_attn_pre_mlp_uclip, 04_constants) = {
    .summary = "one launch, channels and clamps known when compiled",
    .source = "000 7.3",
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
    .supports = at_peri_constant_declines,
    .workspace = nullptr,
    .launch = launch,
};
