/* Tables of rotary positions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ROTARY_TABLE_H
#define AT_ROTARY_TABLE_H

#include "attest/tensor.h"
#include "datasets/fill/random.h"

/* Rows [begin, end) of a table [max_position rot]: rot/2 cosines, then rot/2 sines of each position, rounded once to its
 * format. */
void at_rotary_rows(const struct at_tensor *table, double base, int64_t begin, int64_t end);

/* For exact data: quarters from -1 to 1 in their place, none of them 0. Products with eighths up to 4, and sums of two, have at
 * most 8 bits. */
void at_rotary_quarters(const struct at_tensor *table, const struct at_random *random, int64_t begin, int64_t end);

#endif
