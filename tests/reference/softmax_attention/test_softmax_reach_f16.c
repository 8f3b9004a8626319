/* Is the softmax limit slack where a factor or a reciprocal is rounded to f16: for each constant of struct at_softmax_limit
 * that says so an input whose error is more than half of the limit with that constant alone (test_softmax_reach.c: the
 * others).
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "softmax_attention/softmax_attention.h"
#include "tests/support/attention_problem.h"

/* One request, one query, one head of one channel, n contiguous keys with equal scores of 0; V is 0 but for the first
 * key's, which is v. */
static void make(int64_t n, enum at_format dtype, double v, struct at_test_problem *p) {
    const int sq = 1, sk = (int)n;
    const struct at_test_shape shape = { .b = 1, .d = 1, .sq = &sq, .sk = &sk, .dtype = dtype };
    at_assert_ok(at_test_attention_problem(&at_op_softmax_attention, &shape, 1, p));
    at_test_set_all(&p->problem, "q", 1);
    at_test_set_all(&p->problem, "k", 0);
    at_test_set_all(&p->problem, "v", 0);
    at_test_set(&p->problem, "v", 0, v);
    p->problem.params.scale = 1;
}

enum stage { RESCALE, FACTOR, DIVIDE, SUBNORMAL, OUT };

/* The limit with every constant 0 but those of the stage. */
static struct at_softmax_limit only(const struct at_softmax_limit *all, enum stage stage) {
    struct at_softmax_limit one = { .declared = 1,
                                    .scale_on = all->scale_on,
                                    .d = all->d,
                                    .split = all->split,
                                    .splits = all->splits,
                                    .block = all->block,
                                    .qk = all->qk,
                                    .pv = all->pv,
                                    .scale = all->scale };
    one.q_end = one.qk_end = one.score_end = one.pv_end = one.out_end = INFINITY;
    one.u_rescale = stage == RESCALE ? all->u_rescale : 0;
    one.u_out = stage == RESCALE || stage == OUT ? all->u_out : 0; /* o is as coarse as the sum */
    one.eta_factor = stage == FACTOR ? all->eta_factor : 0;
    one.u_divide = stage == DIVIDE ? all->u_divide : 0;
    one.eta_reciprocal = stage == SUBNORMAL ? all->eta_reciprocal : 0;
    return one;
}

/* Error of the model's o over the limit of that stage alone. Releases p. */
static double reached(struct at_test_problem *p, const char *text, enum stage stage) {
    struct at_numerics numerics;
    struct at_softmax_limit all, one;
    struct at_test_eval exact, model;
    at_assert_ok(at_numerics_parse(text, &numerics));
    at_assert_ok(at_softmax_limit_init(&p->problem, &numerics, &all));
    one = only(&all, stage);
    at_assert_ok(at_test_eval_init(&p->problem, 1, &exact));
    at_assert_ok(at_test_eval_init(&p->problem, 0, &model));
    at_assert_ok(at_softmax_evaluate_with(&p->problem, &one, 0, 1, &exact.eval));
    at_assert_ok(at_op_softmax_attention.model(&p->problem, &numerics, 0, 1, &model.eval));
    const double error = fabs(model.eval.value[AT_SOFTMAX_O][0] - exact.eval.value[AT_SOFTMAX_O][0]);
    const double ratio = error / exact.eval.limit[AT_SOFTMAX_O][0];
    at_test_eval_release(&exact);
    at_test_eval_release(&model);
    at_test_problem_release(p);
    return ratio;
}

static void expect(const char *what, double ratio) {
    print_message("%.3f  %s\n", ratio, what);
    at_assert_true(ratio > 0.5 && ratio <= 1.01, "%s reaches %g of its limit", what, ratio);
}

/* v, rescaled by `factor` when the second sixteen keys raise the maximum. */
static double rescaled(double factor, double v, enum stage stage) {
    struct at_test_problem p;
    make(32, AT_F16, v, &p);
    p.problem.params.scale = (float)(-log(factor));
    for (int64_t t = 1; t < 32; t++)
        at_test_set(&p.problem, "k", t, t == 16 ? 1 : -2000);
    return reached(&p, "qk_unit=f32_fma pv_unit=tc_f16 pv_chunk=16 p=f16 block=16 rescale=f16", stage);
}

/* A factor that is rounded down by nearly half a unit, and a sum that makes the product be rounded down likewise; then one
 * that is rounded to 0. Of o, which is f16 too, some are rounded the same way. */
static void test_factor(void **state) {
    (void)state;
    double best = 0;
    for (int k = 1; k < 8; k++)
        best = fmax(best, rescaled(ldexp(1 + 22 * 0x1p-10 + 0.99 * 0x1p-11, -k), 1 + 22 * 0x1p-10, RESCALE));
    expect("factor of f16", best);
    expect("factor of f16 that is 0", rescaled(0.99 * 0x1p-25, 60000, FACTOR));
}

static double divided(int64_t n, enum at_format dtype, double v, enum stage stage) {
    struct at_test_problem p;
    make(n, dtype, v, &p);
    return reached(&p, "qk_unit=f32_fma pv_unit=f32_fma divide=reciprocal_f16", stage);
}

/* The reciprocal alone, for the product with 1 is exact; one below the normal numbers; the product's rounding. */
static void test_reciprocal(void **state) {
    (void)state;
    double best = 0;
    for (int64_t n = 3; n < 130; n++)
        best = fmax(best, divided(n, AT_F16, 1, DIVIDE));
    expect("reciprocal of f16", best);
    expect("subnormal reciprocal", divided(40000, AT_F16, 1, SUBNORMAL));
    expect("product rounded to f16", divided(2, AT_F32, 1 + 0.999 * 0x1p-11, OUT));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factor),
        cmocka_unit_test(test_reciprocal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
