/* A second AsyncT attention, in 200-bit arithmetic, sharing nothing with the reference but the problem.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ASYNCT_MPFR_H
#define AT_ASYNCT_MPFR_H

#include "attest/problem.h"

/* Element (token, head, channel) of o, rounded once to double. Reads the tensors with its own indexing and
 * its own decoding of f32, f16 and bf16; everything is computed again for every element. */
double at_asynct_mpfr(const struct at_problem *problem, int64_t token, int64_t head, int64_t channel);

#endif
