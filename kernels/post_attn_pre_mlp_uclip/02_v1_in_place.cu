/* Post-attention and pre-MLP UClip norms in one launch, the residual stream updated in place.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01_two_launches: f32; in both norms gamma * c + beta by one fmaf. The post-attention norm is rounded
 * to the format of the activations before it is added; the sum is stored rounded once, and y starts from the rounded
 * sum, or from the f32 one with from=exact.
 * Launch: a block of 256 threads a token; no shared memory. This operator must not change res, so a launch of its own first
 * copies res to res_out, and res_out is what is updated in place; post_attn_pre_mlp_uclip_in_place needs no copy.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 section 6.3, v1. */
#include "post_attn_pre_mlp_uclip/post_attn_pre_mlp_uclip.h"
#include "kernels/norm/peri_norm.h"

namespace {

template <class T> __global__ void __launch_bounds__(AT_NORM_THREADS) copy(int channels, const T *x, T *y) {
    const int64_t row = (int64_t)blockIdx.x * channels;
    for (int c = (int)threadIdx.x; c < channels; c += AT_NORM_THREADS)
        y[row + c] = x[row + c];
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_norm_launch(launch, [=]<class T>() {
        T *stream = at_activations<T>(p, AT_PERI_RES_OUT);
        const int code = at_norm_rows(launch, p->sizes.tokens, copy<T>, (int)p->sizes.channels,
                                      at_activations<T>(p, AT_PERI_RES), stream);
        return code ? code : at_peri_launch<T>(launch, stream, stream, at_activations<T>(p, AT_PERI_Y));
    });
}

} // namespace

AT_KERNEL(post_attn_pre_mlp_uclip, 02_v1_in_place) = {
    .summary = "residual stream updated in place",
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
