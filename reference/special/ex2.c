/* 2^x as the unit has it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/parts.h"

static int row_of(uint32_t f) { return (int)(f >> 17); }

/* 2^(f / 2^23) - 1 in units of 2^-23. */
static uint32_t fraction(const struct at_special_shape *s, uint32_t f) {
    const struct at_special_row *row = &s->rows[row_of(f)];
    const uint32_t x = f & 0x1ffff;
    const int64_t sum =
        ((int64_t)row->c0 << 13) + (int64_t)row->c1 * x + row->c2 * at_special_square_of(s, x) + s->bias;
    return (uint32_t)(sum >> 15);
}

/* x in units of 2^-23, |x| < 2^8: |x| is cut, and then, for x < 0, what is below a whole number is complemented, not negated. */
static int64_t fixed_point(uint32_t code) {
    const int exponent = (int)(at_special_magnitude(code) >> 23) - 127;
    const int64_t significand = (code & AT_SPECIAL_FRACTION) | AT_SPECIAL_LEAST_NORMAL;
    const int64_t fixed = exponent >= 0 ? significand << exponent : exponent < -24 ? 0 : significand >> -exponent;
    if (!(code & AT_SPECIAL_SIGN))
        return fixed;
    return fixed & AT_SPECIAL_FRACTION ? ~fixed : -fixed;
}

/* The unit itself: what is below 2^-126 is 0, with ftz or without. */
static uint32_t unit(const struct at_special_shape *s, uint32_t code) {
    if (at_special_is_subnormal(code))
        return AT_SPECIAL_ONE;
    if (at_special_magnitude(code) >= at_special_code(256.0f))
        return code & AT_SPECIAL_SIGN ? 0 : AT_SPECIAL_INFINITY;
    const int64_t fixed = fixed_point(code), whole = fixed >> 23;
    if (whole > 127)
        return AT_SPECIAL_INFINITY;
    if (whole < -126)
        return 0;
    return ((uint32_t)(whole + 127) << 23) + fraction(s, (uint32_t)fixed & AT_SPECIAL_FRACTION);
}

uint32_t at_special_ex2_of(const struct at_special_shape *s, uint32_t x, int ftz) {
    if (at_special_is_nan(x))
        return AT_SPECIAL_NAN;
    if (!ftz && at_special_number(x) < -126.0f) { /* halved before and squared after: subnormal results */
        const float root = at_special_number(unit(s, at_special_scaled(x, 0.5f)));
        return at_special_code(root * root);
    }
    return unit(s, x);
}

int at_special_ex2_row(uint32_t x) { return row_of((uint32_t)fixed_point(x) & AT_SPECIAL_FRACTION); }
