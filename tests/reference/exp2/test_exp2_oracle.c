/* The exponential's reference, limits, model and decoys against 200-bit arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "exp2/exp2.h"
#include "tests/oracle/exp2_mpfr.h"
#include "tests/support/attention_problem.h"

enum { N = 4096 };

/* One problem of n arguments, and the arrays of its evaluations. */
struct scene {
    struct at_problem problem;
    float x[N];
    double value[N], limit[N];
    struct at_eval eval;
};

static void set(struct scene *s, int64_t n) {
    at_problem_init(&s->problem, &at_op_exp2, AT_F32);
    at_exp2_own_set(&s->problem, &(struct at_exp2_own){ n });
    at_problem_shape(&s->problem);
    s->problem.tensors[AT_EXP2_X].data = n ? s->x : NULL;
    s->eval = (struct at_eval){ 0 };
    s->eval.value[AT_EXP2_Y] = s->value;
    s->eval.limit[AT_EXP2_Y] = s->limit;
    at_assert_ok(at_op_exp2.check(&s->problem));
}

static float of_code(uint32_t code) {
    float x;
    memcpy(&x, &code, sizeof x);
    return x;
}

/* Any code, whole numbers and their neighbours, both ends of the range. */
static float draw(struct at_test_random *random) {
    static const float middle[] = { 0, 1, -1, -126, -149, -150, 128, 127, 1024, -1074 };
    const uint32_t code = (uint32_t)at_test_bits(random);
    switch (at_test_below(random, 4)) {
    case 0:
        return of_code(code);
    case 1:
        return (float)(-152 + 282 * at_test_uniform(random));
    case 2:
        return of_code((code & 0x807fffffu) | (uint32_t)(100 + at_test_below(random, 36)) << 23);
    default: {
        float x = middle[at_test_below(random, 10)];
        for (int steps = at_test_below(random, 4); steps > 0; steps--)
            x = nextafterf(x, code & 1 ? INFINITY : -INFINITY);
        return x;
    }
    }
}

static struct at_numerics declaring(int exponential) {
    struct at_numerics n = at_numerics_default();
    n.exp = exponential;
    return n;
}

static void test_value_and_own_bound(void **state) {
    (void)state;
    static struct scene s;
    const long rounds = 20 * at_test_effort(20);
    long finite = 0, other = 0;
    double worst = 0;
    for (long r = 0; r < rounds; r++) {
        struct at_test_random random = { (uint64_t)r };
        for (int i = 0; i < N; i++)
            s.x[i] = draw(&random);
        set(&s, N);
        at_assert_ok(at_op_exp2.evaluate(&s.problem, NULL, 0, N, &s.eval));
        for (int i = 0; i < N; i++) {
            float nearest;
            double off;
            const double want = at_exp2_mpfr(s.x[i], s.value[i], &nearest, &off);
            if (!isfinite(want) || !isfinite(s.value[i])) {
                at_assert_same(s.value[i], want);
                at_assert_same(s.limit[i], 0.0);
                other++;
                continue;
            }
            at_assert_true(off <= s.limit[i], "2^%a: %a, wanted %a, off by %g, own bound %g", (double)s.x[i],
                           s.value[i], want, off, s.limit[i]);
            worst = s.limit[i] > 0 ? fmax(worst, off / s.limit[i]) : worst;
            finite++;
        }
    }
    print_message("%ld finite, worst %.3f of the own bound; %ld not\n", finite, worst, other);
    assert_true(finite > 1000 && other > 1000 && worst > 0.25);
}

/* `units` last places away from what 2^x rounds to. */
static double away(float nearest, int units) {
    for (; units > 0; units--)
        nearest = nextafterf(nearest, INFINITY);
    for (; units < 0; units++)
        nearest = nextafterf(nearest, -INFINITY);
    return (double)nearest;
}

static int accepts(double got, double value, double limit) { return fabs(got - value) <= limit; }

/* What the declaration promises is accepted by the limit, one unit more is not: libm 1, ex2.approx 2. The model of libm is the
 * same interval about the nearest value; that of ex2.approx is one value, within the limit. */
