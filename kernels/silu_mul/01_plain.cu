/* SiLU(gate) * up: an element a thread.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32: ex2.approx of g times -log2(e), 1 + e, a division, the product with up, each rounded; one rounding to the
 * format of the activations.
 * Launch: a thread an element, blocks of 256; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 002, which fuses SiLU and the product to save a write and a read. */
#include "kernels/silu_mul/silu.h"

AT_KERNEL(silu_mul, 01_plain) = {
    .summary = "an element a thread; ex2.approx, a division",
    .source = "002",
    .numerics = AT_SILU_NUMERICS(AT_EXP_EX2_APPROX, AT_DIVIDE_DIVISION),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = at_gated_launch_elements<at_silu_mul<at_ex2_approx, at_silu_division>>,
};
