/* The toy operator in plain f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation, one to the activations' format. Launch: one thread; no scratch.
 * Limits: none. Source: ours. */
#include "attest/kernel.h"
#include "ramp/ramp.h"

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_tensor *x = &p->tensors[AT_RAMP_X], *y = &p->tensors[AT_RAMP_Y];
    const struct at_ramp_own z = at_ramp_own_of(p);
    for (int64_t i = 0; i < z.lines * z.places; i++) {
        const float sum = (float)at_tensor_get(x, i) + z.slope * (float)(i % z.places);
        at_store(y->format, y->data, (size_t)i, (double)sum);
    }
    return 0;
}

AT_KERNEL(ramp, 00_plain) = {
    .summary = "y = x + slope * place, plain f32",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .launch = launch,
};
