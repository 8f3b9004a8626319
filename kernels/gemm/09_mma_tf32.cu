/* A product of f32 on tensor cores: mma.sync m16n8k8, which multiplies f32 as tf32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: of each factor the low 13 bits are not looked at, so that up to 2^-9 of a product is lost before anything is added.
 * 8 products an instruction, each aligned and truncated by the tensor core, their sum truncated to f32; one rounding for
 * the scales, one for the bias, one to the format of d. A NaN that only its low 13 bits make one is infinity to the instruction.
 * Launch: grid (columns / 64, rows / 64), 4 warps of 16 rows and 64 columns each; 18 KiB of dynamic shared memory for the
 * tiles of a step of 32 products; two barriers of the block a step. One thread before it, where amax is asked for.
 * Limits: f32; any m, n, k.
 * Source: ours, for what frameworks do with f32 where they allow it. */
#include "kernels/gemm/gemm_mma_tf32.h"

namespace {

int launch(const struct at_launch *launch) { return at_gemm_launch(launch, at_gemm_tf32<false>, AT_GEMM_MMA_SHARED); }

} // namespace

AT_KERNEL(gemm, 09_mma_tf32) = {
    .summary = "mma.sync of f32 as tf32, low bits dropped, 64 x 64 elements a block; sums in f32",
    .source = "ours",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_TF32, 0, AT_GUARD_NONE),
    .supports = at_gemm_tf32_declines,
    .workspace = nullptr,
    .launch = launch,
};
