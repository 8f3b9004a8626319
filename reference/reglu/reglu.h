/* y = max(gate, 0) * up: ReGLU.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensors and layouts: gated/gated.h. f32, f16 or bf16 in and out.
 *
 * Not finite: max(NaN, 0) is NaN; a closed gate is 0, so that an infinite up makes NaN of it (0 * inf). max(-0, 0) is +0.
 *
 * Declared arithmetic (the field of at_numerics that is read): clamp
 *   fminmax    fmaxf(gate, 0): a NaN gives way to 0, and y is an ordinary number (LAUNDERED)
 *   propagate  NaN stays
 * y is one product in f32, rounded to the format of y; of f16 and bf16 the product itself is exact unless it leaves f32's range. */
#ifndef AT_REGLU_H
#define AT_REGLU_H

#include "gated/gated.h"

/* Ways of being wrong of its own. */
enum at_reglu_fault {
    AT_REGLU_NOT_RECTIFIED = AT_GATED_FAULTS,
    AT_REGLU_UP_RECTIFIED,
    AT_REGLU_GATE_AS_MASK,
    AT_REGLU_SIGN_LOST,
    AT_REGLU_FAULTS
};

extern const struct at_op at_op_reglu;

#endif
