/* The norms' reference against the MPFR one, over shapes, data families, parameters and formats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/oracle/norm_mpfr.h"
#include "tests/support/norm_problem.h"

/* What was seen of one operator. */
struct tally {
    long elements, finite, non_finite, undecided;
    double worst;
};

/* Value of the reference, and its own bound: what evaluate() states without numerics. */
static void compare_element(const struct at_problem *problem, int tensor, int64_t i, double value, double bound,
                            double largest, struct tally *tally) {
    const char *name = problem->op->tensors[tensor].name;
    double off;
    const double want = at_norm_mpfr(problem, name, i, value, &off);
    tally->elements++;
    at_assert_true(bound >= 0, "%s of %s: bound %g", name, problem->op->name, bound);
    if (isinf(bound)) { /* the rounding of an intermediate may go either way at the end of the range */
        tally->undecided++;
        return;
    }
    if (!isfinite(want) || !isfinite(value)) {
        at_assert_same(value, want);
        tally->non_finite++;
        return;
    }
    if (!(off <= bound))
        fail_msg("%s %s[%lld]: reference %.17g, oracle %.17g, off by %.3g, own bound %.3g", problem->op->name, name,
                 (long long)i, value, want, off, bound);
    tally->finite++;
    /* a bound beyond 2^-40 of the largest value of the row: the rounding of an intermediate may go either way; one that is
     * next to nothing leaves a zero its sign alone */
    tally->undecided += bound > 0x1p-40 * largest && bound > 1e-100;
    if (bound > 0)
        tally->worst = fmax(tally->worst, off / bound);
}

static void compare(const struct at_problem *problem, struct tally *tally) {
    const struct at_op *op = problem->op;
    struct at_test_eval got;
    at_assert_ok(op->check(problem));
    at_assert_ok(at_test_eval_init(problem, 1, &got));
    at_assert_ok(op->evaluate(problem, NULL, 0, op->rows(problem), &got.eval));
    for (int t = 0; t < op->n_tensors; t++)
        for (int64_t row = 0; op->tensors[t].role != AT_IN && row < op->rows(problem); row++) {
            int64_t first, count;
            double largest = 0;
            op->row_span(problem, t, row, &first, &count);
            assert_true(first == row * count && first + count <= at_test_count(problem, t));
            for (int64_t i = first; i < first + count; i++)
                if (isfinite(got.eval.value[t][i]))
                    largest = fmax(largest, fabs(got.eval.value[t][i]));
            for (int64_t i = first; i < first + count; i++)
                compare_element(problem, t, i, got.eval.value[t][i], got.eval.limit[t][i], largest, tally);
        }
    at_test_eval_release(&got);
}

static void test_random_problems(void **state) {
    (void)state;
    const long n = 150 * at_test_effort(8);
    long non_finite = 0;
    for (int op = 0; op < AT_TEST_NORMS; op++) {
        struct tally tally = { 0 };
        for (long i = 0; i < n; i++) {
            struct at_test_random random = { (uint64_t)(i * AT_TEST_NORMS + op) };
            struct at_test_problem made;
            at_test_norm_draw(at_test_norm_op(op), &random, at_test_norm_is_rms(at_test_norm_op(op)) ? 24 : 40, &made);
            compare(&made.problem, &tally);
            at_test_problem_release(&made);
        }
        print_message("%-24s %6ld outputs: %6ld finite, worst %.3f of the own bound; %5ld not; %4ld undecided\n",
                      at_test_norm_op(op)->name, tally.elements, tally.finite, tally.worst, tally.non_finite,
                      tally.undecided);
        assert_true(tally.finite > 20 * n);
        non_finite += tally.non_finite;
        assert_true(tally.undecided * 50 < tally.elements);
    }
    assert_true(non_finite > n);
}

