/* max(gate, 0) * up by accesses of 16 bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01: fmaxf, one product.
 * Launch: a thread 16 bytes of a row, blocks of 128 in x for a row, in y for rows, 1056 at most, which go on a grid further; no
 * shared memory.
 * Limits: activations f32, f16 or bf16. Pieces that do not begin at 16 bytes, and tails, go by elements.
 * Source: ours. */
#include "kernels/reglu/rectified.h"

AT_KERNEL(reglu, 02_vector) = {
    .summary = "accesses of 16 bytes; fmaxf",
    .source = "ours",
    .numerics = AT_REGLU_NUMERICS(AT_CLAMP_FMINMAX),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = at_gated_launch_pieces<at_reglu>,
};
