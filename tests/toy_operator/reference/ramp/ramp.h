/* A toy operator, for tests of how little it takes to add one: y[line, place] = x[line, place] + slope * place.
 * SPDX-License-Identifier: Apache-2.0
 *
 * x and y are [lines places] of f32, f16 or bf16. Declared arithmetic: f32, one rounding for the product, one for the
 * sum, one for y. */
#ifndef AT_RAMP_H
#define AT_RAMP_H

#include "attest/op.h"

enum { AT_RAMP_X, AT_RAMP_Y };

struct at_ramp_own {
    int64_t lines, places;
    float slope;
};
AT_OWN_STRUCT(at_ramp_own)

extern const struct at_op at_op_ramp;

#endif
