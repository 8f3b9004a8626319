/* Limits of gated products hold for every declared arithmetic, and are not much wider than they need be.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "silu_mul/silu_mul.h"
#include "special/special.h"
#include "tests/support/gated_problem.h"

static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16 };

/* Each exponential with each quotient. */
static const struct {
    const char *op, *declared;
} declarations[] = {
    { "silu_mul", "exp=libm divide=division" },
    { "silu_mul", "exp=libm divide=reciprocal" },
    { "silu_mul", "exp=ex2_approx divide=division" },
    { "silu_mul", "exp=ex2_approx divide=reciprocal" },
    { "silu_mul", "exp=ex2_approx divide=rcp_approx" },
    { "silu_mul", "exp=ex2_approx_ftz divide=rcp_approx_ftz" },
    { "silu_mul", "exp=tanh_approx" },
    { "reglu", "clamp=fminmax" },
    { "reglu", "clamp=propagate" },
};
enum { DECLARATIONS = sizeof declarations / sizeof *declarations, N = 4000 };

struct seen {
    double worst[3]; /* by format */
    long judged, range;
};

/* A model's element, and what its interval still allows, against value and limit. */
static void judge(const struct at_problem *p, const char *declared, const struct at_test_eval *exact,
                  const struct at_test_eval *model, int64_t i, int format, struct seen *seen) {
    const double want = exact->eval.value[AT_GATED_Y][i], limit = exact->eval.limit[AT_GATED_Y][i];
    const double got = model->eval.value[AT_GATED_Y][i], more = model->eval.limit[AT_GATED_Y][i];
    assert_true(limit >= 0 && more >= 0);
    if (isinf(limit)) {
        seen->range++;
        return;
    }
    seen->judged++;
    if (!isfinite(want)) {
        at_assert_same(got, want);
        return;
    }
    /* an interval may be a step of the format to one side alone */
    at_assert_true(fabs(got - want) <= limit && (more == 0 || fabs(got - want) <= limit + more),
                   "%s %s %s: element %lld: %.9g, exact %.12g, limit %g", p->op->name, declared,
                   at_format_info(p->dtype)->name, (long long)i, got, want, limit);
    /* ordinary gates: what is lost below the least number reaches all of its limit */
    const double g = fabs(at_test_get(p, "gate", i));
    if (g > 0x1p-10 && g < 80 && fabs(want) > 0x1p-14)
        seen->worst[format] = fmax(seen->worst[format], fabs(got - want) / limit);
}

static void run(int which, int format, uint64_t seed, struct seen *seen) {
    struct at_test_random random = { seed };
    struct at_test_problem made;
    struct at_numerics numerics;
    struct at_test_eval exact, model;
    at_test_gated_problem(declarations[which].op, AT_HALVES_APART, formats[format], 1, N, &made);
    const struct at_problem *p = &made.problem;
    for (int64_t i = 0; i < N; i++)
        at_test_gated_set(&made.problem, i, at_test_gated_draw(&random), at_test_gated_draw(&random));
    at_assert_ok(at_numerics_parse(declarations[which].declared, &numerics));
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(at_test_eval_init(p, 1, &model));
    at_assert_ok(p->op->evaluate(p, &numerics, 0, 1, &exact.eval));
    at_assert_ok(p->op->model(p, &numerics, 0, 1, &model.eval));
    for (int64_t i = 0; i < N; i++)
        judge(p, declarations[which].declared, &exact, &model, i, format, seen);
    at_test_eval_release(&exact);
    at_test_eval_release(&model);
    at_test_problem_release(&made);
}

static void test_limits_hold(void **state) {
    (void)state;
    const long rounds = 2 * at_test_effort(20);
    for (int d = 0; d < DECLARATIONS; d++) {
        struct seen seen = { 0 };
        for (int f = 0; f < 3; f++)
            for (long k = 0; k < rounds; k++)
                run(d, f, (uint64_t)(3 * k + f), &seen);
        print_message("%-9s %-42s f32 %.3f, f16 %.3f, bf16 %.3f of the limit; %ld judged, %ld without one\n",
                      declarations[d].op, declarations[d].declared, seen.worst[0], seen.worst[1], seen.worst[2],
                      seen.judged, seen.range);
        at_assert_true(seen.worst[0] > 0.7 && seen.worst[1] > 0.9 && seen.worst[2] > 0.9, "%s",
                       declarations[d].declared);
        assert_true(seen.judged > 4 * seen.range && seen.range > 0);
    }
}

