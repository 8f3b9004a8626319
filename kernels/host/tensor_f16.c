/* The fused block of 16 products with an f16 accumulator, in integers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/host/tensor_f16.h"

#include "attest/format.h"

#include <math.h>

enum {
    FRACTION = 10,   /* fraction bits of f16 */
    KEPT = 25,       /* F: fraction bits kept at alignment */
    FLOOR = -21,     /* exponent that a zero term counts as */
    SUBNORMAL = -24, /* exponent of f16's smallest value */
    INFINITY_CODE = 0x7c00,
    NAN_CODE = 0x7fff, /* the hardware's canonical one */
    SIGN = 0x8000
};

struct at_host_half at_host_half(uint16_t code) {
    int exponent = code >> FRACTION & 31, fraction = code & 1023, sign = code & SIGN ? -1 : 1;
    if (exponent == 31)
        return (struct at_host_half){ (int16_t)(fraction ? 0 : sign), AT_HOST_SPECIAL };
    if (exponent == 0)
        return (struct at_host_half){ (int16_t)(sign * fraction), -14 };
    return (struct at_host_half){ (int16_t)(sign * (1024 + fraction)), (int16_t)(exponent - 15) };
}

static double value(struct at_host_half x) {
    if (x.exponent == AT_HOST_SPECIAL)
        return x.significand ? x.significand * (double)INFINITY : (double)NAN;
    return ldexp(x.significand, x.exponent - FRACTION);
}

/* A term that is not finite makes the block infinite or NaN, whatever the finite ones add up to. */
static uint16_t special_block(int64_t n, const struct at_host_half *a, const struct at_host_half *b, int64_t stride,
                              struct at_host_half c) {
    double sum = value(c);
    for (int64_t i = 0; i < n; i++)
        sum += value(a[i]) * value(b[i * stride]);
    if (isnan(sum))
        return NAN_CODE;
    return (uint16_t)(sum < 0 ? SIGN | INFINITY_CODE : INFINITY_CODE);
}

/* magnitude * 2^exponent cut to a whole number of 2^(lowest). */
static int64_t aligned(int64_t significand, int exponent, int lowest) {
    int shift = exponent - lowest;
    if (shift >= 0)
        return significand * ((int64_t)1 << shift);
    int64_t magnitude = significand < 0 ? -significand : significand;
    magnitude = shift > -63 ? magnitude >> -shift : 0;
    return significand < 0 ? -magnitude : magnitude;
}

/* sum * 2^exponent to the nearest f16, ties to even. */
static uint16_t rounded(int64_t sum, int exponent) {
    if (sum == 0)
        return 0;
    uint64_t m = (uint64_t)(sum < 0 ? -sum : sum);
    int top = 63 - __builtin_clzll(m);
    int unit = exponent + top - FRACTION; /* exponent of the result's last place */
    if (unit < SUBNORMAL)
        unit = SUBNORMAL;
    int drop = unit - exponent;
    if (drop <= 0) {
        m <<= -drop;
    } else if (drop < 63) {
        uint64_t rest = m & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
        m >>= drop;
        m += rest > half || (rest == half && (m & 1));
    } else {
        m = 0;
    }
    /* a subnormal has m < 1024 at unit -24; the formula then gives m, and a carry to 2048 the next exponent */
    int64_t code = ((int64_t)(unit - SUBNORMAL + 1) << FRACTION) + (int64_t)m - 1024;
    if (code > INFINITY_CODE)
        code = INFINITY_CODE;
    return (uint16_t)(code | (sum < 0 && code ? SIGN : 0)); /* what rounding makes zero is +0 */
}

static uint16_t block(int64_t n, const struct at_host_half *a, const struct at_host_half *b, int64_t stride,
                      uint16_t code) {
    const struct at_host_half c = at_host_half(code);
    int32_t product[AT_HOST_TENSOR_BLOCK];
    int exponent[AT_HOST_TENSOR_BLOCK];
    int largest = c.significand && c.exponent > FLOOR ? c.exponent : FLOOR;
    int is_special = c.exponent == AT_HOST_SPECIAL;
    for (int64_t i = 0; i < n; i++) {
        const struct at_host_half x = a[i], y = b[i * stride];
        is_special |= x.exponent == AT_HOST_SPECIAL || y.exponent == AT_HOST_SPECIAL;
        product[i] = x.significand * y.significand;
        exponent[i] = x.exponent + y.exponent;
        if (product[i] && exponent[i] > largest)
            largest = exponent[i];
    }
    if (is_special)
        return special_block(n, a, b, stride, c);
    const int lowest = largest - KEPT;
    int64_t sum = aligned(c.significand, c.exponent - FRACTION, lowest);
    for (int64_t i = 0; i < n; i++)
        sum += aligned(product[i], exponent[i] - 2 * FRACTION, lowest);
    return rounded(sum, lowest);
}

uint16_t at_host_tensor_f16(int64_t n, const struct at_host_half *a, const struct at_host_half *b, int64_t stride,
                            uint16_t c) {
    for (int64_t i = 0; i < n; i += AT_HOST_TENSOR_BLOCK) {
        int64_t left = n - i < AT_HOST_TENSOR_BLOCK ? n - i : AT_HOST_TENSOR_BLOCK;
        c = block(left, a + i, b + i * stride, stride, c);
    }
    return c;
}
