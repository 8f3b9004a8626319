/* The AsyncT reference against the MPFR one, over shapes, layouts, parameters and formats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/oracle/asynct_mpfr.h"
#include "tests/support/asynct_parameters.h"

/* Random shape of a few hundred outputs. */
static struct at_test_shape random_shape(struct at_test_random *random) {
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16 };
    struct at_test_shape shape = { .b = 1 + at_test_below(random, 3),
                                   .hk = 1 + at_test_below(random, 2),
                                   .d = 1 + at_test_below(random, 8),
                                   .page = at_test_below(random, 2) ? 1 + at_test_below(random, 4) : 0,
                                   .taps = 1 + at_test_below(random, 5),
                                   .causal = at_test_below(random, 2),
                                   .max_sq = 4,
                                   .max_sk = 12,
                                   .dtype = formats[at_test_below(random, 3)],
                                   .fill = (enum at_test_fill)at_test_below(random, 4) };
    shape.h = shape.hk * (1 + at_test_below(random, 3));
    return shape;
}

/* Every output within the reference's own bound, and that bound no larger than `largest`. */
static void compare(const struct at_problem *problem, double largest) {
    struct at_test_eval got;
    const struct at_sizes *s = &problem->sizes;
    at_assert_ok(problem->op->check(problem));
    at_assert_ok(at_test_eval_init(problem, 1, &got));
    at_assert_ok(problem->op->evaluate(problem, NULL, 0, problem->op->rows(problem), &got.eval));
    for (int64_t i = 0; i < s->tokens * s->h * s->d; i++) {
        double want = at_asynct_mpfr(problem, i / s->d / s->h, i / s->d % s->h, i % s->d);
        double bound = got.eval.limit[AT_ASYNCT_O][i];
        if (isnan(want)) {
            at_assert_same(got.eval.value[AT_ASYNCT_O][i], want);
            continue;
        }
        at_assert_within(got.eval.value[AT_ASYNCT_O][i], want, bound);
        at_assert_true(bound <= largest, "bound %g of element %lld", bound, (long long)i);
    }
    at_test_eval_release(&got);
}

static void test_random_shapes(void **state) {
    (void)state;
    long n = 100 * at_test_effort(6), elements = 0;
    for (long i = 0; i < n; i++) {
        struct at_test_random random = { (uint64_t)i };
        struct at_test_shape shape = random_shape(&random);
        struct at_test_problem made;
        at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, (uint64_t)i, &made));
        at_test_asynct_parameters(&random, &made.problem);
        /* inputs up to 2^10 and no upper end of the gate: outputs up to 2^35 or so */
        compare(&made.problem, shape.fill == AT_TEST_WIDE ? 1e-4 : 1e-10);
        elements += at_test_count(&made.problem, AT_ASYNCT_O);
        at_test_problem_release(&made);
    }
    print_message("compared %ld outputs of %ld problems\n", elements, n);
    assert_true(elements > 20 * n);
}

/* Named corners: prefix, sk < sq, empty requests in every position, one of everything. */
static void test_corners(void **state) {
    (void)state;
    static const int one[] = { 1, 1 }, four[] = { 4, 2 }, nine[] = { 9, 7 }, none[] = { 0, 0 }, mixed[] = { 0, 3 };
    const struct at_test_shape shapes[] = {
        { .b = 2, .h = 2, .d = 4, .sq = four, .sk = nine, .causal = 1, .dtype = AT_BF16 },
        { .b = 2, .h = 2, .d = 4, .sq = nine, .sk = four, .causal = 1, .dtype = AT_F16 },
        { .b = 2, .h = 4, .hk = 2, .d = 3, .sq = one, .sk = nine, .page = 4, .dtype = AT_F32 },
        { .b = 2, .h = 1, .d = 5, .sq = mixed, .sk = nine, .page = 16, .dtype = AT_F16 },
        { .b = 2, .h = 1, .d = 5, .sq = four, .sk = mixed, .page = 2, .dtype = AT_BF16 },
        { .b = 2, .h = 3, .d = 2, .sq = four, .sk = none, .dtype = AT_F32 },
        { .b = 2, .h = 3, .d = 2, .sq = none, .sk = none, .page = 8, .dtype = AT_F32 },
        { .b = 1, .h = 1, .d = 1, .sq = one, .sk = one, .causal = 1, .taps = 1, .dtype = AT_F32 },
        { .b = 0, .h = 1, .d = 1, .dtype = AT_F32 },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct at_test_problem made;
        at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shapes[i], i, &made));
        compare(&made.problem, 1e-12);
        at_test_problem_release(&made);
    }
}

/* Infinite and NaN scores reach exactly the outputs that see a key within K - 1 of them; non-finite V only
 * where p is not 0. */
static void test_non_finite(void **state) {
    (void)state;
    static const int sq[] = { 6 }, sk[] = { 8 };
    static const double bad[] = { NAN, INFINITY, -INFINITY };
    struct at_test_shape shape = { .b = 1, .h = 2, .d = 4, .sq = sq, .sk = sk, .causal = 1, .dtype = AT_F16 };
    for (int i = 0; i < 3; i++)
        for (int where = 0; where < 2; where++) {
            struct at_test_problem made;
            struct at_test_eval got;
            int nans = 0;
            at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, 5, &made));
            at_test_set(&made.problem, where ? "v" : "k", 5 * 8 + 1, bad[i]); /* key 5, head 0 */
            at_assert_ok(at_test_eval_init(&made.problem, 0, &got));
            at_assert_ok(at_asynct_evaluate(&made.problem, NULL, 0, 12, &got.eval));
            for (int64_t e = 0; e < 6 * 8; e++) {
                double want = at_asynct_mpfr(&made.problem, e / 8, e / 4 % 2, e % 4);
                nans += !isfinite(want);
                if (isfinite(want))
                    at_assert_within(got.eval.value[AT_ASYNCT_O][e], want, 1e-14);
                else
                    at_assert_same(got.eval.value[AT_ASYNCT_O][e], want);
            }
            /* queries 3, 4 and 5 see key 5, all four channels; of V one channel, where p is not 0 */
            assert_true(where ? nans >= 1 && nans <= 3 : nans == 12);
            at_test_eval_release(&got);
            at_test_problem_release(&made);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_non_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
