/* 1 / sqrt(x) as the unit has it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/parts.h"

/* 2 / sqrt(y) - 1 in units of 2^-23 for y = 1 + f / 2^23, or twice that where `odd`. */
static uint32_t fraction(const struct at_special_shape *s, int odd, uint32_t f) {
    const struct at_special_row *row = &s->rows[64 * odd + (int)(f >> 17)];
    const uint32_t x = f & 0x1ffff;
    const int64_t sum =
        ((int64_t)row->c0 << 14) - (int64_t)row->c1 * x + row->c2 * at_special_square_of(s, x) * 4 + s->bias;
    return (uint32_t)(sum >> 16);
}

/* Of a positive normal number; exact for powers of 4. */
static uint32_t unit(const struct at_special_shape *s, uint32_t code) {
    const int exponent = (int)(code >> 23) - 127, odd = exponent & 1, half = (exponent - odd) / 2;
    const uint32_t f = code & AT_SPECIAL_FRACTION;
    if (!odd && f == 0)
        return (uint32_t)(127 - half) << 23;
    return ((uint32_t)(126 - half) << 23) + fraction(s, odd, f);
}

uint32_t at_special_rsqrt_of(const struct at_special_shape *s, uint32_t x, int ftz) {
    if (at_special_is_nan(x))
        return AT_SPECIAL_NAN;
    x = at_special_flushed(x, ftz);
    if (at_special_magnitude(x) == 0)
        return x | AT_SPECIAL_INFINITY;
    if (x & AT_SPECIAL_SIGN)
        return AT_SPECIAL_NAN;
    if (x == AT_SPECIAL_INFINITY)
        return 0;
    if (at_special_is_subnormal(x))
        return at_special_scaled(unit(s, at_special_scaled(x, 0x1p24f)), 0x1p12f);
    return unit(s, x);
}
