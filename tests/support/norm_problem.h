/* Norm problems for tests: random shapes, data families, parameters and declarations.
 * SPDX-License-Identifier: Apache-2.0
 *
 * at_test_get, at_test_set, at_test_eval_init and the like of attention_problem.h work on them. */
#ifndef AT_TEST_NORM_PROBLEM_H
#define AT_TEST_NORM_PROBLEM_H

#include "tests/support/attention_problem.h"

enum { AT_TEST_NORMS = 7 };
/* uclip_norm, add_uclip_norm, qk_uclip_norm, rms_norm, post_attn_pre_mlp_uclip, add_rms_norm, and the last but one in place. */
const struct at_op *at_test_norm_op(int i);
int at_test_norm_is_rms(const struct at_op *op);

/* channels is d for the norm of q and k; h, hk left 0 mean 2 and 1. */
struct at_test_norm_shape {
    int64_t tokens, channels, h, hk;
    enum at_format dtype;
    int one_gamma; /* the norm of q and k: gamma_per=tensor */
};
/* Activations 0, alpha and gamma 1, beta 0, default parameters. Released with at_test_problem_release. */
void at_test_norm_problem(const struct at_op *op, const struct at_test_norm_shape *shape, struct at_test_problem *out);

/* A random problem of up to max_channels channels: all activation types; data of every family and then, at times,
 * bent to wide exponents, the ends of the range, swamped sums, or one odd element; parameters mild, wide or exact. */
void at_test_norm_draw(const struct at_op *op, struct at_test_random *random, int max_channels,
                       struct at_test_problem *out);
/* A random declaration that norms take: unit, lanes, run, tree, fused or not, both clamps, each rsqrt. */
struct at_numerics at_test_norm_numerics(struct at_test_random *random);

/* y of a row of at most 256 channels by another right kernel: f32, squares in channel order by fma, and an rsqrt as far
 * from the inverse root as rsqrt=rsqrt_approx allows, up (direction 1) or down (-1). */
void at_test_rms_kernel(int64_t n, const float *x, const float *gamma, float eps, int direction, float *y);

#endif
