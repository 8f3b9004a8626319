/* The product's reference against exact sums, over shapes, data families, scales and formats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/oracle/gemm_mpfr.h"
#include "tests/support/gemm_problem.h"

struct tally {
    long finite, non_finite;
    double worst; /* of the reference's own bound */
};

static void compare(const struct at_problem *p, struct tally *tally) {
    struct at_test_eval got;
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 1, &got));
    at_assert_ok(p->op->evaluate(p, NULL, 0, p->op->rows(p), &got.eval));
    for (int64_t i = 0; i < at_test_count(p, AT_GEMM_D); i++) {
        const double value = got.eval.value[AT_GEMM_D][i], bound = got.eval.limit[AT_GEMM_D][i];
        double off;
        const double want = at_gemm_mpfr(p, i, value, &off);
        at_assert_true(bound >= 0 && isfinite(bound), "d[%lld]: bound %g", (long long)i, bound);
        if (!isfinite(want) || !isfinite(value)) {
            at_assert_true((isnan(want) && isnan(value)) || want == value, "d[%lld]: %g, wanted %g", (long long)i,
                           value, want);
            at_assert_same(bound, 0.0);
            tally->non_finite++;
            continue;
        }
        at_assert_true(off <= bound, "d[%lld] of %s: reference %.17g, oracle %.17g, off by %.3g, own bound %.3g",
                       (long long)i, at_format_info(p->dtype)->name, value, want, off, bound);
        tally->finite++;
        if (bound > 0)
            tally->worst = fmax(tally->worst, off / bound);
    }
    at_test_eval_release(&got);
}

/* What follows the sum: scales, bias, and the largest magnitude of the elements that the oracle gives. */
static void test_scales_bias_amax(void **state) {
    (void)state;
    const long n = 1500 * at_test_effort(8);
    struct tally tally = { 0 };
    long maxima = 0, not_finite = 0;
    for (long i = 0; i < n; i++) {
        struct at_test_random random = { (uint64_t)i };
        struct at_test_problem made;
        struct at_test_eval got;
        at_test_gemm_draw_all(&random, 40, &made);
        const struct at_problem *p = &made.problem;
        compare(p, &tally);
        assert_int_equal(p->op->rows(p), at_gemm_own_of(p).m + at_gemm_own_of(p).amax);
        if (at_gemm_own_of(p).amax) {
            double most = 0;
            for (int64_t e = 0; e < at_test_count(p, AT_GEMM_D); e++) {
                const double size = fabs(at_gemm_mpfr(p, e, 0, NULL));
                most = isnan(size) || isnan(most) ? (double)NAN : fmax(most, size);
            }
            at_assert_ok(at_test_eval_init(p, 1, &got));
            at_assert_ok(p->op->evaluate(p, NULL, at_gemm_own_of(p).m, at_gemm_own_of(p).m + 1, &got.eval));
            const double value = got.eval.value[AT_GEMM_AMAX][0], bound = got.eval.limit[AT_GEMM_AMAX][0];
            at_assert_true(isfinite(most) ? fabs(value - most) <= bound * (1 + 0x1p-40)
                                          : (isnan(most) && isnan(value)) || value == most,
                           "amax %.17g, wanted %.17g, own bound %.3g", value, most, bound);
            maxima++;
            not_finite += !isfinite(most);
            at_test_eval_release(&got);
        }
        at_test_problem_release(&made);
    }
    print_message("%ld finite, worst %.3f of the own bound; %ld maxima, %ld not finite\n", tally.finite, tally.worst,
                  maxima, not_finite);
    assert_true(maxima > n / 3 && not_finite > n / 50 && tally.worst > 0.01);
}

static void test_random_problems(void **state) {
    (void)state;
    const long n = 1500 * at_test_effort(8);
    struct tally tally = { 0 };
    for (long i = 0; i < n; i++) {
        struct at_test_random random = { (uint64_t)i };
        struct at_test_problem made;
        at_test_gemm_draw(&random, 80, &made);
        compare(&made.problem, &tally);
        struct at_test_problem turned;
        at_test_gemm_turned(&made.problem, &turned);
        compare(&turned.problem, &tally);
        at_test_problem_release(&turned);
        at_test_problem_release(&made);
    }
    print_message("%ld finite, worst %.3f of the own bound; %ld not\n", tally.finite, tally.worst, tally.non_finite);
    assert_true(tally.finite > 5 * n && tally.non_finite > n / 10 && tally.worst > 0.01);
}

