/* Limits of rotations: no rounding that the declaration allows leaves them, and each of their terms is needed and counted where it
 * happens alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "rope/rope.h"
#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"

/* One pair at one position, to be filled by hand. */
static struct at_built_case one_pair(enum at_format dtype) {
    char line[128];
    snprintf(line, sizeof line, "rope b=1 sq=1 h=1 hk=1 d=2 dtype=%s", at_format_info(dtype)->name);
    return at_build_line(line);
}

static void set_pair(struct at_problem *p, double x1, double x2, double c, double s) {
    at_test_set(p, "q", 0, x1);
    at_test_set(p, "q", 1, x2);
    at_test_set(p, "cos_sin", 0, c);
    at_test_set(p, "cos_sin", 1, s);
}

/* |model - exact| of the pair's second channel, y2 = x2 c + x1 s, and its limit. */
static double error_of(const struct at_problem *p, const struct at_numerics *numerics, double *limit) {
    struct at_test_eval exact, model;
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(at_test_eval_init(p, 1, &model));
    at_assert_ok(p->op->evaluate(p, numerics, 0, 1, &exact.eval));
    at_assert_ok(p->op->model(p, numerics, 0, 1, &model.eval));
    const double error = fabs(exact.eval.value[AT_ROPE_Q_OUT][1] - model.eval.value[AT_ROPE_Q_OUT][1]);
    *limit = exact.eval.limit[AT_ROPE_Q_OUT][1];
    at_test_eval_release(&exact);
    at_test_eval_release(&model);
    return error;
}

static const double least = 0x1p-149;

/* Where one rounding is all that errs: its term alone, the others switched off, is reached by more than half. */
static const struct attack {
    const char *name;
    enum at_rope_stage stage;
    int underflow, fused;
    enum at_format dtype;
    double x1, x2, c, s;
} attacks[] = {
    { "x c", AT_ROPE_COS_PRODUCT, 0, 0, AT_F32, 0, 1 + 0x1p-12, 1 + 0x1p-12, 0 },
    { "x s", AT_ROPE_SIN_PRODUCT, 0, 0, AT_F32, 1 + 0x1p-12, 0, 0, 1 + 0x1p-12 },
    { "x s, fused", AT_ROPE_SIN_PRODUCT, 0, 1, AT_F32, 1 + 0x1p-12, 0, 0, 1 + 0x1p-12 },
    { "x c underflows", AT_ROPE_COS_PRODUCT, 1, 0, AT_F32, 0, 3 * 0x1p-149, 0.5, 0 },
    { "x s underflows", AT_ROPE_SIN_PRODUCT, 1, 0, AT_F32, 3 * 0x1p-149, 0, 0, 0.5 },
    { "x s underflows, fused", AT_ROPE_SIN_PRODUCT, 1, 1, AT_F32, 3 * 0x1p-149, 0, 0, 0.5 },
    { "the sum", AT_ROPE_SUM, 0, 0, AT_F32, 0x1.fp-25, 1, 1, 1 },
    { "the sum, fused", AT_ROPE_SUM, 0, 1, AT_F32, 0x1.fp-25, 1, 1, 1 },
    { "the fma underflows", AT_ROPE_SUM, 1, 1, AT_F32, 0, 3 * 0x1p-149, 0.5, 0 },
    { "bf16", AT_ROPE_STORE, 0, 0, AT_BF16, 0, 1, 1 + 0x1.fp-9, 0 },
    { "f16", AT_ROPE_STORE, 0, 1, AT_F16, 0, 1, 1 + 0x1.fp-12, 0 },
    { "f16 underflows", AT_ROPE_STORE, 1, 0, AT_F16, 0, 3 * 0x1p-24, 0.5, 0 },
    { "bf16 underflows", AT_ROPE_STORE, 1, 0, AT_BF16, 0, 3 * 0x1p-133, 0.5, 0 },
};

