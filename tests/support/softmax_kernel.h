/* A softmax kernel written for tests: f32 FMA, one output element at a time, with an exponential as wrong as wanted.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_SOFTMAX_KERNEL_H
#define AT_TEST_SOFTMAX_KERNEL_H

#include "tests/support/attention_problem.h"

struct softmax_kernel {
    double o, lse; /* rounded to their formats */
};
/* Channel c of a row in the default numerics (qk and pv one f32 FMA chain, no blocks), P rounded to `p`. Each
 * exponential of an argument from -120 to 0, 0 excluded, is moved by a random -ulps .. ulps ulp of its true value; the
 * weights are summed from the last key to the first, another order than the model's.
 * A softcap's tanh is moved by twice as many ulps; a bias is a product that is added. */
struct softmax_kernel softmax_kernel(const struct at_problem *problem, enum at_format p, int64_t row, int64_t c,
                                     double ulps, struct at_test_random *random);

#endif
