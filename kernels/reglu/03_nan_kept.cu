/* max(gate, 0) * up that keeps a NaN of the gate.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02, but a gate that is NaN stays one: a comparison and a selection in place of fmaxf.
 * Launch: as 02: a thread 16 bytes of a row, blocks of 128, 1056 at most; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: ours. */
#include "kernels/reglu/rectified.h"

namespace {

inline __device__ float product(float g, float up) { return (g <= 0.0f ? 0.0f : g) * up; }

} // namespace

AT_KERNEL(reglu, 03_nan_kept) = {
    .summary = "a NaN stays one, 16 bytes at a time",
    .source = "ours",
    .numerics = AT_REGLU_NUMERICS(AT_CLAMP_PROPAGATE),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = at_gated_launch_pieces<product>,
};
