/* SiLU(gate) * up by accesses of 16 bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01: ex2.approx, a division, each operation rounded.
 * Launch: a thread 16 bytes of a row, blocks of 128 in x for a row, in y for rows, 1056 at most, which go on a grid further; no
 * shared memory.
 * Limits: activations f32, f16 or bf16. Pieces that do not begin at 16 bytes, and tails, go by elements.
 * Source: ours. */
#include "kernels/silu_mul/silu.h"

AT_KERNEL(silu_mul, 02_vector) = {
    .summary = "accesses of 16 bytes; ex2.approx, a division",
    .source = "ours",
    .numerics = AT_SILU_NUMERICS(AT_EXP_EX2_APPROX, AT_DIVIDE_DIVISION),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = at_gated_launch_pieces<at_silu_mul<at_ex2_approx, at_silu_division>>,
};
