/* The unit's interpolation: a row of three coefficients, and the bits of the argument below the row's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SPECIAL_INTERPOLATE_H
#define AT_SPECIAL_INTERPOLATE_H

#include "special/special.h"

enum { AT_SPECIAL_SQUARED = 17, AT_SPECIAL_COLUMNS = 19 };

/* The square of 17 bits x over 2^19, of partial products x_i x_j (i > j: 2^(i+j+1); i = j: 2^2i) of which those below 2^columns
 * are left out before they are added. */
static inline int64_t at_special_square_without(uint32_t x, int columns) {
    int64_t sum = 0;
    for (int i = 0; i < AT_SPECIAL_SQUARED; i++)
        for (int j = 0; j <= i; j++) {
            const int column = i == j ? 2 * i : i + j + 1;
            if (column >= columns)
                sum += (int64_t)(x >> i & x >> j & 1) << column;
        }
    return sum >> AT_SPECIAL_COLUMNS;
}

/* The same where 19 columns are left out, as in the unit, and fast. The upper 8 bits meet above column 19 but for the lowest
 * diagonal, which the shift cuts off; of the others bit i meets what is left of the bits above it. */
static inline int64_t at_special_square(uint32_t x) {
    const uint32_t high = x >> 9;
    uint32_t sum = high * high >> 1;
    for (int i = 2; i < 9; i++)
        sum += (x >> (18 - i)) & -(x >> i & 1);
    return sum;
}

static inline int64_t at_special_square_of(const struct at_special_shape *s, uint32_t x) {
    return s->columns == AT_SPECIAL_COLUMNS ? at_special_square(x) : at_special_square_without(x, s->columns);
}

#endif