/* One token, one channel, none of the first; 257 channels; every format and both ways to take the sum. */
static void test_corners(void **state) {
    (void)state;
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16 };
    static const int64_t sizes[][2] = { { 1, 1 }, { 0, 8 }, { 1, 257 }, { 2, 3 }, { 3, 1 } };
    struct tally tally = { 0 };
    for (int op = 0; op < AT_TEST_NORMS; op++)
        for (int c = 0; c < 30; c++) {
            struct at_test_random random = { (uint64_t)c };
            struct at_test_norm_shape shape = { sizes[c / 6][0], sizes[c / 6][1], .dtype = formats[c % 3] };
            struct at_test_problem made;
            at_test_norm_problem(at_test_norm_op(op), &shape, &made);
            made.problem.params.from = c / 3 % 2;
            for (int t = 0; t < made.problem.op->n_tensors; t++)
                for (int64_t i = 0; made.problem.op->tensors[t].role != AT_OUT && i < at_test_count(&made.problem, t);
                     i++)
                    at_test_set(&made.problem, made.problem.op->tensors[t].name, i, at_test_normal(&random));
            compare(&made.problem, &tally);
            at_test_problem_release(&made);
        }
    assert_true(tally.elements == tally.finite && tally.elements > 10000);
}

/* The reference's value and limit of y[i] of a two-channel row, and the oracle's value. */
static void row_of_two(const char *name, double x0, double x1, double res0, int from, double y[2], double limit[2]) {
    struct at_test_norm_shape shape = { .tokens = 1, .channels = 2, .dtype = AT_F16 };
    struct at_numerics numerics = at_numerics_default();
    struct at_test_problem made;
    struct at_test_eval got;
    at_test_norm_problem(at_op_find(name), &shape, &made);
    const int out = at_op_tensor_index(made.problem.op, "y");
    made.problem.params.from = from;
    at_test_set(&made.problem, "x", 0, x0);
    at_test_set(&made.problem, "x", 1, x1);
    if (at_op_tensor_index(made.problem.op, "res") >= 0)
        at_test_set(&made.problem, "res", 0, res0);
    at_assert_ok(at_test_eval_init(&made.problem, 1, &got));
    at_assert_ok(made.problem.op->evaluate(&made.problem, &numerics, 0, 1, &got.eval));
    for (int i = 0; i < 2; i++) {
        y[i] = got.eval.value[out][i];
        limit[i] = got.eval.limit[out][i];
        double want = at_norm_mpfr(&made.problem, "y", i, 0, NULL);
        if (isfinite(want))
            at_assert_within(y[i], want, 1e-14);
        else
            at_assert_same(y[i], want);
    }
    at_test_eval_release(&got);
    at_test_problem_release(&made);
}

/* An infinite input is 0 beside it and NaN where it stands, a NaN is NaN everywhere; these classes are certain, so the
 * limit is 0. So is a residual sum that f16 rounds to infinity, and one that it does not is a number. */
static void test_classes_of_rms_rows(void **state) {
    (void)state;
    double y[2], limit[2];
    row_of_two("rms_norm", 3, INFINITY, 0, 0, y, limit);
    assert_true(y[0] == 0 && isnan(y[1]) && limit[0] == 0 && limit[1] == 0);
    row_of_two("rms_norm", 3, NAN, 0, 0, y, limit);
    assert_true(isnan(y[0]) && isnan(y[1]) && limit[0] == 0 && limit[1] == 0);
    row_of_two("add_rms_norm", INFINITY, 1, -INFINITY, 0, y, limit);
    assert_true(isnan(y[0]) && isnan(y[1]) && limit[0] == 0 && limit[1] == 0);
    row_of_two("add_rms_norm", 1, NAN, 0x1p-20, AT_FROM_EXACT, y, limit); /* an addend's error makes no doubt */
    assert_true(isnan(y[0]) && isnan(y[1]) && limit[0] == 0 && limit[1] == 0);
    row_of_two("add_rms_norm", 65504, 1, 16, AT_FROM_ROUNDED, y, limit); /* the tie to infinity */
    assert_true(isnan(y[0]) && y[1] == 0 && limit[0] == 0 && limit[1] == 0);
    row_of_two("add_rms_norm", 65504, 1, 15.9921875, AT_FROM_ROUNDED, y, limit);
    assert_true(isfinite(y[0]) && y[1] > 0 && isfinite(limit[0]) && limit[1] > 0);
    row_of_two("add_rms_norm", 65504, 1, 16, AT_FROM_EXACT, y, limit);
    assert_true(isfinite(y[0]) && y[1] > 0 && isfinite(limit[0]) && limit[1] > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_classes_of_rms_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
