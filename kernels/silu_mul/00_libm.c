/* SiLU(gate) * up in plain f32, by the C library's exponential.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: expf(-g), 1 + e, a division, the product with up; one rounding to the format of
 * the activations. expf is within one unit in the last place.
 * Launch: one thread; no scratch.
 * Limits: activations f32, f16 or bf16.
 * Source: ours. */
#include "attest/kernel.h"
#include "silu_mul/silu_mul.h"

#include <math.h>

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int apart = at_gated_own_of(p).halves == AT_HALVES_APART;
    const struct at_tensor *gates = &p->tensors[apart ? AT_GATED_GATE : AT_GATED_GATE_UP];
    const struct at_tensor *ups = &p->tensors[apart ? AT_GATED_UP : AT_GATED_GATE_UP], *y = &p->tensors[AT_GATED_Y];
    const int64_t n = p->sizes.channels, stride = apart ? n : 2 * n, offset = apart ? 0 : n;
    for (int64_t row = 0; row < p->sizes.tokens; row++)
        for (int64_t c = 0; c < n; c++) {
            const float g = (float)at_tensor_get(gates, row * stride + c);
            const float up = (float)at_tensor_get(ups, row * stride + offset + c);
            const float a = g / (1.0f + expf(-g));
            at_store(y->format, y->data, (size_t)(row * n + c), (double)(a * up));
        }
    return 0;
}

AT_KERNEL(silu_mul, 00_libm) = {
    .summary = "y = SiLU(gate) * up, expf of the C library",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .divide = AT_DIVIDE_DIVISION,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .launch = launch,
};
