/* Lightning decode by the C library's exponential, plainly.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the decay is expf, within one unit in the last place; decayed state, product and sum are rounded each; o is a
 * chain of fmaf.
 * Launch: one thread; no scratch.
 * Limits: none.
 * Source: ours. */
#include "attest/kernel.h"
#include "lightning_decode/lightning_decode.h"

#include <math.h>

static float at(const struct at_problem *p, int tensor, int64_t i) {
    return (float)at_tensor_get(&p->tensors[tensor], i);
}

/* An element of k v^T. */
static float product_of(const struct at_problem *p, float k, float v) {
    const float product = k * v;
    return at_lightning_own_of(p).outer == AT_LIGHTNING_ROUNDED ? (float)at_round(p->dtype, (double)product) : product;
}

static void step_of(const struct at_problem *p, int64_t head, int64_t step, float decay) {
    const int64_t d = p->sizes.d, e = at_lightning_own_of(p).e, at_step = head * at_lightning_own_of(p).steps + step;
    float *kv = (float *)p->tensors[AT_LIGHTNING_KV].data + head * d * e;
    for (int64_t j = 0; j < e; j++) {
        const float v = at(p, AT_LIGHTNING_V, at_step * e + j);
        float sum = 0;
        for (int64_t i = 0; i < d; i++) {
            const float decayed = decay * kv[i * e + j];
            kv[i * e + j] = decayed + product_of(p, at(p, AT_LIGHTNING_K, at_step * d + i), v);
            sum = fmaf(at(p, AT_LIGHTNING_Q, at_step * d + i), kv[i * e + j], sum);
        }
        at_store(p->dtype, p->tensors[AT_LIGHTNING_O].data, (size_t)(at_step * e + j), (double)sum);
    }
}

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    for (int64_t head = 0; head < p->sizes.b * p->sizes.h; head++) {
        const float decay = expf(-at(p, AT_LIGHTNING_SLOPE, head % p->sizes.h));
        for (int64_t step = 0; step < at_lightning_own_of(p).steps; step++)
            step_of(p, head, step, decay);
    }
    return 0;
}

AT_KERNEL(lightning_decode, 00_plain) = {
    .summary = "a step after the other, expf",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 1,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .launch = launch,
};
