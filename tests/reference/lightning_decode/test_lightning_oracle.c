/* Lightning decode's reference against exact sums, over shapes, data families, slopes and formats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/oracle/lightning_mpfr.h"
#include "tests/support/lightning_problem.h"

struct tally {
    long finite, non_finite, unknown;
    double worst; /* of the reference's own bound */
};

static void compare_element(const struct at_problem *p, int t, int64_t i, double value, double bound,
                            struct tally *tally) {
    double off;
    const double want = at_lightning_mpfr(p, t, i, value, &off);
    at_assert_true(bound >= 0, "%s[%lld]: bound %g", p->op->tensors[t].name, (long long)i, bound);
    if (isinf(bound)) {
        tally->unknown++;
        return;
    }
    if (!isfinite(want) || !isfinite(value)) {
        at_assert_true((isnan(want) && isnan(value)) || want == value, "%s[%lld]: %g, wanted %g",
                       p->op->tensors[t].name, (long long)i, value, want);
        tally->non_finite++;
        return;
    }
    at_assert_true(off <= bound, "%s[%lld]: reference %.17g, oracle %.17g, off by %.3g, own bound %.3g",
                   p->op->tensors[t].name, (long long)i, value, want, off, bound);
    tally->finite++;
    if (bound > 0)
        tally->worst = fmax(tally->worst, off / bound);
}

static void compare(const struct at_problem *p, struct tally *tally) {
    struct at_test_eval got;
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 1, &got));
    at_assert_ok(p->op->evaluate(p, NULL, 0, p->op->rows(p), &got.eval));
    for (int t = AT_LIGHTNING_KV; t <= AT_LIGHTNING_O; t++)
        for (int64_t i = 0; i < at_test_count(p, t); i++)
            compare_element(p, t, i, got.eval.value[t][i], got.eval.limit[t][i], tally);
    at_test_eval_release(&got);
}

static void test_random_problems(void **state) {
    (void)state;
    const long n = 150 * at_test_effort(4);
    struct tally tally = { 0 };
    for (long i = 0; i < n; i++) {
        struct at_test_random random = { (uint64_t)i };
        struct at_built_case built = at_test_lightning_draw(&random, 20);
        compare(&built.data.problem, &tally);
        at_drop_case(&built);
    }
    print_message("%ld finite, worst %.3f of the own bound; %ld not; %ld unknown\n", tally.finite, tally.worst,
                  tally.non_finite, tally.unknown);
    assert_true(tally.finite > 10 * n && tally.non_finite > n / 10 && tally.worst > 0.2);
    assert_true(tally.unknown < tally.finite / 100);
}

/* No requests; rows of any range are those of the whole; answers of a step do not depend on those behind it. */
static void test_corners(void **state) {
    (void)state;
    struct tally tally = { 0 };
    struct at_built_case none = at_build_line("lightning_decode b=0 h=3 d=5 e=2");
    assert_int_equal(none.data.problem.op->rows(&none.data.problem), 0);
    compare(&none.data.problem, &tally);
    assert_int_equal(tally.finite, 0);
    at_drop_case(&none);

    struct at_built_case built = at_build_line("lightning_decode b=2 h=3 d=5 e=4 steps=3 dtype=f16 seed=4");
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval whole, part;
    at_assert_ok(at_test_eval_init(p, 1, &whole));
    at_assert_ok(at_test_eval_init(p, 1, &part));
    at_assert_ok(p->op->evaluate(p, NULL, 0, 6, &whole.eval));
    for (int64_t row = 6; row-- > 0;)
        at_assert_ok(p->op->evaluate(p, NULL, row, row + 1, &part.eval));
    for (int t = AT_LIGHTNING_KV; t <= AT_LIGHTNING_O; t++)
        for (int64_t i = 0; i < at_test_count(p, t); i++) {
            at_assert_same(part.eval.value[t][i], whole.eval.value[t][i]);
            at_assert_same(part.eval.limit[t][i], whole.eval.limit[t][i]);
        }
    at_test_eval_release(&whole);
    at_test_eval_release(&part);
    at_drop_case(&built);
}

/* What is no problem of the operator is refused by name. */
static void test_refusals(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("lightning_decode b=2 h=3 d=5 e=4 steps=3 dtype=f16");
    struct at_problem *p = &built.data.problem;
    const struct at_problem good = *p;
    struct at_lightning_own z;
#define REFUSED(change, part) \
    do { \
        *p = good; \
        z = at_lightning_own_of(p); \
        change; \
        at_lightning_own_set(p, &z); \
        at_assert_fails(p->op->check(p), AT_USAGE, part); \
    } while (0)
    REFUSED(p->sizes.b = -1, "b, h, d, e, steps are -1, 3, 5, 4, 3");
    REFUSED(p->sizes.h = 0, "are 2, 0, 5, 4, 3");
    REFUSED(p->sizes.d = 0, "are 2, 3, 0, 4, 3");
    REFUSED(z.e = 0, "are 2, 3, 5, 0, 3");
    REFUSED(z.steps = 0, "are 2, 3, 5, 4, 0");
    REFUSED(z.outer = 2, "outer is 2");
    REFUSED(p->dtype = AT_E4M3, "dtype is");
    REFUSED(p->sizes.d = 6, "tensor q has 90 elements of f16, wanted 108 of f16");
    REFUSED(p->tensors[AT_LIGHTNING_KV].format = AT_F16, "tensor kv has 120 elements of f16, wanted 120 of f32");
    REFUSED(p->tensors[AT_LIGHTNING_V].data = NULL, "tensor v has no data");
#undef REFUSED
    *p = good;
    at_assert_ok(p->op->check(p));
    at_drop_case(&built);
    struct at_case_list list = { 0 };
    at_assert_fails(at_case_parse("lightning_decode h=2 slope=1:2:3", "r", "w", &list), AT_USAGE,
                    "slope: found 3 values for h=2 heads");
    at_assert_fails(at_case_parse("lightning_decode data=exact slope=1", "r", "w", &list), AT_USAGE,
                    "slope: found 1 with exact data, wanted 0");
    at_assert_fails(at_case_parse("lightning_decode outer=twice", "r", "w", &list), AT_USAGE, "exact or rounded");
    at_assert_fails(at_case_parse("kv_write b=0", "r", "w", &list), AT_USAGE, "b: found '0'");
    at_case_list_release(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
