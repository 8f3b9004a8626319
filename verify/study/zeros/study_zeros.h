/* attest study zeros: how many outputs are 0, and how many whole blocks of them, which is what a kernel could leave out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_ZEROS_H
#define AT_STUDY_ZEROS_H

#include <stdint.h>

#include "attest/format.h"
#include "verify/study/study_list.h"

enum { AT_ZEROS_SIDE = 16 };

/* Of a matrix: elements; blocks of 1 x 16 and of 16 x 16 that lie in it whole, from row and column 0; how many are nothing but 0. */
struct at_zeros {
    int64_t elements, zero;
    int64_t strips, zero_strips;
    int64_t blocks, zero_blocks;
};
/* values: [rows, columns]; 0 is what rounds to it in the format, of either sign. */
void at_zeros_count(enum at_format format, int64_t rows, int64_t columns, const double *values, struct at_zeros *zeros);

extern const struct at_study at_study_zeros;
#define AT_STUDY_ZEROS_OPTIONS \
    { "--case", "LINE", "zeros, ways: the problems whose outputs or choices are counted, a line of the case language" }

#endif
