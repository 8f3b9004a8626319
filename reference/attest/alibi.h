/* Slopes of ALiBi (attention with linear biases; Press, Smith and Lewis 2022).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of n heads, n a power of two, head i (from 0) has the slope 2^(-8 (i + 1) / n): a geometric series that begins with its
 * ratio and ends with 2^-8. Of other numbers of heads, n the largest power of two below: the first n have the slopes of n
 * heads, the others those of heads 0, 2, 4, ... of 2n. */
#ifndef AT_ALIBI_H
#define AT_ALIBI_H

#include <stdint.h>

/* Slope of head i of `heads` >= 1, in (0, 1); by at_plain_exp2, so the same bits everywhere. Exact for up to 8 heads. */
double at_alibi_slope(int64_t heads, int64_t i);

#endif
