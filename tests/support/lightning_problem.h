/* Lightning decode problems for tests: random ones, declarations.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_LIGHTNING_PROBLEM_H
#define AT_TEST_LIGHTNING_PROBLEM_H

#include "lightning_decode/lightning_decode.h"
#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"

/* A random problem of at most 2 requests, 3 heads, 4 steps, 5 columns and max_d rows: data of every family and then, at times,
 * bent to wide exponents or one odd element; slopes as cases have them, wide, or 0. Released with at_drop_case. */
struct at_built_case at_test_lightning_draw(struct at_test_random *random, int max_d);
/* A random declaration. */
struct at_numerics at_test_lightning_numerics(struct at_test_random *random);

#endif
