/* SiLU(gate) * up by the special-function unit with subnormals flushed, as a build with fast math has it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 03, but ex2.approx.ftz and rcp.approx.ftz: where 1 + e is beyond 2^126, g below -87.3, the result is -0.
 * Launch: as 02: a thread 16 bytes of a row, blocks of 128, 1056 at most; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: ours. */
#include "kernels/silu_mul/silu.h"

AT_KERNEL(silu_mul, 04_rcp_approx_ftz) = {
    .summary = "ex2.approx.ftz and rcp.approx.ftz, 16 bytes at a time",
    .source = "ours",
    .numerics = AT_SILU_NUMERICS(AT_EXP_EX2_APPROX_FTZ, AT_DIVIDE_RCP_APPROX_FTZ),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = at_gated_launch_pieces<at_silu_mul<at_ex2_approx_ftz, at_silu_rcp_approx_ftz>>,
};
