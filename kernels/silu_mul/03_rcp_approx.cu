/* SiLU(gate) * up by the special-function unit alone: ex2.approx and rcp.approx.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02, but g / (1 + e) is g times rcp.approx(1 + e): two errors in place of one rounding.
 * Launch: as 02: a thread 16 bytes of a row, blocks of 128, 1056 at most; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: ours. */
#include "kernels/silu_mul/silu.h"

AT_KERNEL(silu_mul, 03_rcp_approx) = {
    .summary = "ex2.approx and rcp.approx, 16 bytes at a time",
    .source = "ours",
    .numerics = AT_SILU_NUMERICS(AT_EXP_EX2_APPROX, AT_DIVIDE_RCP_APPROX),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = at_gated_launch_pieces<at_silu_mul<at_ex2_approx, at_silu_rcp_approx>>,
};
