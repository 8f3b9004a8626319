/* Random parameters and random declarations for tests of AsyncT attention.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_ASYNCT_PARAMETERS_H
#define AT_TEST_ASYNCT_PARAMETERS_H

#include "asynct_attention/asynct_attention.h"
#include "tests/support/attention_problem.h"

/* Random relu_pre, edge, fir_form, gate, and sigma, taps and gamma of every head. */
void at_test_asynct_parameters(struct at_test_random *random, struct at_problem *problem);
/* sigma of every head, with its pooled taps as f32. */
void at_test_asynct_sigma(struct at_problem *problem, double sigma);

/* A random declaration that this problem's dtype and fir_form allow, every field that AsyncT reads drawn. */
struct at_numerics at_test_asynct_numerics(struct at_test_random *random, const struct at_problem *problem);

#endif