/* Where nothing is promised, and only there. */
static void test_range(void **state) {
    (void)state;
    static const struct {
        const char *op, *declared;
        enum at_format dtype;
        double gate, up;
        int promised;
    } rows[] = {
        { "reglu", "clamp=fminmax", AT_F32, NAN, 1, 0 },
        { "reglu", "clamp=propagate", AT_F32, NAN, 1, 1 },
        { "reglu", "", AT_F16, 256, 255.875, 1 },
        { "reglu", "", AT_F16, 256, 256, 0 },
        { "reglu", "", AT_F32, 0x1p64, 0x1p63, 1 },
        { "reglu", "", AT_F32, 0x1p64, 0x1p64, 0 },
        { "silu_mul", "exp=libm", AT_F32, -100, INFINITY, 0 },
        { "silu_mul", "exp=libm", AT_F32, -80, INFINITY, 1 },
        { "silu_mul", "exp=tanh_approx", AT_F32, -30, INFINITY, 0 },
        { "silu_mul", "exp=tanh_approx", AT_F32, -2, INFINITY, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct at_test_problem made;
        struct at_test_eval got;
        struct at_numerics numerics;
        at_assert_ok(at_numerics_parse(rows[i].declared, &numerics));
        at_test_gated_problem(rows[i].op, AT_HALVES_APART, rows[i].dtype, 1, 1, &made);
        at_test_gated_set(&made.problem, 0, rows[i].gate, rows[i].up);
        at_assert_ok(at_test_eval_init(&made.problem, 1, &got));
        at_assert_ok(made.problem.op->evaluate(&made.problem, &numerics, 0, 1, &got.eval));
        at_assert_true(isfinite(got.eval.limit[AT_GATED_Y][0]) == rows[i].promised, "row %zu: limit %g", i,
                       got.eval.limit[AT_GATED_Y][0]);
        at_test_eval_release(&got);
        at_test_problem_release(&made);
    }
}

/* A reciprocal of f16 is softmax's: neither limit nor model. */
static void test_refused(void **state) {
    (void)state;
    struct at_test_problem made;
    struct at_test_eval got;
    struct at_numerics numerics;
    at_assert_ok(at_numerics_parse("divide=reciprocal_f16", &numerics));
    at_test_gated_problem("silu_mul", AT_HALVES_APART, AT_F32, 1, 1, &made);
    at_assert_ok(at_test_eval_init(&made.problem, 1, &got));
    at_assert_fails(made.problem.op->evaluate(&made.problem, &numerics, 0, 1, &got.eval), AT_UNSUPPORTED, "softmax");
    at_assert_fails(made.problem.op->model(&made.problem, &numerics, 0, 1, &got.eval), AT_UNSUPPORTED, "softmax");
    at_assert_ok(made.problem.op->decoy(&made.problem, &numerics, 0, 0, 1, &got.eval));
    at_test_eval_release(&got);
    at_test_problem_release(&made);
}

static void comes_near(const char *what, double most, double constant) {
    print_message("%.4f  %s\n", most / constant, what);
    at_assert_true(most > 0.97 * constant && most <= constant, "%s: %g, constant %g", what, most, constant);
}

/* The constants of limits are the unit's largest errors and no more: on every 97th number between 2^-126 and 2^126. */
static void test_constants(void **state) {
    (void)state;
    double ex2 = 0, rcp = 0, tanh_units = 0, argument = 0;
    for (uint32_t code = 0x00800000; code < 0x7e800000; code += 97) {
        float x;
        memcpy(&x, &code, sizeof x);
        const double turned = (double)(x * 0x1.715476p0f);
        rcp = fmax(rcp, fabs(at_special_value(AT_SPECIAL_rcp, 0, (double)x) * (double)x - 1));
        argument = fmax(argument, fabs(turned * log(2.0) / (double)x - 1));
        for (int sign = -1; sign <= 1 && x < 126; sign += 2)
            ex2 =
                fmax(ex2, fabs(at_special_value(AT_SPECIAL_ex2, 0, (double)(sign * x)) / exp2((double)(sign * x)) - 1));
    }
    for (uint32_t code = 0x3b000000; code < 0x41800000; code += 13) { /* 2^-9 to 16, where tanh is neither x nor 1 */
        float x;
        memcpy(&x, &code, sizeof x);
        const double t = tanh((double)x);
        tanh_units = fmax(tanh_units, fabs(at_special_value(AT_SPECIAL_tanh, 0, (double)x) - t) / at_ulp(AT_F32, t));
    }
    comes_near("ex2.approx", ex2, at_silu_errors.ex2 * 0x1p-24);
    comes_near("rcp.approx", rcp, at_silu_errors.rcp * 0x1p-24);
    comes_near("the argument of ex2", argument, at_silu_errors.argument * 0x1p-24);
    comes_near("tanh.approx", tanh_units, at_silu_errors.tanh_units);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_hold),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