static void test_each_term_is_needed(void **state) {
    (void)state;
    unsigned seen[2] = { 0 };
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        const struct attack *a = &attacks[i];
        struct at_numerics numerics = at_numerics_default();
        struct at_built_case built = one_pair(a->dtype);
        struct at_problem *p = &built.data.problem;
        numerics.fir_fma = a->fused;
        set_pair(p, a->x1, a->x2, a->c, a->s);
        double whole, alone;
        const double error = error_of(p, &numerics, &whole);
        for (int s = 0; s < AT_ROPE_STAGES; s++) {
            at_rope_test_u[s] = s == (int)a->stage && !a->underflow;
            at_rope_test_eta[s] = s == (int)a->stage && a->underflow;
        }
        error_of(p, &numerics, &alone);
        for (int s = 0; s < AT_ROPE_STAGES; s++)
            at_rope_test_u[s] = at_rope_test_eta[s] = 1;
        at_assert_true(error <= whole && error > alone / 2 && alone > 0, "%s: error %a, its term %a, the limit %a",
                       a->name, error, alone, whole);
        seen[a->underflow] |= 1u << a->stage;
        at_drop_case(&built);
    }
    assert_int_equal(seen[0], (1u << AT_ROPE_STAGES) - 1);
    assert_int_equal(seen[1], (1u << AT_ROPE_STAGES) - 1); /* the sum's where it is fused */
}

/* What does not happen is not counted: a sum of two numbers that underflows, a store of f32, a product that is fused. */
static void test_nothing_is_counted_twice(void **state) {
    (void)state;
    static const struct {
        enum at_rope_stage stage;
        int underflow, fused;
    } none[] = { { AT_ROPE_SUM, 1, 0 },
                 { AT_ROPE_STORE, 0, 0 },
                 { AT_ROPE_STORE, 1, 1 },
                 { AT_ROPE_COS_PRODUCT, 0, 1 },
                 { AT_ROPE_COS_PRODUCT, 1, 1 } };
    struct at_built_case built = one_pair(AT_F32);
    set_pair(&built.data.problem, least, 0.75, 0.5, 0.75);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct at_numerics numerics = at_numerics_default();
        double with, without, *scale = &(none[i].underflow ? at_rope_test_eta : at_rope_test_u)[none[i].stage];
        numerics.fir_fma = none[i].fused;
        error_of(&built.data.problem, &numerics, &with);
        *scale = 1000;
        error_of(&built.data.problem, &numerics, &without);
        *scale = 1;
        at_assert_same(with, without);
    }
    at_drop_case(&built);
}

/* Results of every size; the largest share of a limit that random numbers reach. An undeclared order may fuse either product. */
static void test_sound(void **state) {
    (void)state;
    struct at_test_random random = { 11 };
    struct at_built_case built = one_pair(AT_F32);
    struct at_problem *p = &built.data.problem;
    double worst[2] = { 0 };
    for (long i = 0; i < 4000 * at_test_effort(10); i++) {
        struct at_numerics numerics = at_numerics_default(), any = numerics;
        double limit, general, size = ldexp(1, (int)(i % 5) * (i % 7 ? 1 : -30));
        const double angle = 6.2831853 * at_test_uniform(&random);
        numerics.fir_fma = (int)(i & 1);
        any.free_order = 1;
        set_pair(p, size * at_test_normal(&random), at_test_normal(&random), cos(angle), sin(angle));
        const double error = error_of(p, &numerics, &limit);
        struct at_test_eval exact;
        at_assert_ok(at_test_eval_init(p, 1, &exact));
        at_assert_ok(p->op->evaluate(p, &any, 0, 1, &exact.eval));
        general = exact.eval.limit[AT_ROPE_Q_OUT][1];
        at_test_eval_release(&exact);
        assert_true(error <= limit && limit <= general);
        worst[i & 1] = error / limit > worst[i & 1] ? error / limit : worst[i & 1];
    }
    print_message("at most %.3f and %.3f of the limit\n", worst[0], worst[1]);
    assert_true(worst[0] > 0.5 && worst[1] > 0.5);
    at_drop_case(&built);
}

/* Near the end of a format nothing is promised; beyond it the model is infinite. */
static void test_range(void **state) {
    (void)state;
    struct at_numerics numerics = at_numerics_default();
    struct at_built_case built = one_pair(AT_F16);
    double limit;
    set_pair(&built.data.problem, 50000, 50000, 0.75, 0.75);
    const double error = error_of(&built.data.problem, &numerics, &limit);
    assert_true(isinf(limit) && isinf(error));
    set_pair(&built.data.problem, 40000, 40000, 0.75, 0.75);
    assert_true(error_of(&built.data.problem, &numerics, &limit) <= limit && limit < 100);
    at_drop_case(&built);
    built = one_pair(AT_F32);
    set_pair(&built.data.problem, 3e38, 3e38, 0.75, 0.75);
    assert_true(isinf(error_of(&built.data.problem, &numerics, &limit)) && isinf(limit));
    at_drop_case(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_each_term_is_needed),
                                        cmocka_unit_test(test_nothing_is_counted_twice), cmocka_unit_test(test_sound),
                                        cmocka_unit_test(test_range) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
