/* Products of matrices for tests: given ones, random ones, declarations.
 * SPDX-License-Identifier: Apache-2.0
 *
 * at_test_get, at_test_set, at_test_eval_init and the like of attention_problem.h work on them. */
#ifndef AT_TEST_GEMM_PROBLEM_H
#define AT_TEST_GEMM_PROBLEM_H

#include "gemm/gemm.h"
#include "tests/support/attention_problem.h"

struct at_test_gemm_shape {
    int64_t m, n, k;
    enum at_format dtype, out;
    double scale; /* 0: 1 */
    enum at_gemm_layout layout;
    int scales, amax; /* 1: there are scale_a and scale_b, set to 1; there is amax */
    enum at_gemm_bias bias;
};
/* Factors 0. Released with at_test_problem_release. */
void at_test_gemm_problem(const struct at_test_gemm_shape *shape, struct at_test_problem *out);

/* The same problem, its second factor stored the other way: w for b. */
void at_test_gemm_turned(const struct at_problem *from, struct at_test_problem *out);

/* A random problem of at most 6 rows and columns and max_k products: every format, data of every family and then, at
 * times, bent to wide exponents, the ends of the range or one odd element; scales 1, powers of two, any. */
void at_test_gemm_draw(struct at_test_random *random, int max_k, struct at_test_problem *out);
/* The same with what may follow the sum: half of the time each, scales of the factors, a bias in either format, amax. */
void at_test_gemm_draw_all(struct at_test_random *random, int max_k, struct at_test_problem *out);
/* A random declaration that takes the problem: unit, lanes, run, tree, split, guard. */
struct at_numerics at_test_gemm_numerics(struct at_test_random *random, const struct at_problem *problem);

#endif
