/* The operator of one instruction of the special-function unit: its exact values against 200-bit arithmetic, its limits against the
 * unit, its decoys, what it refuses.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "special_function/special_function.h"
#include "tests/oracle/special_mpfr.h"
#include "tests/support/attention_problem.h"

enum { N = 4096 };

/* One problem of n arguments, and the arrays of its evaluations. */
struct scene {
    struct at_problem problem;
    const struct at_special_instruction *instruction;
    uint32_t code[N];
    uint32_t x[N]; /* as the problem has them: words or halves of them */
    double value[N], limit[N], model[N];
    struct at_eval eval, modelled;
};

static void set(struct scene *s, int instruction, int64_t n) {
    s->instruction = at_special_instruction_at(instruction);
    at_problem_init(&s->problem, &at_op_special_function, AT_F32);
    at_special_function_own_set(&s->problem, &(struct at_special_function_own){ n, instruction });
    at_op_special_function.complete(&s->problem, ~0u);
    at_problem_shape(&s->problem);
    for (int64_t i = 0; i < n; i++)
        if (s->instruction->narrow)
            ((uint16_t *)s->x)[i] = (uint16_t)s->code[i];
        else
            s->x[i] = s->code[i];
    s->problem.tensors[AT_SPECIAL_FUNCTION_X].data = n ? s->x : NULL;
    s->eval = s->modelled = (struct at_eval){ 0 };
    s->eval.value[AT_SPECIAL_FUNCTION_Y] = s->value;
    s->eval.limit[AT_SPECIAL_FUNCTION_Y] = s->limit;
    s->modelled.value[AT_SPECIAL_FUNCTION_Y] = s->model;
    at_assert_ok(at_op_special_function.check(&s->problem));
}

static void evaluate(struct scene *s, int64_t n) {
    at_assert_ok(at_op_special_function.evaluate(&s->problem, NULL, 0, n, &s->eval));
    at_assert_ok(at_op_special_function.model(&s->problem, NULL, 0, n, &s->modelled));
}

static double argument(const struct scene *s, int i) {
    const double x = at_decode(s->problem.dtype, s->code[i]);
    return s->instruction->ftz && fabs(x) < 0x1p-126 ? copysign(0, x) : x;
}

/* Any code of the format. */
static void draw(struct scene *s, uint64_t seed, int narrow) {
    struct at_test_random random = { seed };
    for (int i = 0; i < N; i++)
        s->code[i] = (uint32_t)at_test_bits(&random) & (narrow ? 0xffff : UINT32_MAX);
}

static void test_values(void **state) {
    (void)state;
    static struct scene s;
    const long rounds = at_test_effort(5);
    long finite = 0, other = 0;
    double worst = 0;
    for (int t = 0; t < at_special_instruction_count(); t++)
        for (long r = 0; r < rounds; r++) {
            draw(&s, (uint64_t)(t + 100 * r), at_special_instruction_at(t)->narrow != NULL);
            set(&s, t, N);
            evaluate(&s, N);
            for (int i = 0; i < N; i++) {
                double off;
                const double want = at_special_mpfr(s.instruction->function, argument(&s, i), s.value[i], &off);
                if (!isfinite(want)) {
                    at_assert_same(s.value[i], want);
                    assert_true(s.limit[i] == 0);
                    other++;
                    continue;
                }
                const double allowed = 0x1p-51 * fabs(s.value[i]) + 0x1p-1074;
                at_assert_true(off <= allowed && (s.limit[i] >= allowed || isinf(argument(&s, i))),
                               "%s of %a: %a, wanted %a", s.instruction->name, argument(&s, i), s.value[i], want);
                worst = fmax(worst, fabs(want) > 0x1p-1000 ? off / allowed : 0);
                finite++;
            }
        }
    print_message("%ld finite, %ld other: at worst %.3g of what the reference allows itself\n", finite, other, worst);
    assert_true(finite > 60000 && other > 1000 && worst > 0.1);
}

/* The share of its limit that the unit uses; an infinity where the value rounds to one, NaN where it is NaN. */
static double ratio(const struct scene *s, int i) {
    if (isnan(s->value[i]) || isinf(at_round(s->problem.dtype, s->value[i]))) {
        at_assert_same(s->model[i], at_round(s->problem.dtype, s->value[i]));
        return 0;
    }
    if (s->limit[i] == 0) { /* of an infinite argument */
        at_assert_same(s->model[i], s->value[i]);
        return 0;
    }
    return fabs(s->model[i] - s->value[i]) / s->limit[i];
}

/* All codes of 16 bits, and a part of the others: every result is within its limit, and limits are no wider than they have to be. */
static void test_the_unit_is_within_its_limits(void **state) {
    (void)state;
    static struct scene s;
    for (int t = 0; t < at_special_instruction_count(); t++) {
        const int64_t all = at_special_arguments(at_special_instruction_at(t)), step = all >> 32 ? 4099 : 1;
        double worst = 0;
        for (int64_t first = 0; first < all; first += N * step * (all >> 32 ? 11 - at_test_effort(10) : 1)) {
            for (int i = 0; i < N; i++)
                s.code[i] = (uint32_t)((first + i * step) & (all - 1));
            set(&s, t, N);
            evaluate(&s, N);
            for (int i = 0; i < N; i++) {
                const double now = ratio(&s, i);
                at_assert_true(now <= 1, "%s of %08x: %a, exact %a, limit %g", s.instruction->name, s.code[i],
                               s.model[i], s.value[i], s.limit[i]);
                worst = fmax(worst, now);
            }
        }
        print_message("%-22s uses %.4f of its limit\n", s.instruction->name, worst);
        assert_true(worst > 0.5);
    }
}

