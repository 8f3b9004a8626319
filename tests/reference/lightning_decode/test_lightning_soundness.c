/* Limits of lightning decode hold and are reached: every element of the declared arithmetic is within the limit derived for it,
 * over random declarations and problems; each term of the limit is needed; and range ends where it may.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/lightning_problem.h"

struct tally {
    long judged, range, classes;
    double worst[AT_LIGHTNING_O + 1];
};

static void judge_element(const struct at_problem *p, const struct at_numerics *numerics, int t, int64_t i, double got,
                          double want, double limit, struct tally *tally) {
    const struct at_format_info *out = at_format_info(p->tensors[t].format);
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
        fail_msg("%s[%lld]: got %.9g, exact %.12g, limit %.3g, ratio %.6f, dtype %s, d %lld\n%s",
                 p->op->tensors[t].name, (long long)i, got, want, limit, fabs(got - want) / limit,
                 at_format_info(p->dtype)->name, (long long)p->sizes.d, text);
    }
    tally->judged++;
    tally->classes += !isfinite(want);
    if (limit > 0 && isfinite(want) && isfinite(got))
        tally->worst[t] = fmax(tally->worst[t], fabs(got - want) / limit);
}

static void judge(const struct at_problem *p, const struct at_numerics *numerics, struct tally *tally) {
    struct at_test_eval exact, model;
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(at_test_eval_init(p, 1, &model));
    at_assert_ok(p->op->evaluate(p, numerics, 0, p->op->rows(p), &exact.eval));
    at_assert_ok(p->op->model(p, numerics, 0, p->op->rows(p), &model.eval));
    for (int t = AT_LIGHTNING_KV; t <= AT_LIGHTNING_O; t++)
        for (int64_t i = 0; i < at_test_count(p, t); i++) {
            at_assert_true(numerics->exp == AT_EXP_LIBM || !(model.eval.limit[t][i] > 0),
                           "an interval about a unit's bits");
            judge_element(p, numerics, t, i, model.eval.value[t][i], exact.eval.value[t][i], exact.eval.limit[t][i],
                          tally);
        }
    at_test_eval_release(&exact);
    at_test_eval_release(&model);
}

static void test_declared_arithmetic_stays_inside(void **state) {
    (void)state;
    const long want = at_test_effort(20) * 60000;
    struct tally tally = { 0 };
    for (uint64_t seed = 0; tally.judged < want; seed++) {
        struct at_test_random random = { seed };
        struct at_built_case built = at_test_lightning_draw(&random, 100);
        for (int i = 0; i < 4; i++) {
            const struct at_numerics numerics = at_test_lightning_numerics(&random);
            judge(&built.data.problem, &numerics, &tally);
        }
        at_drop_case(&built);
    }
    print_message("%ld judged (%ld not finite), %ld without limit, worst %.4f of a state's, %.4f of an answer's\n",
                  tally.judged, tally.classes, tally.range, tally.worst[AT_LIGHTNING_KV], tally.worst[AT_LIGHTNING_O]);
    assert_true(tally.worst[AT_LIGHTNING_KV] > 0.5 && tally.worst[AT_LIGHTNING_O] > 0.5);
    assert_true(tally.range > 0 && tally.range < tally.judged / 2 && tally.classes > want / 200);
}

/* ---- each term of the limit, alone or nearly so ---- */

/* One request, head, row and column. */
struct single {
    const char *line; /* its keys */
    const char *declared;
    double slope, kv, k, v, q;
};

static struct tally tally_of(struct single s) {
    char line[160];
    struct at_numerics numerics;
    struct tally tally = { 0 };
    snprintf(line, sizeof line, "lightning_decode b=1 h=1 d=1 e=1 %s", s.line);
    struct at_built_case built = at_build_line(line);
    struct at_problem *p = &built.data.problem;
    at_assert_ok(at_numerics_parse(s.declared, &numerics));
    at_test_set_all(p, "slope", s.slope);
    at_test_set_all(p, "kv", s.kv);
    at_test_set_all(p, "k", s.k);
    at_test_set_all(p, "v", s.v);
    at_test_set_all(p, "q", s.q);
    judge(p, &numerics, &tally);
    at_drop_case(&built);
    return tally;
}
#define OF(...) tally_of((struct single){ __VA_ARGS__ })

/* The state's worst of many slopes and states near 1. */
static double worst_near(const char *declared, double slope, double kv, double k, double v) {
    struct at_test_random random = { 3 };
    double worst = 0;
    for (int i = 0; i < 3000; i++) {
        const double x = (float)(kv * (1 + 0.5 * at_test_uniform(&random))), s = slope * (1 + at_test_uniform(&random));
        const struct tally t = OF("dtype=f32", declared, s, x, k, (float)(v * (1 + at_test_uniform(&random))), 0);
        worst = fmax(worst, t.worst[AT_LIGHTNING_KV]);
    }
    return worst;
}