static void test_limits_are_where_they_are_said_to_be(void **state) {
    (void)state;
    static struct scene s, model;
    for (int exponential = AT_EXP_LIBM; exponential <= AT_EXP_EX2_APPROX_FTZ; exponential++) {
        const struct at_numerics numerics = declaring(exponential);
        const int units = exponential == AT_EXP_LIBM ? 1 : 2;
        long limit_tight = 0, model_tight = 0, seen = 0;
        struct at_test_random random = { 77 };
        for (int i = 0; i < N; i++)
            s.x[i] = model.x[i] = draw(&random);
        set(&s, N);
        set(&model, N);
        at_assert_ok(at_op_exp2.evaluate(&s.problem, &numerics, 0, N, &s.eval));
        at_assert_ok(at_op_exp2.model(&model.problem, &numerics, 0, N, &model.eval));
        for (int i = 0; i < N; i++) {
            float nearest;
            at_exp2_mpfr(s.x[i], 0, &nearest, NULL);
            if (!(nearest > 0x1p-120f && nearest < 0x1p120f) &&
                !(exponential != AT_EXP_EX2_APPROX_FTZ && nearest > 0x1p-145f && nearest < 0x1p-127f))
                continue;
            if (exponential == AT_EXP_LIBM)
                at_assert_same(model.value[i], (double)nearest);
            else
                assert_true(model.limit[i] == 0 && accepts(model.value[i], s.value[i], s.limit[i]));
            for (int sign = -1; sign <= 1; sign += 2) {
                const double good = away(nearest, sign * units), bad = away(nearest, sign * (units + 1));
                /* libm promises a unit from 2^x itself: on the far side of it that is less than from its rounding;
                 * a step past a power of two is two units */
                const int promised = exponential == AT_EXP_LIBM
                                         ? fabs(good - s.value[i]) <= at_ulp(AT_F32, s.value[i])
                                         : fabs(good - (double)nearest) <= 2 * at_ulp(AT_F32, (double)nearest);
                at_assert_true(!promised || accepts(good, s.value[i], s.limit[i]), "2^%a: %a, from %a beyond %g",
                               (double)s.x[i], good, s.value[i], s.limit[i]);
                assert_true(!promised || exponential != AT_EXP_LIBM || accepts(good, model.value[i], model.limit[i]));
                if (ilogb(bad) != ilogb((double)nearest))
                    continue; /* below a power of two the steps are half as long */
                limit_tight += !accepts(bad, s.value[i], s.limit[i]);
                model_tight += !accepts(bad, model.value[i], model.limit[i]);
                seen++;
            }
        }
        print_message("exp %d: %ld looked at; a unit more is rejected by the limit in %ld, by the model in %ld\n",
                      exponential, seen, limit_tight, model_tight);
        assert_true(seen > 1000 && model_tight == seen && limit_tight == seen);
    }
}

/* Subnormal results: kept by two declarations, nothing but 0 for the third; at the border both. */
static void test_flushing(void **state) {
    (void)state;
    static struct scene s;
    static const float x[] = { -130.5f, -126.00001f, -126.0f, -125.9f, 0x1p-140f };
    struct at_numerics ftz = declaring(AT_EXP_EX2_APPROX_FTZ), kept = declaring(AT_EXP_EX2_APPROX);
    memcpy(s.x, x, sizeof x);
    set(&s, 5);
    at_assert_ok(at_op_exp2.model(&s.problem, &ftz, 0, 5, &s.eval));
    assert_true(s.value[0] == 0 && s.limit[0] == 0);
    assert_true(s.value[1] == 0 && s.limit[1] == 0);
    assert_true(s.value[2] == 0x1p-126 && s.limit[2] == 0); /* a unit less would be flushed */
    assert_true(s.value[3] > 0x1p-126 && s.limit[3] == 0);
    assert_true(s.value[4] == 1 && s.limit[4] == 0);
    at_assert_ok(at_op_exp2.model(&s.problem, &kept, 0, 5, &s.eval));
    assert_true(s.value[0] == 0x1.6a0ap-131 &&
                s.value[1] == 0x1.ffff4cp-127); /* as the unit has it: the square of a root */
    at_assert_ok(at_op_exp2.evaluate(&s.problem, &ftz, 0, 5, &s.eval));
    assert_true(s.limit[0] >= s.value[0] && s.limit[2] >= s.value[2] && s.limit[3] < 0x1p-147);
    at_assert_ok(at_op_exp2.evaluate(&s.problem, &kept, 0, 5, &s.eval));
    assert_true(s.limit[0] < s.value[0] * 0x1p-15 && s.limit[2] < s.value[2] * 0x1p-20);
}

