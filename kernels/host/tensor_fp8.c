/* The fused block of 16 products of 8 bits with an accumulator of 13 fraction bits, in integers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/host/tensor_fp8.h"

#include <math.h>

enum { BLOCK = 16, KEPT = 13, FLOOR = -132, LAST = 63 };

struct at_host_eighth at_host_eighth(enum at_format format, uint8_t code) {
    const int bits = format == AT_E4M3 ? 3 : 2,
              bias = format == AT_E4M3 ? 7 : 15; /* of the fraction; of the exponent */
    const int fraction = code & ((1 << bits) - 1), field = (code & 0x7f) >> bits, top = (1 << (7 - bits)) - 1;
    struct at_host_eighth x = { 0 };
    if (format == AT_E4M3 ? (code & 0x7f) == 0x7f : field == top) /* e4m3 has no infinities */
        x.special = fraction ? 1 : 2;
    x.significand = (int16_t)(field ? fraction + (1 << bits) : fraction);
    x.leading = (int16_t)((field ? field : 1) - bias);
    x.exponent = (int16_t)(x.leading - bits);
    if (code >> 7)
        x.significand = (int16_t)-x.significand;
    return x;
}

/* significand * 2^exponent cut to a whole number of 2^lowest. */
static int64_t cut(int64_t significand, int exponent, int lowest) {
    const int shift = exponent - lowest;
    const int64_t magnitude = significand < 0 ? -significand : significand;
    const int64_t moved = shift >= 0 ? magnitude << shift : shift > -LAST ? magnitude >> -shift : 0;
    return significand < 0 ? -moved : moved;
}

/* sum * 2^exponent with the fourteen bits from its first on, fewer where they lie below the last place of f32. */
static float shortened(int64_t sum, int exponent) {
    enum { LEAST = -139 }; /* what is left of f32's least normal number, 2^-126, at 13 fraction bits */
    uint64_t m = (uint64_t)(sum < 0 ? -sum : sum);
    if (m == 0)
        return 0;
    const int top = LAST - __builtin_clzll(m), unit = exponent + top - KEPT;
    const int drop = (unit < LEAST ? LEAST : unit) - exponent;
    if (drop > 0)
        m = drop > LAST ? 0 : m >> drop << drop;
    const float size = ldexpf((float)m, exponent); /* at most fourteen bits of m are left */
    return sum < 0 && m ? -size : size;
}

/* What is not finite decides, whatever the rest adds up to. */
static float special_block(int64_t n, const struct at_host_eighth *a, const struct at_host_eighth *b, float c) {
    double sum = (double)c;
    for (int64_t i = 0; i < n; i++) {
        const double x = a[i].special == 1 ? (double)NAN
                         : a[i].special    ? a[i].significand * (double)INFINITY
                                           : a[i].significand;
        const double y = b[i].special == 1 ? (double)NAN
                         : b[i].special    ? b[i].significand * (double)INFINITY
                                           : b[i].significand;
        sum += isfinite(x) && isfinite(y) ? 0 : x * y;
    }
    return (float)sum;
}

static float block(int64_t n, const struct at_host_eighth *a, const struct at_host_eighth *b, float c) {
    int largest = FLOOR, is_special = !isfinite(c), exponent = 0;
    for (int64_t i = 0; i < n; i++) {
        is_special |= a[i].special || b[i].special;
        if (a[i].significand && b[i].significand && a[i].leading + b[i].leading > largest)
            largest = a[i].leading + b[i].leading;
    }
    if (is_special)
        return special_block(n, a, b, c);
    const int64_t accumulator = (int64_t)ldexpf(frexpf(c, &exponent), 24); /* c is that times 2^(exponent - 24) */
    if (accumulator && exponent - 1 > largest)
        largest = exponent - 1;
    const int lowest = largest - KEPT;
    int64_t sum = cut(accumulator, exponent - 24, lowest);
    for (int64_t i = 0; i < n; i++)
        sum += cut((int64_t)a[i].significand * b[i].significand, a[i].exponent + b[i].exponent, lowest);
    return shortened(sum, lowest);
}

float at_host_tensor_fp8(int64_t n, const struct at_host_eighth *a, const struct at_host_eighth *b) {
    float c = 0;
    for (int64_t i = 0; i < n; i += BLOCK)
        c = block(n - i < BLOCK ? n - i : BLOCK, a + i, b + i, c);
    return c;
}