static void test_every_term_is_reached(void **state) {
    (void)state;
    /* the sum alone, at a tie: nothing decays */
    assert_true(OF("dtype=f32", "fir_fma=0", 0, 1, 1, 0x1p-24, 1).worst[AT_LIGHTNING_KV] > 0.99);
    assert_true(OF("dtype=f32", "fir_fma=1", 0, 1, 1, 0x1p-24, 1).worst[AT_LIGHTNING_KV] > 0.4);
    /* the decayed state underflows; the answer does */
    assert_true(OF("dtype=f32", "exp=ex2_approx fir_fma=1", 1, 0x1p-148, 0, 0, 0).worst[AT_LIGHTNING_KV] > 0.4);
    assert_true(OF("dtype=f16", "fir_fma=1", 0, 0x1p-1, 0, 0, 0x1p-24).worst[AT_LIGHTNING_O] > 0.9);
    assert_true(OF("dtype=bf16", "fir_fma=1", 0, 1 + 0x1p-8, 0, 0, 1).worst[AT_LIGHTNING_O] > 0.9);
    /* ex2's argument, which a large slope makes most of; the exponential itself; libm's; all of a flushed decay */
    const double argued = worst_near("exp=ex2_approx fir_fma=1", 40, 1, 0, 0);
    const double unit = worst_near("exp=ex2_approx fir_fma=1", 0.3, 1, 0, 0);
    const double libm = worst_near("exp=libm fir_fma=1", 0.3, 1, 0, 0);
    const double added = worst_near("exp=ex2_approx fir_fma=0", 0.3, 1, 1, 1);
    print_message("ex2 of a large slope %.3f, of a small one %.3f, libm %.3f, with a product %.3f\n", argued, unit,
                  libm, added);
    assert_true(argued > 0.6 && unit > 0.35 && libm > 0.5 && added > 0.35);
    assert_true(OF("dtype=f32", "exp=ex2_approx_ftz fir_fma=1", 88, 0x1p100, 0, 0, 0).worst[AT_LIGHTNING_KV] > 0.99);
}

/* ---- ends of range ---- */

static int has_limit(struct single s, int tensor) {
    char line[160];
    struct at_numerics numerics;
    struct at_test_eval exact;
    snprintf(line, sizeof line, "lightning_decode b=1 h=1 d=1 e=1 %s", s.line);
    struct at_built_case built = at_build_line(line);
    struct at_problem *p = &built.data.problem;
    at_assert_ok(at_numerics_parse(s.declared, &numerics));
    at_test_set_all(p, "slope", s.slope);
    at_test_set_all(p, "kv", s.kv);
    at_test_set_all(p, "k", s.k);
    at_test_set_all(p, "v", s.v);
    at_test_set_all(p, "q", s.q);
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(p->op->evaluate(p, &numerics, 0, 1, &exact.eval));
    const double limit = exact.eval.limit[tensor][0];
    at_test_eval_release(&exact);
    at_drop_case(&built);
    return isfinite(limit);
}
#define HAS_LIMIT(tensor, ...) has_limit((struct single){ __VA_ARGS__ }, tensor)

static void test_range_ends(void **state) {
    (void)state;
    const int kv = AT_LIGHTNING_KV, o = AT_LIGHTNING_O;
    /* a product, a state, a decay, an answer */
    assert_true(HAS_LIMIT(kv, "dtype=f32", "", 0, 0, 0x1p100, 0x1p27, 0));
    assert_false(HAS_LIMIT(kv, "dtype=f32", "", 0, 0, 0x1p100, 0x1p28, 0));
    assert_true(HAS_LIMIT(kv, "dtype=f32", "", 0, 0x1p127, 0x1p60, 0x1p66, 0));
    assert_false(HAS_LIMIT(kv, "dtype=f32", "", 0, 0x1p127, 0x1p60, 0x1p67, 0));
    assert_true(HAS_LIMIT(kv, "dtype=f32", "", -88.5, 0.5, 0, 0, 0));
    assert_false(HAS_LIMIT(kv, "dtype=f32", "", -89, 0.5, 0, 0, 0));
    assert_true(HAS_LIMIT(o, "dtype=f32", "", 0, 0x1p100, 0, 0, 0x1p27));
    assert_false(HAS_LIMIT(o, "dtype=f32", "", 0, 0x1p100, 0, 0, 0x1p28));
    /* decayed and product apart may overflow where their sum does not, but not by one fmaf */
    assert_false(HAS_LIMIT(kv, "dtype=f32", "fir_fma=0", -1, 0x1p127, -0x1p60, 0x1.8p67, 0));
    assert_true(HAS_LIMIT(kv, "dtype=f32", "fir_fma=1", -1, 0x1.8p126, -0x1p60, 0x1p67, 0));
    /* infinities are certain unless what they meet may be 0 */
    assert_true(HAS_LIMIT(kv, "dtype=f32", "exp=ex2_approx", 80, INFINITY, 1, 1, 1));
    assert_false(HAS_LIMIT(kv, "dtype=f32", "exp=ex2_approx_ftz", 88, INFINITY, 1, 1, 1));
    assert_true(HAS_LIMIT(kv, "dtype=f32", "exp=ex2_approx", 0, 1, INFINITY, 1, 1));
    assert_true(HAS_LIMIT(o, "dtype=f32", "exp=ex2_approx", 1, 1, 0, 0, INFINITY));
    assert_false(HAS_LIMIT(o, "dtype=f32", "exp=ex2_approx", 104, 0x1p-20, 0, 0, INFINITY));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared_arithmetic_stays_inside),
        cmocka_unit_test(test_every_term_is_reached),
        cmocka_unit_test(test_range_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
