/* log2(x) as the unit has it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/parts.h"

enum { FRACTION_BITS = 36 };

/* log2(1 + f / 2^23) in units of 2^-36; a little above 0 for f = 0. */
static int64_t fraction(const struct at_special_shape *s, uint32_t f) {
    const struct at_special_row *row = &s->rows[f >> 17];
    const uint32_t x = f & 0x1ffff;
    const int64_t sum =
        ((int64_t)row->c0 << 12) + (int64_t)row->c1 * x - row->c2 * at_special_square_of(s, x) * 2 + s->bias;
    return sum >> 2;
}

/* Of a positive normal number. Below 1 the sum is complemented, not negated: log2(1/2) is -1 + 2^-23. */
static uint32_t unit(const struct at_special_shape *s, uint32_t code) {
    const int64_t exponent = (int64_t)(code >> 23) - 127;
    if (code == AT_SPECIAL_ONE)
        return 0;
    const int64_t sum = exponent * ((int64_t)1 << FRACTION_BITS) + fraction(s, code & AT_SPECIAL_FRACTION);
    return sum < 0 ? AT_SPECIAL_SIGN | at_special_cut((uint64_t)~sum, FRACTION_BITS)
                   : at_special_cut((uint64_t)sum, FRACTION_BITS);
}

uint32_t at_special_lg2_of(const struct at_special_shape *s, uint32_t x, int ftz) {
    if (at_special_is_nan(x))
        return AT_SPECIAL_NAN;
    x = at_special_flushed(x, ftz);
    if (at_special_magnitude(x) == 0)
        return AT_SPECIAL_SIGN | AT_SPECIAL_INFINITY;
    if (x & AT_SPECIAL_SIGN)
        return AT_SPECIAL_NAN;
    if (x == AT_SPECIAL_INFINITY)
        return x;
    if (at_special_is_subnormal(x))
        return at_special_code(at_special_number(unit(s, at_special_scaled(x, 0x1p24f))) - 24.0f);
    return unit(s, x);
}
