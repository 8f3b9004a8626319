/* Problems of gated products for tests: gates and ups given, in either layout.
 * SPDX-License-Identifier: Apache-2.0
 *
 * at_test_eval_init and the like of attention_problem.h work on them. */
#ifndef AT_TEST_GATED_PROBLEM_H
#define AT_TEST_GATED_PROBLEM_H

#include "gated/gated.h"
#include "tests/support/attention_problem.h"

/* All elements 0. Released with at_test_problem_release. */
void at_test_gated_problem(const char *op, enum at_halves halves, enum at_format dtype, int64_t tokens,
                           int64_t channels, struct at_test_problem *out);
/* Element i of y gets this gate and up, rounded to the format. */
void at_test_gated_set(struct at_problem *problem, int64_t i, double gate, double up);
/* A gate or up of any size that a format has, now and then 0, of either sign, infinite or NaN. */
double at_test_gated_draw(struct at_test_random *random);

#endif
