/* tanh(x) as the unit has it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/parts.h"

enum { LEAST = -8, BINADES = 11 };

/* Arguments in [2^e, 2^(e + 1)), e from -8 to 2: rows lie closer where tanh bends. What is below a row's 17 bits is cut off. */
static const struct binade {
    uint8_t first_row, row_bits, fraction_bits; /* of the sum */
} binades[BINADES] = {
    { 0, 0, 39 },  { 1, 0, 38 },  { 2, 0, 37 },  { 3, 1, 38 },  { 5, 1, 37 },  { 7, 2, 38 },
    { 11, 2, 37 }, { 15, 2, 36 }, { 19, 3, 37 }, { 27, 4, 39 }, { 43, 3, 37 },
};

static int row_of(const struct binade *b, uint32_t f) { return b->first_row + (int)(f >> (23 - b->row_bits)); }

/* No result is subnormal that the argument is not: there is no ftz. Below 2^-8 tanh(x) is x, from 8 on 1. */
uint32_t at_special_tanh_of(const struct at_special_shape *s, uint32_t x, int ftz) {
    const uint32_t sign = x & AT_SPECIAL_SIGN, f = x & AT_SPECIAL_FRACTION;
    const int exponent = (int)(at_special_magnitude(x) >> 23) - 127;
    (void)ftz;
    if (at_special_is_nan(x))
        return AT_SPECIAL_NAN;
    if (exponent < LEAST)
        return x;
    if (exponent >= LEAST + BINADES)
        return sign | AT_SPECIAL_ONE;
    const struct binade *b = &binades[exponent - LEAST];
    const struct at_special_row *row = &s->rows[row_of(b, f)];
    const uint32_t low = f >> (6 - b->row_bits) & 0x1ffff;
    const int64_t sum =
        ((int64_t)row->c0 << 15) + (int64_t)row->c1 * low - row->c2 * at_special_square_of(s, low) * 2 + s->bias;
    return sign | at_special_cut((uint64_t)sum, b->fraction_bits);
}

int at_special_tanh_row(uint32_t x) { return row_of(&binades[(int)(x >> 23) - 127 - LEAST], x & AT_SPECIAL_FRACTION); }
