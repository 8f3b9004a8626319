/* y = 2^x, element by element, f32 in and out: the exponential that softmax kernels stand on, alone.
 * SPDX-License-Identifier: Apache-2.0
 *
 * x and y are [n]; n may be 0. NaN gives NaN, -inf gives 0, +inf gives +inf, both zeros give 1.
 *
 * Declared arithmetic (the field of at_numerics that is read): exp
 *   libm            within one unit in the last place of f32 (2^-149 where y is subnormal)
 *   ex2_approx      ex2.approx.f32: within two units of the correctly rounded result, over the full range (PTX ISA 9.1,
 *                   9.7.3.21)
 *   ex2_approx_ftz  the same, but a result below 2^-126 is 0, and a subnormal x counts as 0 (which changes nothing that
 *                   f32 can show: 2^x is within 2^-126 of 1 for both)
 *
 * Limits are what is promised. The model of ex2_approx and ex2_approx_ftz is the bits of NVIDIA's special-function unit
 * (special/special.h). libm is not of one library: its model is the correctly rounded value and an interval about it. */
#ifndef AT_EXP2_H
#define AT_EXP2_H

#include "attest/op.h"

enum { AT_EXP2_X, AT_EXP2_Y };

struct at_exp2_own {
    int64_t n; /* elements */
};
AT_OWN_STRUCT(at_exp2_own)

/* Ways of being wrong, in the order of the operator's decoys. */
enum at_exp2_fault {
    AT_EXP2_RIGHT = -1,
    AT_EXP2_BASE_E,
    AT_EXP2_NO_FRACTION,
    AT_EXP2_RECIPROCAL,
    AT_EXP2_NEXT_ELEMENT,
    AT_EXP2_FLUSHED,
    AT_EXP2_FAULTS
};

extern const struct at_op at_op_exp2;

#endif
