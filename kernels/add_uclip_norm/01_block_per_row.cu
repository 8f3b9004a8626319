/* Residual add and UClip norm: a block a token.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32; x + res is stored rounded once, and y starts from the rounded sum, or from the f32 one with
 * from=exact; alpha * x, fmaxf and fminf (a NaN becomes lo), gamma * c + beta by one fmaf; one rounding to the format
 * of the activations.
 * Launch: a block of 256 threads a token, which take its channels in turn; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 section 6.3. */
#include "add_uclip_norm/add_uclip_norm.h"
#include "kernels/norm/norm.h"

namespace {

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_norm_launch(launch, [=]<class T>() {
        return at_norm_rows(launch, p->sizes.tokens, at_add_uclip_rows<T>,
                            at_uclip_step::of(p, AT_ADD_UCLIP_ALPHA, AT_ADD_UCLIP_GAMMA, AT_ADD_UCLIP_BETA),
                            (int)p->sizes.channels, p->params.from, at_activations<T>(p, AT_ADD_UCLIP_X),
                            at_activations<T>(p, AT_ADD_UCLIP_RES), at_activations<T>(p, AT_ADD_UCLIP_RES_OUT),
                            at_activations<T>(p, AT_ADD_UCLIP_Y));
    });
}

} // namespace

AT_KERNEL(add_uclip_norm, 01_block_per_row) = {
    .summary = "res' = x + res; y = UClip(res'), a block a token",
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
