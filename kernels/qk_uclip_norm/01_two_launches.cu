/* UClip norm of q and k: a launch for each tensor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32; alpha * x, fmaxf and fminf (a NaN becomes lo), gamma * c; one rounding to the activations' format.
 * Launch: a block of 256 threads a token and head, once for q and once for k; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 section 6.9, the two launches that 02_one_launch merges. */
#include "qk_uclip_norm/qk_uclip_norm.h"
#include "kernels/norm/norm.h"

namespace {

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_sizes *z = &p->sizes;
    return at_norm_launch(launch, [=]<class T>() {
        const int code = at_norm_rows(launch, z->tokens * z->h, at_uclip_rows<T>,
                                      at_uclip_step::of(p, AT_QK_UCLIP_ALPHA_Q, AT_QK_UCLIP_GAMMA_Q, -1), (int)z->d,
                                      at_activations<T>(p, AT_QK_UCLIP_Q), at_activations<T>(p, AT_QK_UCLIP_Q_OUT));
        return code ? code
                    : at_norm_rows(launch, z->tokens * z->hk, at_uclip_rows<T>,
                                   at_uclip_step::of(p, AT_QK_UCLIP_ALPHA_K, AT_QK_UCLIP_GAMMA_K, -1), (int)z->d,
                                   at_activations<T>(p, AT_QK_UCLIP_K), at_activations<T>(p, AT_QK_UCLIP_K_OUT));
    });
}

} // namespace

AT_KERNEL(qk_uclip_norm, 01_two_launches) = {
    .summary = "UClip of q, then of k",
    .source = "000 6.9",
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
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