/* Where each function is off most, of all its arguments. */
static void test_limits_are_where_the_unit_is(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t x;
    } worst[] = {
        { "ex2.approx.f32", 0xc2fc500a },  { "rcp.approx.f32", 0x7e81dfff },  { "rsqrt.approx.f32", 0x00820399 },
        { "sqrt.approx.f32", 0x005d4e81 }, { "lg2.approx.f32", 0x0010aff7 },  { "sin.approx.f32", 0x4b490fde },
        { "cos.approx.f32", 0x4b490fe3 },  { "tanh.approx.f32", 0x3f9bfff8 },
    };
    static struct scene s;
    for (size_t i = 0; i < sizeof worst / sizeof *worst; i++) {
        s.code[0] = worst[i].x;
        set(&s, (int)(at_special_instruction_find(worst[i].name) - at_special_instruction_at(0)), 1);
        evaluate(&s, 1);
        const double share = ratio(&s, 0);
        at_assert_true(share <= 1 && share > 0.99, "%s: %g of its limit", worst[i].name, share);
    }
}

/* Codes of the unit come out as they are; what ftz flushes may be 0, and nothing else is that wide. */
static void test_model_and_flushing(void **state) {
    (void)state;
    static struct scene s;
    const int kept = (int)(at_special_instruction_find("rcp.approx.f32") - at_special_instruction_at(0));
    s.code[0] = 0x7e800001;
    s.code[1] = 0x40400000;
    set(&s, kept, 2);
    evaluate(&s, 2);
    assert_true(s.model[0] == at_decode(AT_F32, 0x007fffff) && s.model[1] == at_decode(AT_F32, 0x3eaaaaab));
    assert_true(s.limit[0] < 0x1p-148);
    set(&s, kept + 1, 2);
    evaluate(&s, 2);
    assert_true(s.instruction->ftz && s.model[0] == 0 && s.limit[0] >= s.value[0] && s.limit[1] < 0x1p-23);
}

static void test_decoys(void **state) {
    (void)state;
    static struct scene s;
    /* 1 / x of -2, 2^127 and 1.5, wrong in each way; 2^-127 is subnormal. */
    static const double want[4][3] = {
        { 0.5, 0x1p-127, 2 / 3.0 },
        { -0.5, 0x1p-127, 1 },
        { 0x1p-127, 2 / 3.0, -0.5 },
        { -0.5, 0, 2 / 3.0 },
    };
    static const uint32_t x[] = { 0xc0000000, 0x7f000000, 0x3fc00000 };
    const int rcp = (int)(at_special_instruction_find("rcp.approx.f32") - at_special_instruction_at(0));
    assert_int_equal(at_op_special_function.n_decoys, 4);
    memcpy(s.code, x, sizeof x);
    set(&s, rcp, 3);
    for (int d = 0; d < 4; d++) {
        at_assert_ok(at_op_special_function.decoy(&s.problem, NULL, d, 0, 3, &s.eval));
        for (int i = 0; i < 3; i++)
            at_assert_within(s.value[i], want[d][i], 1e-15 * fabs(want[d][i]));
    }
    set(&s, rcp + 1, 3);
    at_assert_ok(at_op_special_function.decoy(&s.problem, NULL, 3, 0, 3, &s.eval));
    assert_true(s.value[1] == 0x1p-127); /* with ftz that is no fault */
}

static void test_refusals(void **state) {
    (void)state;
    static struct scene s;
    at_status (*const check)(const struct at_problem *) = at_op_special_function.check;
    set(&s, 0, 0);
    assert_true(at_op_special_function.rows(&s.problem) == 0);
    set(&s, 0, 4);
    at_special_function_own_set(&s.problem, &(struct at_special_function_own){ 4, at_special_instruction_count() });
    at_assert_fails(check(&s.problem), AT_USAGE, "instruction is 23, wanted 0 to 22");
    at_special_function_own_set(&s.problem, &(struct at_special_function_own){ -1, 0 });
    at_assert_fails(check(&s.problem), AT_USAGE, "n is -1");
    at_special_function_own_set(&s.problem, &(struct at_special_function_own){ 5, 0 });
    at_assert_fails(check(&s.problem), AT_USAGE, "has 4 elements of f32, wanted 5");
    at_special_function_own_set(&s.problem, &(struct at_special_function_own){ 4, 16 });
    at_assert_fails(check(&s.problem), AT_USAGE, "elements of f32, wanted 4 of f16");
    set(&s, 0, 4);
    s.problem.tensors[AT_SPECIAL_FUNCTION_X].data = NULL;
    at_assert_fails(check(&s.problem), AT_USAGE, "with data");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_the_unit_is_within_its_limits),
        cmocka_unit_test(test_limits_are_where_the_unit_is),
        cmocka_unit_test(test_model_and_flushing),
        cmocka_unit_test(test_decoys),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
