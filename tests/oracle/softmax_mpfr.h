/* Softmax attention a second time: 200-bit arithmetic, one output element at a time, no maximum subtracted.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shares nothing with reference/: it decodes numbers, finds requests, pages and visible keys by itself. */
#ifndef AT_SOFTMAX_MPFR_H
#define AT_SOFTMAX_MPFR_H

#include "attest/problem.h"

struct softmax_oracle {
    double o, lse; /* rounded to nearest double */
};
/* Channel c of query head x at a query token. */
struct softmax_oracle softmax_oracle(const struct at_problem *problem, int64_t token, int64_t x, int64_t c);

#endif
