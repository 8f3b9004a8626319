/* UClip norm of q and k in one launch, its parameters known at compile time; gamma is one number a tensor, as a deployed
 * model has it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01_two_launches: f32; alpha * x, fmaxf and fminf (a NaN becomes lo), gamma * c; one rounding to the
 * format of the activations.
 * Launch: a block of 128 threads for 1024 elements of q or of k, 8 of them a thread by one access of 16 bytes; the head
 * size is a constant, the clamp is to -1 .. 1, alpha has a number a channel, gamma one for the tensor, there is no beta: as
 * in 03_constants nothing is decided at run time but the tensor, a block at a time.
 * Limits: activations f16 or bf16; d 64 or 128; lo = -1, hi = 1; gamma_per=tensor.
 * Source: 000 section 6.9. */
#include "kernels/qk_uclip_norm/qk_constants.h"

namespace {

const char *declines(const struct at_problem *p) {
    if (at_qk_uclip_own_of(p).gamma_per != AT_QK_GAMMA_TENSOR)
        return "gamma is one number";
    return at_qk_declines(p);
}

} // namespace

AT_KERNEL(qk_uclip_norm, 04_constants_one_gamma) = {
    .summary = "one launch, head size and clamp known when compiled, one gamma a tensor",
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
    .supports = declines,
    .workspace = nullptr,
    .launch = at_qk_launch<true>,
};
