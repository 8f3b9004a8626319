/* y = f(x), element by element: one instruction of the special-function unit. What a study of the hardware launches.
 * SPDX-License-Identifier: Apache-2.0
 *
 * x and y are [n] in the instruction's format (f32, f16 or bf16), which is the problem's; n may be 0. With ftz a subnormal x counts
 * as a zero of its sign, and a result below 2^-126 may be one.
 *
 * The model is the unit's bits (special/special.h), whatever a variant declares. The exact value is that of the function; the limit
 * about it is what the unit's largest errors are, over all arguments. */
#ifndef AT_SPECIAL_FUNCTION_H
#define AT_SPECIAL_FUNCTION_H

#include "attest/op.h"
#include "special/unit_instruction.h"

enum { AT_SPECIAL_FUNCTION_X, AT_SPECIAL_FUNCTION_Y };

struct at_special_function_own {
    int64_t n;           /* elements */
    int32_t instruction; /* its place in the table of the unit's instructions */
};
AT_OWN_STRUCT(at_special_function_own)

/* The instruction of a problem, NULL when there is none. */
#ifdef __cplusplus
extern "C"
#endif
    const struct at_special_instruction *
    at_special_function_instruction(const struct at_problem *problem);

extern const struct at_op at_op_special_function;

#endif
