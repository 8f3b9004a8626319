/* Zeros of a matrix, one by one and in whole blocks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/zeros/study_zeros.h"

static int is_zero_strip(enum at_format format, int64_t n, const double *values) {
    for (int64_t i = 0; i < n; i++)
        if (at_round(format, values[i]) != 0)
            return 0;
    return 1;
}

void at_zeros_count(enum at_format format, int64_t rows, int64_t columns, const double *values,
                    struct at_zeros *zeros) {
    const int64_t strips = columns / AT_ZEROS_SIDE;
    *zeros = (struct at_zeros){ .elements = rows * columns, .strips = rows * strips };
    zeros->blocks = rows / AT_ZEROS_SIDE * strips;
    for (int64_t i = 0; i < rows * columns; i++)
        zeros->zero += at_round(format, values[i]) == 0;
    for (int64_t strip = 0; strip < strips; strip++) {
        int64_t run = 0; /* zero strips of this block so far */
        for (int64_t row = 0; row < rows; row++) {
            const int zero = is_zero_strip(format, AT_ZEROS_SIDE, values + row * columns + strip * AT_ZEROS_SIDE);
            zeros->zero_strips += zero;
            run = row % AT_ZEROS_SIDE ? run + zero : zero;
            zeros->zero_blocks += run == AT_ZEROS_SIDE && row % AT_ZEROS_SIDE == AT_ZEROS_SIDE - 1;
        }
    }
}
