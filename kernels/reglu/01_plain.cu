/* max(gate, 0) * up: an element a thread.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32: fmaxf (a NaN becomes 0), one product, rounded; one rounding to the format of the activations.
 * Launch: a thread an element, blocks of 256; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 000, whose first backend has ReGLU as one fused kernel. */
#include "kernels/reglu/rectified.h"

AT_KERNEL(reglu, 01_plain) = {
    .summary = "an element a thread; fmaxf",
    .source = "000",
    .numerics = AT_REGLU_NUMERICS(AT_CLAMP_FMINMAX),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = at_gated_launch_elements<at_reglu>,
};
