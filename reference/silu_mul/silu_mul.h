/* y = SiLU(gate) * up, SiLU(g) = g / (1 + exp(-g)): the gate of a SwiGLU block, with the product.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensors and layouts: gated/gated.h. f32, f16 or bf16 in and out.
 *
 * Not finite: the definition as IEEE arithmetic has it. SiLU(+inf) = +inf; SiLU(-inf) = NaN, since -inf / inf and -inf * 0 are,
 * although the limit of SiLU there is 0. SiLU of any finite g but 0 is not 0, so that an infinite up gives an infinite y.
 *
 * Declared arithmetic (the fields of at_numerics that are read), everything else f32 with one rounding an operation:
 *   exp = libm         e within one unit in the last place of exp(-g)
 *   exp = ex2_approx   e = ex2.approx(f32(g * -c)), c = log2(e) in f32; with _ftz, ex2.approx.ftz
 *                      either way s = 1 + e; a = g / s, by the declared divide:
 *                      division; reciprocal, g * (1 / s); rcp_approx and rcp_approx_ftz, g * rcp(s)
 *   exp = tanh_approx  h = g / 2; a = fma(h, tanh.approx(h), h); divide is not read
 *   y = a * up, rounded to f32 and then to the format of y
 * From g = -88.8 down e is infinite in f32 and a is -0, where SiLU is up to 2.6e-37 in size. */
#ifndef AT_SILU_MUL_H
#define AT_SILU_MUL_H

#include "gated/gated.h"

/* Ways of being wrong of its own. */
enum at_silu_fault {
    AT_SILU_NO_SIGMOID = AT_GATED_FAULTS,
    AT_SILU_SIGMOID_ALONE,
    AT_SILU_EXP_OF_GATE,
    AT_SILU_UP_RECTIFIED,
    AT_SILU_TANH_OF_GATE,
    AT_SILU_GELU,
    AT_SILU_FAULTS
};

/* What limits take for errors: of ex2.approx and of rcp.approx relative to their result, and of the argument of ex2 relative to itself,
 * in units of 2^-24; of tanh.approx in units in the last place. */
struct at_silu_errors {
    double ex2, rcp, argument, tanh_units;
};
extern const struct at_silu_errors at_silu_errors;

extern const struct at_op at_op_silu_mul;

#endif
