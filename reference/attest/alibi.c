/* Slopes of ALiBi.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/alibi.h"

#include "attest/plain_math.h"

double at_alibi_slope(int64_t heads, int64_t i) {
    int64_t n = 1;
    while (n <= heads / 2)
        n *= 2;
    const int64_t of = i < n ? n : 2 * n, place = i < n ? i : 2 * (i - n);
    return at_plain_exp2(-8.0 * (double)(place + 1) / (double)of);
}