/* No rows at all; one element of one product; rows of any range are those of the whole. */
static void test_corners(void **state) {
    (void)state;
    struct tally tally = { 0 };
    struct at_test_problem made;
    struct at_test_gemm_shape none = { 0, 3, 5, AT_E4M3, AT_F16, 0 }, one = { 1, 1, 1, AT_F16, AT_F32, 3 };
    at_test_gemm_problem(&none, &made);
    compare(&made.problem, &tally);
    assert_true(tally.finite == 0 && made.problem.op->rows(&made.problem) == 0);
    at_test_problem_release(&made);
    at_test_gemm_problem(&one, &made);
    at_test_set(&made.problem, "a", 0, -0.5);
    at_test_set(&made.problem, "b", 0, 7);
    compare(&made.problem, &tally);
    assert_true(tally.finite == 1);
    at_test_problem_release(&made);
    for (int layout = AT_GEMM_NK; layout <= AT_GEMM_KN; layout++) { /* a sum of nothing is 0; no columns at all */
        struct at_test_gemm_shape sums = { 2, 3, 0, AT_BF16, AT_F32, 3, (enum at_gemm_layout)layout }, columns = sums;
        columns.n = 0, columns.k = 3;
        tally = (struct tally){ 0 };
        at_test_gemm_problem(&sums, &made);
        compare(&made.problem, &tally);
        assert_true(tally.finite == 6 && tally.worst == 0);
        at_test_problem_release(&made);
        at_test_gemm_problem(&columns, &made);
        compare(&made.problem, &tally);
        assert_true(tally.finite == 6);
        at_test_problem_release(&made);
    }

    struct at_test_random random = { 5 };
    struct at_test_eval whole, part;
    at_test_gemm_draw(&random, 40, &made);
    const struct at_problem *p = &made.problem;
    at_assert_ok(at_test_eval_init(p, 1, &whole));
    at_assert_ok(at_test_eval_init(p, 1, &part));
    at_assert_ok(p->op->evaluate(p, NULL, 0, at_gemm_own_of(p).m, &whole.eval));
    for (int64_t row = at_gemm_own_of(p).m; row-- > 0;)
        at_assert_ok(p->op->evaluate(p, NULL, row, row + 1, &part.eval));
    for (int64_t i = 0; i < at_gemm_own_of(p).m * at_gemm_own_of(p).n; i++) {
        at_assert_same(part.eval.value[AT_GEMM_D][i], whole.eval.value[AT_GEMM_D][i]);
        at_assert_same(part.eval.limit[AT_GEMM_D][i], whole.eval.limit[AT_GEMM_D][i]);
    }
    at_test_eval_release(&whole);
    at_test_eval_release(&part);
    at_test_problem_release(&made);
}

static void set_size(struct at_problem *p, const char *name, double value) {
    at_scalar_set(p, at_op_scalar(p->op, name), value);
}

/* What is no problem of the operator is refused by name. */
static void test_refusals(void **state) {
    (void)state;
    struct at_test_problem made;
    struct at_test_gemm_shape shape = { 2, 3, 5, AT_F16, AT_F16, 0 };
    at_test_gemm_problem(&shape, &made);
    const struct at_problem good = made.problem;
    struct at_problem *p = &made.problem;
#define REFUSED(change, part) \
    do { \
        *p = good; \
        change; \
        at_assert_fails(p->op->check(p), AT_USAGE, part); \
    } while (0)
    REFUSED(set_size(p, "m", -1), "m, n, k are -1, 3, 5");
    REFUSED(set_size(p, "n", -1), "m, n, k are 2, -1, 5");
    REFUSED(set_size(p, "k", -1), "m, n, k are 2, 3, -1");
    REFUSED(set_size(p, "layout", 2), "layout 2 with b_rows 3 and w_columns 0");
    REFUSED(set_size(p, "b_rows", 0), "layout 0 with b_rows 0");
    REFUSED(set_size(p, "w_columns", 3), "w_columns 3, wanted 0, 3, 0 or 1, 0, 3");
    REFUSED(set_size(p, "bias", 3), "bias 3 of 0 columns");
    REFUSED(set_size(p, "bias", AT_GEMM_BIAS_F32), "bias 2 of 0 columns, scales 0, amax 0, wanted 0 to 2 of 3");
    REFUSED(set_size(p, "scales", 2), "scales 2");
    REFUSED(set_size(p, "amax", 2), "amax 2");
    REFUSED(set_size(p, "scales", 1), "tensor scale_a has 0 elements of f32, wanted 1 of f32");
    REFUSED(p->dtype = AT_TF32, "dtype is");
    REFUSED(set_size(p, "out", AT_E4M3), "out is");
    REFUSED(p->params.scale = (float)INFINITY, "scale is inf");
    REFUSED(set_size(p, "k", 6), "tensor a has 10 elements of f16, wanted 12 of f16");
    REFUSED(p->tensors[AT_GEMM_B].format = AT_BF16, "tensor b has 15 elements of bf16");
    REFUSED(p->tensors[AT_GEMM_B].data = NULL, "tensor b has");
    *p = good;
    at_assert_ok(p->op->check(p));
    at_test_problem_release(&made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_scales_bias_amax),
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
