/* A tensor core's dot product with an f16 accumulator, in integers, for the C baseline.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rule (mma.sync m16n8k16 f16 of sm_90): 16 products and the accumulator are aligned to the largest
 * exponent among them, at least -21; each magnitude is cut below 2^-25 of it; the cut terms are added
 * exactly and rounded once, to nearest even, to f16. Written apart from reference/tensor_core, which works on
 * doubles, so that the two check each other. */
#ifndef AT_HOST_TENSOR_F16_H
#define AT_HOST_TENSOR_F16_H

#include <stdint.h>

/* A decoded f16: significand * 2^(exponent - 10), the hidden bit included; subnormals have exponent -14.
 * exponent AT_HOST_SPECIAL: significand 0 is NaN, 1 and -1 are infinities. */
struct at_host_half {
    int16_t significand, exponent;
};
enum { AT_HOST_SPECIAL = 100, AT_HOST_TENSOR_BLOCK = 16 };

struct at_host_half at_host_half(uint16_t code);

/* c + sum of n products, c and the result as f16 codes, in ascending blocks of 16 (the last one filled up
 * with zeros). b has a stride in elements. */
uint16_t at_host_tensor_f16(int64_t n, const struct at_host_half *a, const struct at_host_half *b, int64_t stride,
                            uint16_t c);

#endif
