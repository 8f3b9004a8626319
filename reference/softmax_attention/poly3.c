/* 2^x by a polynomial of degree 3, in f32.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "softmax_attention/softmax_attention.h"

float at_softmax_ex2_poly3(float x) {
    x = x > AT_EX2_POLY3_HIGH ? AT_EX2_POLY3_HIGH : x;
    const float whole = floorf(x), f = x - whole;
    const float p = fmaf(fmaf(fmaf(AT_EX2_POLY3_C3, f, AT_EX2_POLY3_C2), f, AT_EX2_POLY3_C1), f, 1.0f);
    return ldexpf(p, (int)whole); /* exact: at least 2^-126 */
}
