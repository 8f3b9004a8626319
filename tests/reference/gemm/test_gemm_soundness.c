/* Limits of products hold and are reached: every element of the declared arithmetic is within the limit derived for it,
 * over random declarations, problems and adversaries; each term of the limit is needed; and range ends where it may.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/gemm_problem.h"

struct tally {
    long judged, range, classes, maxima;
    double worst, worst_maximum;
};

static void judge_element(const struct at_problem *p, const struct at_numerics *numerics, int64_t i, double got,
                          double want, double limit, struct tally *tally) {
    const struct at_format_info *out = at_format_info((enum at_format)at_gemm_own_of(p).out);
    const double edge = out->max + ldexp(1.0, out->emax - out->precision);
    at_assert_true(limit >= 0, "limit %g", limit);
    if (isinf(limit)) {
        tally->range++;
        return;
    }
    int good = isfinite(want) ? fabs(got - want) <= limit : (isnan(got) && isnan(want)) || got == want;
    /* the output's own end of range is the comparison's to judge */
    if (isfinite(want) && isinf(got))
        good = fabs(want) + limit >= edge && signbit(want) == signbit(got);
    if (!good) {
        char text[640];
        at_assert_ok(at_numerics_format(numerics, text, sizeof text));
        fail_msg("d[%lld]: got %.9g, exact %.12g, limit %.3g, ratio %.6f, dtype %s, out %s, k %lld, scale %g\n%s",
                 (long long)i, got, want, limit, fabs(got - want) / limit, at_format_info(p->dtype)->name, out->name,
                 (long long)at_gemm_own_of(p).k, (double)p->params.scale, text);
    }
    tally->judged++;
    tally->classes += !isfinite(want);
    if (limit > 0 && isfinite(want) && isfinite(got))
        tally->worst = fmax(tally->worst, fabs(got - want) / limit);
}

/* In f32, which limits keep away from its end. */
static void judge_amax(double got, double want, double limit, struct tally *tally) {
    if (isinf(limit))
        return;
    const struct at_format_info *out = at_format_info(AT_F32);
    const double edge = out->max + ldexp(1.0, out->emax - out->precision);
    const int overflows = isinf(got) && isfinite(want) && fabs(want) + limit >= edge; /* of a sum in f64 */
    at_assert_true(overflows ||
                       (isfinite(want) ? fabs(got - want) <= limit : (isnan(got) && isnan(want)) || got == want),
                   "amax %.9g, exact %.12g, limit %.3g", got, want, limit);
    tally->maxima++;
    if (limit > 0 && isfinite(want) && isfinite(got))
        tally->worst_maximum = fmax(tally->worst_maximum, fabs(got - want) / limit);
}

static void judge(const struct at_problem *p, const struct at_numerics *numerics, struct tally *tally) {
    struct at_test_eval exact, model;
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(at_test_eval_init(p, 1, &model));
    at_assert_ok(p->op->evaluate(p, numerics, 0, p->op->rows(p), &exact.eval));
    at_assert_ok(p->op->model(p, numerics, 0, p->op->rows(p), &model.eval));
    for (int64_t i = 0; i < at_gemm_own_of(p).m * at_gemm_own_of(p).n; i++) {
        at_assert_same(model.eval.limit[AT_GEMM_D][i], 0.0);
        judge_element(p, numerics, i, model.eval.value[AT_GEMM_D][i], exact.eval.value[AT_GEMM_D][i],
                      exact.eval.limit[AT_GEMM_D][i], tally);
    }
    if (at_gemm_own_of(p).amax)
        judge_amax(model.eval.value[AT_GEMM_AMAX][0], exact.eval.value[AT_GEMM_AMAX][0],
                   exact.eval.limit[AT_GEMM_AMAX][0], tally);
    at_test_eval_release(&exact);
    at_test_eval_release(&model);
}

static void test_declared_arithmetic_stays_inside(void **state) {
    (void)state;
    const long want = at_test_effort(20) * 30000;
    struct tally tally = { 0 };
    for (uint64_t seed = 0; tally.judged < want; seed++) {
        struct at_test_random random = { seed };
        struct at_test_problem made;
        if (seed % 2)
            at_test_gemm_draw_all(&random, 160, &made);
        else
            at_test_gemm_draw(&random, 160, &made);
        for (int i = 0; i < 4; i++) {
            struct at_numerics numerics = at_test_gemm_numerics(&random, &made.problem);
            judge(&made.problem, &numerics, &tally);
        }
        at_test_problem_release(&made);
    }
    print_message("%ld judged (%ld not finite), %ld without limit, worst %.4f; %ld maxima, worst %.4f\n", tally.judged,
                  tally.classes, tally.range, tally.worst, tally.maxima, tally.worst_maximum);
    assert_true(tally.maxima > want / 200 && tally.worst_maximum > 0.5);
    assert_true(tally.worst > 0.5 && tally.range > 0 && tally.range < tally.judged / 2 && tally.classes > want / 200);
}