static void test_decoys(void **state) {
    (void)state;
    static struct scene s;
    static const float x[] = { 1.5f, -130, 3 };
    const struct at_numerics libm = declaring(AT_EXP_LIBM), ftz = declaring(AT_EXP_EX2_APPROX_FTZ);
    static const double want[AT_EXP2_FAULTS][3] = {
        [AT_EXP2_BASE_E] = { 0x1.1ed3fe64fc541p2, 0, 0x1.415e5bf6fb106p4 },
        [AT_EXP2_NO_FRACTION] = { 2, 0x1p-130, 8 },
        [AT_EXP2_RECIPROCAL] = { 0x1.6a09e667f3bcdp-2, 0x1p130, 0.125 },
        [AT_EXP2_NEXT_ELEMENT] = { 0x1p-130, 8, 0x1.6a09e667f3bcdp1 },
        [AT_EXP2_FLUSHED] = { 0x1.6a09e667f3bcdp1, 0, 8 },
    };
    memcpy(s.x, x, sizeof x);
    set(&s, 3);
    for (int d = 0; d < AT_EXP2_FAULTS; d++) {
        at_assert_ok(at_op_exp2.decoy(&s.problem, &libm, d, 0, 3, &s.eval));
        for (int i = 0; i < 3; i++)
            at_assert_within(s.value[i], want[d][i], 1e-14 * want[d][i] + 1e-50);
    }
    at_assert_ok(at_op_exp2.decoy(&s.problem, &ftz, AT_EXP2_FLUSHED, 0, 3, &s.eval));
    assert_true(s.value[1] == 0x1p-130); /* declared, so no fault */
}

static void test_refusals(void **state) {
    (void)state;
    static struct scene s;
    struct at_numerics free_order = declaring(AT_EXP_LIBM);
    free_order.free_order = 1;
    set(&s, 0);
    assert_true(at_op_exp2.rows(&s.problem) == 0);
    set(&s, 4);
    at_assert_fails(at_op_exp2.model(&s.problem, &free_order, 0, 4, &s.eval), AT_UNSUPPORTED, "free_order=1");
    const struct at_numerics sigmoid = declaring(AT_EXP_TANH_APPROX);
    at_assert_fails(at_op_exp2.model(&s.problem, &sigmoid, 0, 4, &s.eval), AT_UNSUPPORTED, "no exponential");
    at_assert_fails(at_op_exp2.evaluate(&s.problem, &sigmoid, 0, 4, &s.eval), AT_UNSUPPORTED, "no exponential");
    at_exp2_own_set(&s.problem, &(struct at_exp2_own){ -1 });
    at_assert_fails(at_op_exp2.check(&s.problem), AT_USAGE, "n is -1");
    at_exp2_own_set(&s.problem, &(struct at_exp2_own){ 5 });
    at_assert_fails(at_op_exp2.check(&s.problem), AT_USAGE, "has 4 elements of f32, wanted 5");
    at_exp2_own_set(&s.problem, &(struct at_exp2_own){ 4 });
    s.problem.tensors[AT_EXP2_X].data = NULL;
    at_assert_fails(at_op_exp2.check(&s.problem), AT_USAGE, "with data");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_and_own_bound),
        cmocka_unit_test(test_limits_are_where_they_are_said_to_be),
        cmocka_unit_test(test_flushing),
        cmocka_unit_test(test_decoys),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
