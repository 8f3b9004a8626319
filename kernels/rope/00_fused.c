/* Rotary position embedding of q and k: f32 with the product with the cosine fused, any activation format.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32; the product with the sine is rounded, then fmaf(x1, c, -(x2 s)) and fmaf(x2, c, x1 s); one rounding to the
 * activations' format. Channels from rot on are copied.
 * Launch: one thread; no scratch.
 * Limits: activations f32, f16 or bf16.
 * Source: ours; the shared body is kernels/host/rotate.c. */
#include "rope/rope.h"
#include "kernels/host/norms.h"
#include "kernels/host/rotate.h"

static const char *supports(const struct at_problem *problem) {
    return at_host_norm_declines(problem, AT_FORMAT_COUNT);
}

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_rope_own own = at_rope_own_of(p);
    const struct at_host_rotation rotation = { .d = p->sizes.d,
                                               .rot = own.rot,
                                               .interleaved = own.style == AT_ROPE_INTERLEAVED,
                                               .fused = 1,
                                               .positions = &p->tensors[AT_ROPE_POSITIONS],
                                               .table = &p->tensors[AT_ROPE_COS_SIN] };
    at_host_rotate(&rotation, &p->tensors[AT_ROPE_Q], &p->tensors[AT_ROPE_Q_OUT]);
    at_host_rotate(&rotation, &p->tensors[AT_ROPE_K], &p->tensors[AT_ROPE_K_OUT]);
    return 0;
}

AT_KERNEL(rope, 00_fused) = {
    .summary = "a pair at a time, fused multiply-adds",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .fir_fma = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = supports,
    .launch = launch,
};
