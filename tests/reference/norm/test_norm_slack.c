/* Norm limits count nothing that does not happen: one rounding constant at a time, where it must have no effect.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "norm/norm.h"
#include "tests/support/norm_problem.h"

/* The limit of y over the exact value with one constant of one stage alone; what is left is the reference's own. */
static double relative_limit(const struct at_problem *p, const struct at_numerics *numerics, enum at_norm_stage stage,
                             int underflow) {
    const struct at_norm_scales right = at_norm_test_scales;
    const int y = at_op_tensor_index(p->op, "y");
    struct at_test_eval exact;
    at_norm_test_scales = (struct at_norm_scales){ 0 };
    (underflow ? at_norm_test_scales.eta : at_norm_test_scales.u)[stage] = 1;
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(p->op->evaluate(p, numerics, 0, 1, &exact.eval));
    at_norm_test_scales = right;
    double limit = exact.eval.limit[y][0] / fabs(exact.eval.value[y][0]);
    at_test_eval_release(&exact);
    return limit;
}

/* The reference's own bound is a few units of double. */
static int is_own(double relative) { return relative <= 0x1p-48; }

/* The rounded sum of two activations is certain, at ties too. */
static void test_rounded_sum_is_certain(void **state) {
    (void)state;
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16 };
    struct at_numerics numerics = at_numerics_default();
    for (int i = 0; i < 3 * 100 * (int)at_test_effort(5); i++) {
        struct at_test_norm_shape shape = { .tokens = 1, .channels = 1, .dtype = formats[i % 3] };
        struct at_test_random random = { (uint64_t)i };
        struct at_test_problem made;
        const double u = at_format_info(shape.dtype)->u;
        at_test_norm_problem(at_op_find(i % 2 ? "add_rms_norm" : "add_uclip_norm"), &shape, &made);
        made.problem.params.hi = 4;
        at_test_set(&made.problem, "x", 0, 1 + 2 * u * at_test_below(&random, 100));
        at_test_set(&made.problem, "res", 0, (1 + 2 * at_test_below(&random, 2)) * u);
        assert_true(is_own(relative_limit(&made.problem, &numerics, AT_NORM_ADD, 0)));
        at_test_problem_release(&made);
    }
}

/* Storing f32 as f32 is no rounding, storing f64 as f32 is one. */
static void test_store_of_the_same_format_is_exact(void **state) {
    (void)state;
    struct at_test_norm_shape shape = { .tokens = 1, .channels = 1, .dtype = AT_F32 };
    struct at_numerics numerics = at_numerics_default();
    struct at_test_problem made;
    at_test_norm_problem(at_op_find("uclip_norm"), &shape, &made);
    at_test_set(&made.problem, "x", 0, 0.75);
    assert_true(is_own(relative_limit(&made.problem, &numerics, AT_NORM_STORE, 0)));
    numerics.qk_unit = AT_UNIT_F64;
    assert_false(is_own(relative_limit(&made.problem, &numerics, AT_NORM_STORE, 0)));
    at_test_problem_release(&made);
}

/* Sums are exact where numbers underflow, and a fused gamma * c is not rounded before beta is added; nothing is added
 * when eps or beta is 0. */
static void test_exact_steps_have_no_rounding(void **state) {
    (void)state;
    static const struct {
        const char *op;
        enum at_norm_stage stage;
        int underflow, fused, nothing_added;
    } exact[] = {
        { "add_uclip_norm", AT_NORM_ADD, 1, 0, 0 }, { "uclip_norm", AT_NORM_SHIFT, 1, 0, 0 },
        { "rms_norm", AT_NORM_EPS, 1, 0, 0 },       { "uclip_norm", AT_NORM_FACTOR, 0, 1, 0 },
        { "rms_norm", AT_NORM_EPS, 0, 0, 1 },       { "uclip_norm", AT_NORM_SHIFT, 0, 0, 1 },
    };
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        const double least = 0x1p-149;
        struct at_test_norm_shape shape = { .tokens = 1, .channels = 1, .dtype = AT_F32 };
        struct at_numerics numerics = at_numerics_default();
        struct at_test_problem made;
        at_test_norm_problem(at_op_find(exact[i].op), &shape, &made);
        struct at_problem *p = &made.problem;
        const int rms = at_test_norm_is_rms(p->op);
        p->params.from = AT_FROM_EXACT;
        p->params.eps = exact[i].nothing_added ? 0 : (float)(3 * least);
        numerics.fir_fma = exact[i].fused;
        at_test_set(p, "x", 0, rms ? 0x1p-70 : 100 * least);
        if (!rms && !exact[i].nothing_added)
            at_test_set(p, "beta", 0, least);
        double limit = relative_limit(p, &numerics, exact[i].stage, exact[i].underflow);
        at_assert_true(is_own(limit), "stage %d: limit %g of the value", (int)exact[i].stage, limit);
        at_test_problem_release(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounded_sum_is_certain),
        cmocka_unit_test(test_store_of_the_same_format_is_exact),
        cmocka_unit_test(test_exact_steps_have_no_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
