/* The square of the bits below the row's, and its partial products by both of their factors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/interpolate.h"

/* clang-format off */
#define CROSSED(h, l) (uint16_t)(((l) & 1) * ((h) >> 3) + ((l) >> 1 & 1) * ((h) >> 2) + ((l) >> 2 & 1) * ((h) >> 1) + ((l) >> 3) * (h))
#define FOUR(h, l) CROSSED(h, l), CROSSED(h, (l) + 1), CROSSED(h, (l) + 2), CROSSED(h, (l) + 3)
#define ROW(h) { FOUR(h, 0), FOUR(h, 4), FOUR(h, 8), FOUR(h, 12) }
#define ROWS(h) ROW(h), ROW((h) + 1), ROW((h) + 2), ROW((h) + 3)
#define MORE(h) ROWS(h), ROWS((h) + 4), ROWS((h) + 8), ROWS((h) + 12)
const uint16_t at_special_crossed[128][16] = {
    MORE(0), MORE(16), MORE(32), MORE(48), MORE(64), MORE(80), MORE(96), MORE(112),
};
/* clang-format on */

int64_t at_special_square_without(uint32_t x, int columns) {
    int64_t sum = 0;
    for (int i = 0; i < AT_SPECIAL_SQUARED; i++)
        for (int j = 0; j <= i; j++) {
            const int column = i == j ? 2 * i : i + j + 1;
            if (column >= columns)
                sum += (int64_t)(x >> i & x >> j & 1) << column;
        }
    return sum >> AT_SPECIAL_COLUMNS;
}
