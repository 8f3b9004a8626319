/* 1 / x as the unit has it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/parts.h"

/* 2 / (1 + f / 2^23) - 1 in units of 2^-23, f > 0. Rows are 2^16 long, so the squarer has one bit of x more. */
static uint32_t fraction(const struct at_special_shape *s, uint32_t f) {
    const struct at_special_row *row = &s->rows[f >> 16];
    const uint32_t x = f & 0xffff;
    const int64_t sum =
        ((int64_t)row->c0 << 13) - (int64_t)row->c1 * x + row->c2 * at_special_square_of(s, 2 * x) + s->bias;
    return (uint32_t)(sum >> 15);
}

/* Of a normal number below 2^126, or with ftz. The reciprocal of a power of two is exact. */
static uint32_t unit(const struct at_special_shape *s, uint32_t code) {
    const uint32_t sign = code & AT_SPECIAL_SIGN, f = code & AT_SPECIAL_FRACTION;
    const int32_t exponent = 253 - (int32_t)(code >> 23 & 255) + !f;
    return exponent > 0 ? sign | (((uint32_t)exponent << 23) + (f ? fraction(s, f) : 0)) : sign;
}

uint32_t at_special_rcp_of(const struct at_special_shape *s, uint32_t x, int ftz) {
    const uint32_t sign = x & AT_SPECIAL_SIGN, magnitude = at_special_magnitude(at_special_flushed(x, ftz));
    if (at_special_is_nan(x))
        return AT_SPECIAL_NAN;
    if (magnitude == 0)
        return sign | AT_SPECIAL_INFINITY;
    if (magnitude == AT_SPECIAL_INFINITY)
        return sign;
    if (magnitude < AT_SPECIAL_LEAST_NORMAL)
        return at_special_scaled(unit(s, at_special_scaled(x, 0x1p24f)), 0x1p24f);
    if (!ftz && magnitude >= at_special_code(0x1p125f)) /* the result may be subnormal: rounded to it */
        return at_special_scaled(unit(s, at_special_scaled(x, 0x1p-2f)), 0x1p-2f);
    return unit(s, x);
}
