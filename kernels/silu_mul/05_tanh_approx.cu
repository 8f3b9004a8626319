/* SiLU(gate) * up by one instruction of the special-function unit: tanh.approx.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32: h = g / 2, then h + h tanh.approx(h) by one fma, the product with up; one rounding to the format of the
 * activations. tanh.approx is within 134 units in the last place, and where g is far below 0 what is left of 1 - tanh is little
 * but that error: 2^-17 of |h|.
 * Launch: as 02: a thread 16 bytes of a row, blocks of 128, 1056 at most; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: ours. */
#include "kernels/silu_mul/silu.h"

namespace {

inline __device__ float product(float g, float up) {
    const float h = g * 0.5f;
    return fmaf(h, at_tanh_approx(h), h) * up;
}

} // namespace

AT_KERNEL(silu_mul, 05_tanh_approx) = {
    .summary = "tanh.approx, 16 bytes at a time",
    .source = "ours",
    /* not tested: divide: there is no quotient */
    .numerics = AT_SILU_NUMERICS(AT_EXP_TANH_APPROX, AT_DIVIDE_DIVISION),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = at_gated_launch_pieces<product>,
};
