/* A product of f32 on tensor cores: mma.sync m16n8k8 of factors that were rounded to tf32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: each factor is rounded to nearest in tf32, ties away from 0, as it goes into shared memory: half of what
 * 09_mma_tf32 loses of a product, and in no direction. The largest f32 become infinity. From there on as 09_mma_tf32.
 * Launch: grid (columns / 64, rows / 64), 4 warps of 16 rows and 64 columns each; 18 KiB of dynamic shared memory for the
 * tiles of a step of 32 products; two barriers of the block a step. One thread before it, where amax is asked for.
 * Limits: f32; any m, n, k.
 * Source: ours, for kernels that convert before they multiply. */
#include "kernels/gemm/gemm_mma_tf32.h"

namespace {

int launch(const struct at_launch *launch) { return at_gemm_launch(launch, at_gemm_tf32<true>, AT_GEMM_MMA_SHARED); }

} // namespace

AT_KERNEL(gemm, 09_mma_tf32_rounded) = {
    .summary = "mma.sync of f32 rounded to tf32, 64 x 64 elements a block; sums in f32",
    .source = "ours",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_TF32_RNA, 0, AT_GUARD_NONE),
    .supports = at_gemm_tf32_declines,
    .workspace = nullptr,
    .launch = launch,
};