/* ---- each term of the limit, alone or nearly so, at its worst ---- */

/* One row and column; a and b repeat their values. */
struct chain {
    enum at_format dtype, out;
    int unit, split, k;
    double scale, a0, b0, a, b; /* the first product, the others */
};

static double ratio_of(struct chain c) {
    struct at_test_gemm_shape shape = { 1, 1, c.k, c.dtype, c.out, c.scale };
    struct at_numerics numerics = at_numerics_default();
    struct at_test_problem made;
    struct tally tally = { 0 };
    numerics.qk_unit = c.unit;
    numerics.split = c.split;
    at_test_gemm_problem(&shape, &made);
    at_test_set_all(&made.problem, "a", c.a);
    at_test_set_all(&made.problem, "b", c.b);
    at_test_set(&made.problem, "a", 0, c.a0);
    at_test_set(&made.problem, "b", 0, c.b0);
    judge(&made.problem, &numerics, &tally);
    at_test_problem_release(&made);
    assert_true(tally.judged == 1);
    return tally.worst;
}

/* 1 + 2^-24 is a tie of f32, and the sum is a number of it: nothing but the addition rounds. */
static double bias_ratio(void) {
    struct at_test_gemm_shape shape = { 1, 1, 1, AT_F32, AT_F32, 0, .bias = AT_GEMM_BIAS_F32 };
    struct at_numerics numerics = at_numerics_default();
    struct at_test_problem made;
    struct tally tally = { 0 };
    numerics.qk_unit = AT_UNIT_F32_FMA;
    at_test_gemm_problem(&shape, &made);
    at_test_set(&made.problem, "a", 0, 0x1p-12);
    at_test_set(&made.problem, "b", 0, 0x1p-12);
    at_test_set(&made.problem, "bias", 0, 1);
    judge(&made.problem, &numerics, &tally);
    at_test_problem_release(&made);
    return tally.worst;
}

#define RATIO(...) ratio_of((struct chain){ __VA_ARGS__ })
#define REACHES(least, ...) \
    do { \
        const double ratio_ = RATIO(__VA_ARGS__); \
        at_assert_true(ratio_ > (least), "%s: %.4f of the limit, wanted more than %g", #__VA_ARGS__, ratio_, \
                       (double)(least)); \
    } while (0)

static void test_every_term_is_reached(void **state) {
    (void)state;
    /* the output: a tie, an odd multiple of half a last place */
    REACHES(0.9, AT_F32, AT_F16, AT_UNIT_F64, 0, 1, 1, 1, 1 + 0x1p-11, 0, 0);
    REACHES(0.9, AT_F32, AT_BF16, AT_UNIT_F64, 0, 1, 1, 1, 1 + 0x1p-8, 0, 0);
    /* the join: each partial sum of one product is half an ulp of what it is added to, and the tie goes down */
    REACHES(0.9, AT_F32, AT_F32, AT_UNIT_F32_FMA, 1, 200, 1, 1, 1, 0x1p-12, 0x1p-12);
    /* the accumulator of 13 bits: products of 0.88 of its last place, all lost in the first step */
    REACHES(0.8, AT_E4M3, AT_F32, AT_UNIT_TC_FP8, 0, 32, 1, 4, 4, 0x1.ep-5, 0x1.ep-6);
    /* f16: one tie a step; f32 of a tensor core: nearly all that the step's 16 cuts may lose */
    REACHES(0.9, AT_F16, AT_F32, AT_UNIT_F16_FMA, 0, 12, 1, 1, 1, 0x1p-5, 0x1p-6);
    REACHES(0.7, AT_F16, AT_F32, AT_UNIT_TC_F32, 0, 16, 1, 1, 1, 0x1.ffcp-13, 0x1.ffcp-14);
    /* the bias: a tie */
    at_assert_true(bias_ratio() > 0.9, "the bias: %.4f of the limit", bias_ratio());
    /* underflow of the output, of a product in f32, of the scale */
    REACHES(0.9, AT_F16, AT_F16, AT_UNIT_F64, 0, 1, 0x1p-1, 0x1p-24, 1, 0, 0);
    REACHES(0.9, AT_F32, AT_F32, AT_UNIT_F32_FMA, 0, 1, 1, 0x1p-100, 0x1p-50, 0, 0);
    REACHES(0.4, AT_F32, AT_F32, AT_UNIT_F32_FMA, 0, 1, 0x1p-50, 0x1p-100, 1, 0, 0);
}

