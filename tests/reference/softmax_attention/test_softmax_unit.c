/* The constants of softmax limits that stand for the special-function unit, beside the unit's own errors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "softmax_attention/softmax_attention.h"
#include "special/special.h"
#include "tests/support/attention_problem.h"

static struct at_softmax_limit limit_of(const char *text) {
    struct at_numerics numerics;
    struct at_softmax_limit limit;
    struct at_test_problem p;
    const int one = 1;
    const struct at_test_shape shape = { .b = 1, .d = 1, .sq = &one, .sk = &one, .dtype = AT_F32 };
    at_assert_ok(at_test_attention_problem(&at_op_softmax_attention, &shape, 1, &p));
    at_assert_ok(at_numerics_parse(text, &numerics));
    at_assert_ok(at_softmax_limit_init(&p.problem, &numerics, &limit));
    at_test_problem_release(&p);
    return limit;
}

static void comes_near(const char *what, double most, double limit) {
    print_message("%.4f  %s\n", most / limit, what);
    at_assert_true(most > 0.97 * limit && most <= limit, "%s: %g, limit %g", what, most, limit);
}

/* The errors of the special-function unit on every 97th number between 2^-126 and 2^126 beside the constants of limits: what
 * is left to each is the error over all of them, which is a little more. */
static void test_unit(void **state) {
    (void)state;
    const struct at_softmax_limit limit = limit_of("exp=ex2_approx divide=rcp_approx lse=lg2_approx"),
                                  poly3 = limit_of("exp=ex2_approx ex2_poly3=8");
    const double u = 0x1p-24;
    double ex2 = 0, rcp = 0, lg2_near = 0, lg2_far = 0, polynomial = 0;
    for (uint32_t code = 0x00800000; code < 0x7e800000; code += 97) {
        float x;
        memcpy(&x, &code, sizeof x);
        const double r = at_special_value(AT_SPECIAL_rcp, 0, (double)x), t = log2((double)x),
                     l = fabs(at_special_value(AT_SPECIAL_lg2, 0, (double)x) - t);
        rcp = fmax(rcp, fabs(r * (double)x - 1));
        if (x >= 0.5f && x <= 2)
            lg2_near = fmax(lg2_near, l);
        else
            lg2_far = fmax(lg2_far, l / fabs(t));
        for (int sign = -1; sign <= 1 && x < 126; sign += 2) {
            const double y = exp2((double)(sign * x));
            ex2 = fmax(ex2, fabs(at_special_value(AT_SPECIAL_ex2, 0, (double)(sign * x)) / y - 1));
            polynomial = fmax(polynomial, fabs((double)at_softmax_ex2_poly3(sign * x) / y - 1));
        }
    }
    comes_near("ex2.approx", ex2, limit.u_exp);
    comes_near("the polynomial", polynomial, poly3.u_weight);
    comes_near("rcp.approx and a product", (1 + rcp) * (1 + u) - 1, limit.u_divide);
    comes_near("lg2.approx near 1", lg2_near * log(2.0), limit.log_floor);
    comes_near("lg2.approx times log(2)", lg2_far + u + fabs((double)0x1.62e43p-1f / log(2.0) - 1), limit.u_log);
}

/* f32(m b) of the only block stays in lse, up to half a unit of |m|. */
static void test_shift_of_lse(void **state) {
    (void)state;
    const double u_max = limit_of("exp=ex2_approx exp_arg=fma").u_max;
    double best = 0;
    for (int j = 0; j < 200; j++) {
        const float m = 44.4f + (float)j * 1e-4f, b = 0x1.715476p0f;
        best = fmax(best, fabs((double)(m * b) - (double)m * (double)b) * log(2.0) / (double)m);
    }
    comes_near("the maximum's rounding in lse", best, u_max); /* m b lies just above 2^6 */
}

/* A sigmoid is no exponential: neither limit nor model. */
static void test_sigmoid_refused(void **state) {
    (void)state;
    struct at_numerics numerics;
    struct at_test_eval eval;
    struct at_test_problem p;
    const int one = 1;
    const struct at_test_shape shape = { .b = 1, .d = 1, .sq = &one, .sk = &one, .dtype = AT_F32 };
    at_assert_ok(at_test_attention_problem(&at_op_softmax_attention, &shape, 1, &p));
    at_assert_ok(at_test_eval_init(&p.problem, 1, &eval));
    at_assert_ok(at_numerics_parse("exp=tanh_approx", &numerics));
    at_assert_fails(at_op_softmax_attention.evaluate(&p.problem, &numerics, 0, 1, &eval.eval), AT_UNSUPPORTED,
                    "no exponential");
    at_assert_fails(at_op_softmax_attention.model(&p.problem, &numerics, 0, 1, &eval.eval), AT_UNSUPPORTED,
                    "no exponential");
    at_test_eval_release(&eval);
    at_test_problem_release(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unit),
        cmocka_unit_test(test_sigmoid_refused),
        cmocka_unit_test(test_shift_of_lse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
