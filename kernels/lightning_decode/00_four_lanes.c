/* Lightning decode with answers summed as a vector of four adds them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the decay is expf, within one unit in the last place; an element of the state by one fmaf; o: row i goes to lane
 * i mod 4, products and sums are rounded each, and the lanes are added in order.
 * Launch: one thread; no scratch.
 * Limits: none.
 * Source: ours. */
#include "attest/kernel.h"
#include "lightning_decode/lightning_decode.h"

#include <math.h>

enum { LANES = 4 };

/* An answer, at element `at` of o; its column of the state takes its step on the way. */
static float answer(const struct at_problem *p, int64_t at) {
    const struct at_tensor *t = p->tensors;
    const struct at_lightning_own z = at_lightning_own_of(p);
    const int64_t d = p->sizes.d, step = at / z.e, head = step / z.steps;
    const float decay = expf(-(float)at_tensor_get(&t[AT_LIGHTNING_SLOPE], head % p->sizes.h));
    const float v = (float)at_tensor_get(&t[AT_LIGHTNING_V], at);
    float *column = (float *)t[AT_LIGHTNING_KV].data + head * d * z.e + at % z.e, lane[LANES] = { 0 };
    for (int64_t i = 0; i < d; i++) {
        const float q = (float)at_tensor_get(&t[AT_LIGHTNING_Q], step * d + i);
        float product = (float)at_tensor_get(&t[AT_LIGHTNING_K], step * d + i) * v;
        if (z.outer == AT_LIGHTNING_ROUNDED)
            product = (float)at_round(p->dtype, (double)product);
        column[i * z.e] = fmaf(decay, column[i * z.e], product);
        lane[i % LANES] += q * column[i * z.e];
    }
    return ((lane[0] + lane[1]) + lane[2]) + lane[3];
}

/* Steps of a head come in their order. */
static int launch(const struct at_launch *launch) {
    const struct at_tensor *o = &launch->problem->tensors[AT_LIGHTNING_O];
    const int64_t n = at_tensor_count(o);
    for (int64_t at = 0; at < n; at++)
        at_store(o->format, o->data, (size_t)at, (double)answer(launch->problem, at));
    return 0;
}

AT_KERNEL(lightning_decode, 00_four_lanes) = {
    .summary = "answers summed by four lanes",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 4,
        .qk_run = 1,
        .fir_fma = 1,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .launch = launch,
};
