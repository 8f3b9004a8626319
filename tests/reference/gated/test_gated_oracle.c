/* The gated products' reference against the MPFR one: values of every size, both layouts, every format; classes by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/oracle/gated_mpfr.h"
#include "tests/support/built_case.h"
#include "tests/support/gated_problem.h"

static const char *const operators[] = { "silu_mul", "reglu" };

struct tally {
    long elements, finite, non_finite;
    double worst;
};

static void compare(const struct at_problem *p, struct tally *tally) {
    struct at_test_eval got;
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 1, &got));
    at_assert_ok(p->op->evaluate(p, NULL, 0, p->op->rows(p), &got.eval));
    for (int64_t i = 0; i < at_test_count(p, AT_GATED_Y); i++) {
        const double value = got.eval.value[AT_GATED_Y][i], bound = got.eval.limit[AT_GATED_Y][i];
        double off;
        const double want = at_gated_mpfr(p, i, value, &off);
        tally->elements++;
        assert_true(bound >= 0);
        if (!isfinite(want) || !isfinite(value)) {
            at_assert_same(value, want);
            tally->non_finite++;
            continue;
        }
        at_assert_true(off <= bound, "%s: y[%lld] is %.17g, oracle %.17g, own bound %g", p->op->name, (long long)i,
                       value, want, bound);
        tally->finite++;
        if (bound > 0)
            tally->worst = fmax(tally->worst, off / bound);
    }
    at_test_eval_release(&got);
}

static void test_random_problems(void **state) {
    (void)state;
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16 };
    const long n = 60 * at_test_effort(10);
    for (int o = 0; o < 2; o++) {
        struct tally tally = { 0 };
        for (long k = 0; k < n; k++) {
            struct at_test_random random = { (uint64_t)(2 * k + o) };
            struct at_test_problem made;
            at_test_gated_problem(operators[o], (enum at_halves)(k % 2), formats[k % 3], 1 + at_test_below(&random, 4),
                                  1 + at_test_below(&random, 30), &made);
            for (int64_t i = 0; i < made.problem.sizes.tokens * made.problem.sizes.channels; i++)
                at_test_gated_set(&made.problem, i, at_test_gated_draw(&random), at_test_gated_draw(&random));
            compare(&made.problem, &tally);
            at_test_problem_release(&made);
        }
        print_message("%-9s %6ld outputs: %6ld finite, worst %.3f of the own bound; %5ld not\n", operators[o],
                      tally.elements, tally.finite, tally.worst, tally.non_finite);
        assert_true(tally.finite > 10 * n && tally.non_finite > n);
    }
}

/* What cases fill is read as the operator says: both layouts, no rows, one channel. */
static void test_cases(void **state) {
    (void)state;
    static const char *const lines[] = {
        "silu_mul tokens=9 channels=33 data=nonfinite dtype=f16",
        "silu_mul tokens=9 channels=33 halves=together data=random_bits dtype=f32",
        "silu_mul tokens=2 channels=1 halves=together dtype=bf16",
        "reglu tokens=9 channels=33 data=nonfinite dtype=bf16",
        "reglu tokens=9 channels=33 halves=together data=heavy_tail dtype=f16",
        "reglu tokens=0 channels=5 halves=together",
    };
    struct tally tally = { 0 };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct at_built_case built = at_build_line(lines[i]);
        compare(&built.data.problem, &tally);
        at_drop_case(&built);
    }
    assert_true(tally.elements == 4 * 9 * 33 + 2);
}

/* The documented rule for what is not finite; each class is certain: its limit is 0. */
static void test_classes(void **state) {
    (void)state;
    const double inf = (double)INFINITY, nan = (double)NAN;
    const struct {
        const char *op;
        double gate, up, want;
    } rows[] = {
        { "silu_mul", inf, 2, inf },   { "silu_mul", -inf, 2, nan },  { "silu_mul", nan, 0, nan },
        { "silu_mul", 1, -inf, -inf }, { "silu_mul", -1, -inf, inf }, { "silu_mul", 0, inf, nan },
        { "silu_mul", inf, 0, nan },   { "silu_mul", 1, nan, nan },   { "silu_mul", -2000, inf, -inf },
        { "reglu", inf, 2, inf },      { "reglu", -inf, 2, 0 },       { "reglu", nan, 2, nan },
        { "reglu", -1, inf, nan },     { "reglu", 0, inf, nan },      { "reglu", 1, -inf, -inf },
        { "reglu", -1, nan, nan },     { "reglu", -0.0, 3, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct at_test_problem made;
        struct at_test_eval got;
        at_test_gated_problem(rows[i].op, AT_HALVES_TOGETHER, AT_F32, 1, 1, &made);
        at_test_gated_set(&made.problem, 0, rows[i].gate, rows[i].up);
        at_assert_ok(at_test_eval_init(&made.problem, 1, &got));
        at_assert_ok(made.problem.op->evaluate(&made.problem, NULL, 0, 1, &got.eval));
        at_assert_same(got.eval.value[AT_GATED_Y][0], rows[i].want);
        at_assert_same(got.eval.limit[AT_GATED_Y][0], 0);
        at_test_eval_release(&got);
        at_test_problem_release(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
