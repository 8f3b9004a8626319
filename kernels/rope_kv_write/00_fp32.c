/* Rotary position embedding with the write into the cache: plain f32, any activation format.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: x1 c, x2 s and their difference, x2 c, x1 s and their sum; one rounding to the
 * activations' format. Channels from rot on, and values, are copied.
 * Launch: one thread; no scratch.
 * Limits: activations f32, f16 or bf16.
 * Source: ours; the rotation is kernels/host/rotate.c. */
#include "rope_kv_write/rope_kv_write.h"

#include <string.h>

#include "kernels/host/norms.h"
#include "kernels/host/rotate.h"

static const char *supports(const struct at_problem *problem) {
    return at_host_norm_declines(problem, AT_FORMAT_COUNT);
}

/* One place along the first dimension. */
static struct at_tensor place(const struct at_tensor *tensor, int64_t i) {
    struct at_tensor one = *tensor;
    one.shape[0] = 1;
    one.data = (char *)tensor->data + i * at_tensor_bytes(&one);
    return one;
}

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_rope_own own = at_rope_own_of(p);
    struct at_host_rotation rotation = { .d = p->sizes.d,
                                         .rot = own.rot,
                                         .interleaved = own.style == AT_ROPE_INTERLEAVED,
                                         .fused = 0,
                                         .positions = &p->tensors[AT_ROPE_KV_WRITE_POSITIONS],
                                         .table = &p->tensors[AT_ROPE_KV_WRITE_COS_SIN] };
    at_host_rotate(&rotation, &p->tensors[AT_ROPE_KV_WRITE_Q], &p->tensors[AT_ROPE_KV_WRITE_Q_OUT]);
    for (int64_t token = 0; token < p->sizes.tokens; token++) {
        const int64_t slot = at_tensor_i32(&p->tensors[AT_ROPE_KV_WRITE_SLOT_MAPPING], token);
        if (slot < 0)
            continue;
        const struct at_tensor position = place(&p->tensors[AT_ROPE_KV_WRITE_POSITIONS], token);
        const struct at_tensor k = place(&p->tensors[AT_ROPE_KV_WRITE_K], token);
        const struct at_tensor v = place(&p->tensors[AT_ROPE_KV_WRITE_V], token);
        const struct at_tensor cached = place(&p->tensors[AT_ROPE_KV_WRITE_K_CACHE], slot);
        rotation.positions = &position;
        at_host_rotate(&rotation, &k, &cached);
        memcpy(place(&p->tensors[AT_ROPE_KV_WRITE_V_CACHE], slot).data, v.data, (size_t)at_tensor_bytes(&v));
    }
    return 0;
}

AT_KERNEL(rope_kv_write, 00_fp32) = {
    .summary = "a token at a time, plain f32",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .fir_fma = 0,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = supports,
    .launch = launch,
};
