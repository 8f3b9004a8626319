/* A tensor core's dot product of factors of 8 bits as sm_89 has it, in integers, for the C baseline.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rule (mma.sync m16n8k32 of e4m3 or e5m2 with an f32 accumulator): 16 products and the accumulator are aligned to the
 * largest exponent among them, at least -132; each magnitude is cut below 2^-13 of it; the cut terms are added exactly, and
 * the sum is cut to 13 fraction bits: an f32 whose low ten bits are 0. An instruction is two such steps. Written apart from
 * reference/tensor_core, which works on doubles, so that the two check each other. */
#ifndef AT_HOST_TENSOR_FP8_H
#define AT_HOST_TENSOR_FP8_H

#include <stdint.h>

#include "attest/format.h"

/* A decoded value: significand * 2^exponent, where `leading` is the exponent that it is aligned by: its own, of a subnormal
 * that of the least normal number. special: 1 a NaN, 2 an infinity. */
struct at_host_eighth {
    int16_t significand, exponent, leading, special;
};
struct at_host_eighth at_host_eighth(enum at_format format, uint8_t code);

/* The sum of n products from 0, in ascending steps of 16 (the last one filled up with zeros). */
float at_host_tensor_fp8(int64_t n, const struct at_host_eighth *a, const struct at_host_eighth *b);

#endif
