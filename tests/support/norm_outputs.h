/* Outputs of norm problems: the exact value and three declared arithmetics, compared to the bit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_NORM_OUTPUTS_H
#define AT_TEST_NORM_OUTPUTS_H

#include "tests/support/norm_problem.h"

enum { AT_NORM_TOKENS = 5, AT_NORM_CHANNELS = 24, AT_NORM_MODELS = 3 };

/* A problem of those sizes, two heads of q and of k, every input normal (beta a quarter of that). */
void at_norm_make(const char *op, enum at_format dtype, uint64_t seed, struct at_test_problem *made);
/* Elements of an input; all of them times a factor; those of another problem's input. */
int64_t at_norm_count(const struct at_problem *p, const char *name);
void at_norm_scale(struct at_problem *p, const char *name, double factor);
void at_norm_copy(struct at_problem *to, const char *name, const struct at_problem *from, const char *other);

/* One output: n exact values, then n of each model: f32, f32 with fma and four lanes, f64. The caller frees. */
struct at_norm_output {
    int64_t n;
    double *value;
};
struct at_norm_output at_norm_run(const struct at_problem *p, const char *name);
/* factor * a[from ..] == b[to ..], n elements of the value and of each model. */
void at_norm_assert_part(const struct at_norm_output *a, int64_t from, const struct at_norm_output *b, int64_t to,
                         int64_t n, double factor);
/* factor * output `name` of p == output `other` of q. */
void at_norm_assert_outputs(const struct at_problem *p, const char *name, const struct at_problem *q, const char *other,
                            double factor);

#endif