/* The sum's last rounding and the scale's in one direction: the largest of many. */
static void test_scale_is_reached(void **state) {
    (void)state;
    struct at_test_random random = { 1 };
    double worst = 0;
    for (int i = 0; i < 20000; i++) {
        const double near[3] = { 1 + 0x1p-8 * at_test_uniform(&random), 1 + 0x1p-8 * at_test_uniform(&random),
                                 1 + 0x1p-8 * at_test_uniform(&random) };
        worst = fmax(worst, RATIO(AT_F32, AT_F32, AT_UNIT_F32_FMA, 0, 1, near[0], near[1], near[2], 0, 0));
    }
    at_assert_true(worst > 0.95, "worst %.4f", worst);
}

/* ---- ends of range ---- */

static double limit_of(struct chain c) {
    struct at_test_gemm_shape shape = { 1, 1, c.k, c.dtype, c.out, c.scale };
    struct at_numerics numerics = at_numerics_default();
    struct at_test_problem made;
    struct at_test_eval exact;
    numerics.qk_unit = c.unit;
    numerics.split = c.split;
    at_test_gemm_problem(&shape, &made);
    at_test_set_all(&made.problem, "a", c.a);
    at_test_set_all(&made.problem, "b", c.b);
    at_test_set(&made.problem, "a", 0, c.a0);
    at_test_set(&made.problem, "b", 0, c.b0);
    at_assert_ok(at_test_eval_init(&made.problem, 1, &exact));
    at_assert_ok(made.problem.op->evaluate(&made.problem, &numerics, 0, 1, &exact.eval));
    const double limit = exact.eval.limit[AT_GEMM_D][0];
    at_test_eval_release(&exact);
    at_test_problem_release(&made);
    return limit;
}
#define LIMIT(...) limit_of((struct chain){ __VA_ARGS__ })

static void test_range_ends(void **state) {
    (void)state;
    /* an f16 accumulator, f32 ones, their join */
    assert_true(isfinite(LIMIT(AT_F16, AT_F32, AT_UNIT_F16_FMA, 0, 1, 1, 65472, 1, 0, 0)));
    assert_true(isinf(LIMIT(AT_F16, AT_F32, AT_UNIT_F16_FMA, 0, 1, 1, 65504, 1, 0, 0)));
    assert_true(isinf(LIMIT(AT_F16, AT_F32, AT_UNIT_TC_F16, 0, 2, 1, 32768, 1, -32768, 1)));
    assert_true(isfinite(LIMIT(AT_F16, AT_F32, AT_UNIT_TC_F32, 0, 2, 1, 32768, 32768, 32768, 32768)));
    assert_true(isinf(LIMIT(AT_BF16, AT_F32, AT_UNIT_TC_F32, 0, 2, 1, 0x1p100, 0x1p27, 0x1p100, 0x1p27)));
    assert_true(isfinite(LIMIT(AT_BF16, AT_F32, AT_UNIT_TC_F32, 0, 2, 1, 0x1p100, 0x1p26, 0x1p100, 0x1p26)));
    assert_true(isinf(LIMIT(AT_F32, AT_F32, AT_UNIT_F32_FMA, 1, 2, 1, 0x1p100, 0x1p27, 0x1p100, 0x1p27)));
    assert_true(isinf(LIMIT(AT_F32, AT_F32, AT_UNIT_F32_FMA, 1, 2, 0.25, 0x1p127, 1, 0x1.fffff8p126, 1)));
    assert_true(isfinite(LIMIT(AT_F32, AT_F32, AT_UNIT_F32_FMA, 1, 2, 1, 0x1p127, 1, 0x1.fffffp126, 1)));
    /* the scale */
    assert_true(isinf(LIMIT(AT_F32, AT_F32, AT_UNIT_F32_FMA, 0, 1, 0x1p28, 0x1p100, 1, 0, 0)));
    assert_true(isfinite(LIMIT(AT_F32, AT_F32, AT_UNIT_F32_FMA, 0, 1, 0x1p27, 0x1p100, 1, 0, 0)));
    /* not the output: the comparison knows its end */
    assert_true(isfinite(LIMIT(AT_F16, AT_F16, AT_UNIT_TC_F32, 0, 1, 1, 65504, 4, 0, 0)));
    /* classes are certain unless the finite terms may overflow */
    at_assert_same(LIMIT(AT_F16, AT_F16, AT_UNIT_TC_F16, 0, 2, 1, INFINITY, 1, 3, 1), 0.0);
    at_assert_same(LIMIT(AT_F16, AT_F16, AT_UNIT_TC_F16, 0, 2, 1, NAN, 1, 3, 1), 0.0);
    assert_true(isinf(LIMIT(AT_F16, AT_F16, AT_UNIT_TC_F16, 0, 2, 1, INFINITY, 1, 65504, -4)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared_arithmetic_stays_inside),
        cmocka_unit_test(test_every_term_is_reached),
        cmocka_unit_test(test_scale_is_reached),
        cmocka_unit_test(test_range_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
