/* The unit's interpolation: a row of three coefficients, and the bits of the argument below the row's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SPECIAL_INTERPOLATE_H
#define AT_SPECIAL_INTERPOLATE_H

#include "special/special.h"

enum { AT_SPECIAL_SQUARED = 17, AT_SPECIAL_COLUMNS = 19 };

/* The square of 17 bits x over 2^19, of partial products x_i x_j (i > j: 2^(i+j+1); i = j: 2^2i) of which those below 2^columns
 * are left out before they are added. A call, so that the fast one leaves its callers their registers. */
int64_t at_special_square_without(uint32_t x, int columns);

/* What bit k of 4 bits `low` adds of 7 bits `high`: high >> (3 - k). */
extern const uint16_t at_special_crossed[128][16];

/* The same where 19 columns are left out, as in the unit, and fast. The upper 8 bits meet above column 19 but for the lowest
 * diagonal, which the shift cuts off; of the others bit i meets what is left of the bits above it, which is x >> (18 - i): of bits 5 to
 * 8 and of bits 2 to 4 a look into the table each. */
static inline int64_t at_special_square(uint32_t x) {
    const uint32_t high = x >> 9;
    return (high * high >> 1) + at_special_crossed[x >> 10][x >> 5 & 15] + at_special_crossed[x >> 13][x >> 2 & 7];
}

static inline int64_t at_special_square_of(const struct at_special_shape *s, uint32_t x) {
    return s->columns == AT_SPECIAL_COLUMNS ? at_special_square(x) : at_special_square_without(x, s->columns);
}

#endif
