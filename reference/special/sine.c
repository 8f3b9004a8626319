/* sin(x) and cos(x) as the unit has them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/parts.h"

enum { FRACTION_BITS = 37, QUARTER = 1 << 23, TURN = 1 << 25 };

/* sin of a share f / 2^23 of a quarter turn, in units of 2^-37. */
static int64_t quarter(const struct at_special_shape *s, uint32_t f) {
    const struct at_special_row *row = &s->rows[f >> 17];
    const uint32_t x = f & 0x1ffff;
    return ((int64_t)row->c0 << 12) + (int64_t)row->c1 * x - row->c2 * at_special_square_of(s, x) + s->bias;
}

/* |x| / (2 pi), cut to f32, then to units of 2^-25, without whole turns. */
static uint32_t turns(uint32_t x) {
    const int shift =
        (int)(x >> 23 & 255) - 127 - 24; /* 1 / (2 pi) = 0xa2f983 * 2^-26; significands have 23 bits of fraction */
    const uint64_t product = (uint64_t)((x & AT_SPECIAL_FRACTION) | AT_SPECIAL_LEAST_NORMAL) * 0xa2f983u;
    const int below = 63 - __builtin_clzll(product) - 23;
    const uint64_t cut = product >> below << below;
    if (shift <= -64 || shift >= 32)
        return 0;
    return (uint32_t)(shift < 0 ? cut >> -shift : cut << shift) & (TURN - 1);
}

/* In the second and fourth quarter the share is complemented, not subtracted from 1. */
static uint32_t share(uint32_t place) { return (place & QUARTER ? ~place : place) & (QUARTER - 1); }

static uint32_t value(const struct at_special_shape *s, uint32_t place, uint32_t sign) {
    const int64_t sine = quarter(s, share(place));
    sign ^= place & 2 * QUARTER ? AT_SPECIAL_SIGN : 0;
    return sine > 0 ? sign | at_special_cut((uint64_t)sine, FRACTION_BITS) : sign;
}

uint32_t at_special_sin_of(const struct at_special_shape *s, uint32_t x, int ftz) {
    (void)ftz;
    if (at_special_magnitude(x) >= AT_SPECIAL_INFINITY)
        return AT_SPECIAL_NAN;
    return value(s, turns(x), x & AT_SPECIAL_SIGN);
}

uint32_t at_special_cos_of(const struct at_special_shape *s, uint32_t x, int ftz) {
    (void)ftz;
    if (at_special_magnitude(x) >= AT_SPECIAL_INFINITY)
        return AT_SPECIAL_NAN;
    return value(s, (turns(x) + QUARTER) & (TURN - 1), 0);
}

int at_special_sin_row(uint32_t x) { return (int)(share(turns(x)) >> 17); }
int at_special_cos_row(uint32_t x) { return (int)(share(turns(x) + QUARTER) >> 17); }
