/* sqrt(x) as the unit has it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/parts.h"

/* sqrt(y) - 1 in units of 2^-23 for y = 1 + f / 2^23, or twice that where `odd`. */
static uint32_t fraction(const struct at_special_shape *s, int odd, uint32_t f) {
    const struct at_special_row *row = &s->rows[64 * odd + (int)(f >> 17)];
    const uint32_t x = f & 0x1ffff;
    const int64_t sum =
        ((int64_t)row->c0 << 15) + (int64_t)row->c1 * x - row->c2 * at_special_square_of(s, x) * 2 + s->bias;
    return (uint32_t)(sum >> 17);
}

/* Of a positive normal number. */
static uint32_t unit(const struct at_special_shape *s, uint32_t code) {
    const int exponent = (int)(code >> 23) - 127, odd = exponent & 1, half = (exponent - odd) / 2;
    return ((uint32_t)(127 + half) << 23) + fraction(s, odd, code & AT_SPECIAL_FRACTION);
}

uint32_t at_special_sqrt_of(const struct at_special_shape *s, uint32_t x, int ftz) {
    if (at_special_is_nan(x))
        return AT_SPECIAL_NAN;
    x = at_special_flushed(x, ftz);
    if (at_special_magnitude(x) == 0 || x == AT_SPECIAL_INFINITY)
        return x;
    if (x & AT_SPECIAL_SIGN)
        return AT_SPECIAL_NAN;
    if (at_special_is_subnormal(x))
        return at_special_scaled(unit(s, at_special_scaled(x, 0x1p24f)), 0x1p-12f);
    return unit(s, x);
}
