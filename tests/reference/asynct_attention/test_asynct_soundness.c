/* AsyncT limits hold: every output of the declared arithmetic is within the limit derived for it, over
 * random declarations, problems and adversarial inputs; and range ends exactly where it may.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/asynct_parameters.h"

enum { UNITS = AT_UNIT_TC_TF32_RNA + 1 };

/* What was seen, by unit of q.k and of p.v. */
static struct tally {
    long judged, without_limit;
    double worst;
} qk_seen[UNITS], pv_seen[UNITS];

static void count(struct tally *tally, double error, double limit) {
    if (isinf(limit)) {
        tally->without_limit++;
        return;
    }
    tally->judged++;
    if (limit > 0)
        tally->worst = fmax(tally->worst, error / limit);
}

/* One large product first, then products around the accumulator's last place: swamped additions. */
static void swamp(struct at_test_random *random, struct at_problem *problem) {
    const double tiny = exp2(-(double)(8 + at_test_below(random, 17)));
    const int64_t d = problem->sizes.d;
    for (int64_t i = 0; i < at_tensor_count(&problem->tensors[AT_ATTN_Q]); i++)
        at_test_set(problem, "q", i, 1 + at_test_uniform(random));
    for (int64_t i = 0; i < at_tensor_count(&problem->tensors[AT_ATTN_K]); i++) {
        double size = 0.5 + at_test_uniform(random);
        at_test_set(problem, "k", i, i % d == 0 ? size : size * tiny);
        at_test_set(problem, "v", i, i < d ? size : size * tiny);
    }
}

static long judge(const struct at_problem *problem, const struct at_numerics *numerics) {
    struct at_test_eval exact, model;
    const int64_t rows = problem->op->rows(problem), n = at_test_count(problem, AT_ASYNCT_O);
    at_assert_ok(problem->op->check(problem));
    at_assert_ok(at_test_eval_init(problem, 1, &exact));
    at_assert_ok(at_test_eval_init(problem, 1, &model));
    at_assert_ok(problem->op->evaluate(problem, numerics, 0, rows, &exact.eval));
    at_assert_ok(problem->op->model(problem, numerics, 0, rows, &model.eval));
    for (int64_t i = 0; i < n; i++) {
        double limit = exact.eval.limit[AT_ASYNCT_O][i];
        double error = fabs(model.eval.value[AT_ASYNCT_O][i] - exact.eval.value[AT_ASYNCT_O][i]);
        if (!(error <= limit) && !isinf(limit)) {
            char text[640];
            at_assert_ok(at_numerics_format(numerics, text, sizeof text));
            fail_msg("element %lld: model %.9g, exact %.9g, limit %.3g, error/limit %.4f, dtype %s\n%s", (long long)i,
                     model.eval.value[AT_ASYNCT_O][i], exact.eval.value[AT_ASYNCT_O][i], limit, error / limit,
                     at_format_info(problem->dtype)->name, text);
        }
        assert_false(isnan(limit));
        at_assert_same(model.eval.limit[AT_ASYNCT_O][i], 0.0);
        count(&qk_seen[numerics->qk_unit], error, limit);
        count(&pv_seen[numerics->pv_unit], error, limit);
    }
    at_test_eval_release(&exact);
    at_test_eval_release(&model);
    return (long)n;
}

static void test_declared_arithmetic_stays_inside(void **state) {
    (void)state;
    static const enum at_format formats[] = { AT_F16, AT_F32, AT_BF16, AT_F16 };
    static const char *names[UNITS] = {
        "f64", "f32", "f32_fma", "tc_f32", "tc_f16", "f16_fma", [AT_UNIT_TC_TF32] = "tc_tf32", "tc_tf32_rna"
    };
    const long want = at_test_effort(20) * 50000;
    long elements = 0;
    for (uint64_t seed = 0; elements < want; seed++) {
        struct at_test_random random = { seed };
        struct at_test_shape shape = { .b = 1 + at_test_below(&random, 2),
                                       .hk = 1 + at_test_below(&random, 2),
                                       .d = 8 + at_test_below(&random, 25),
                                       .page = 4 * at_test_below(&random, 2),
                                       .taps = 1 + at_test_below(&random, 4),
                                       .causal = at_test_below(&random, 2),
                                       .max_sq = 4,
                                       .max_sk = 40,
                                       .dtype = formats[seed % 4],
                                       .fill = (enum at_test_fill)at_test_below(&random, 4) };
        shape.h = 2 * shape.hk;
        /* from scores inside the gate's interval to scores far beyond it */
        shape.q_scale = exp2((double)(at_test_below(&random, 7) - 4));
        struct at_test_problem made;
        at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, seed, &made));
        at_test_asynct_parameters(&random, &made.problem);
        if (seed % 5 == 0)
            swamp(&random, &made.problem);
        if (seed % 7 == 0)
            made.problem.params.scale = 0.25f;
        for (int i = 0; i < 4; i++) {
            struct at_numerics numerics = at_test_asynct_numerics(&random, &made.problem);
            elements += judge(&made.problem, &numerics);
        }
        at_test_problem_release(&made);
    }
    print_message("%ld outputs within their limits\n", elements);
    for (int u = 0; u < UNITS; u++) {
        if (!names[u]) /* of 8 bits */
            continue;
        print_message("%-8s qk: %7ld judged, %6ld without limit, worst %.3f; pv: %7ld, %6ld, %.3f\n", names[u],
                      qk_seen[u].judged, qk_seen[u].without_limit, qk_seen[u].worst, pv_seen[u].judged,
                      pv_seen[u].without_limit, pv_seen[u].worst);
        assert_true(qk_seen[u].judged > elements / 200 && pv_seen[u].judged > elements / 200);
    }
}

/* One key whose score, gate, P, sum and output are x, x beyond the end of one format only. */
static double limit_of(double q, double k, double v, enum at_format dtype, const struct at_numerics *numerics) {
    static const int one[] = { 1 };
    struct at_test_shape shape = { .b = 1, .d = 1, .taps = 1, .sq = one, .sk = one, .dtype = dtype };
    struct at_test_problem made;
    struct at_test_eval exact;
    at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, 1, &made));
    made.problem.params.scale = 1;
    made.problem.params.clip_max = INFINITY;
    at_test_asynct_sigma(&made.problem, 0);
    at_test_set(&made.problem, "q", 0, q);
    at_test_set(&made.problem, "k", 0, k);
    at_test_set(&made.problem, "v", 0, v);
    at_assert_ok(at_test_eval_init(&made.problem, 1, &exact));
    at_assert_ok(at_asynct_evaluate(&made.problem, numerics, 0, 1, &exact.eval));
    double limit = exact.eval.limit[AT_ASYNCT_O][0];
    at_test_eval_release(&exact);
    at_test_problem_release(&made);
    return limit;
}

/* Pairs just inside and just outside of what rounds to infinity, for each place with a range. */
static void test_range_ends(void **state) {
    (void)state;
    struct at_numerics n = at_numerics_default();
    n.p = AT_F32;
    n.qk_unit = AT_UNIT_TC_F16;
    assert_true(isfinite(limit_of(256, 255, 0x1p-10, AT_F16, &n)));
    assert_true(isinf(limit_of(256, 256, 0x1p-10, AT_F16, &n)));
    n.qk_unit = AT_UNIT_F16_FMA;
    assert_true(isfinite(limit_of(256, 255, 0x1p-10, AT_F16, &n)));
    assert_true(isinf(limit_of(256, 256, 0x1p-10, AT_F16, &n)));
    n.qk_unit = AT_UNIT_F32_FMA;
    assert_true(isfinite(limit_of(256, 256, 0x1p-10, AT_F16, &n)));
    assert_true(isinf(limit_of(0x1p100, 0x1p28, 0x1p-100, AT_F32, &n)));
    n.p = AT_F16;
    assert_true(isfinite(limit_of(256, 255, 0x1p-10, AT_F16, &n)));
    assert_true(isinf(limit_of(256, 256, 0x1p-10, AT_F16, &n)));
    n.p = AT_E4M3;
    assert_true(isfinite(limit_of(16, 28, 1, AT_F16, &n)));
    assert_true(isinf(limit_of(16, 29, 1, AT_F16, &n)));
    n.p = AT_F32;
    assert_true(isfinite(limit_of(256, 127, 2, AT_F16, &n)));
    assert_true(isinf(limit_of(256, 128, 2, AT_F16, &n)));
    assert_true(isfinite(limit_of(256, 128, 2, AT_BF16, &n)));
    n.p = AT_F16;
    n.pv_unit = AT_UNIT_TC_F16;
    n.pv_chunk = 16;
    assert_true(isfinite(limit_of(256, 127, 1.5, AT_F16, &n)));
    assert_true(isinf(limit_of(256, 128, 2, AT_F16, &n)));
    n = at_numerics_default();
    n.scale_on = AT_SCALE_ON_Q;
    assert_true(isinf(limit_of(INFINITY, 0, 1, AT_F32, &n)));
    n = at_numerics_default();
    n.pv_unit = AT_UNIT_TC_TF32_RNA;
    n.pv_chunk = 8;
    assert_true(isfinite(limit_of(1, -1, 0x1.ffdffep127, AT_F32, &n)));
    assert_true(isinf(limit_of(1, -1, 0x1.ffep127, AT_F32, &n))); /* 0 times infinity */
    n.pv_unit = AT_UNIT_TC_TF32;
    assert_true(isfinite(limit_of(1, -1, 0x1.ffep127, AT_F32, &n)));
}

/* A V that is not finite where p is 0: without effect when skipped, without limit when multiplied. */
static void test_non_finite_values(void **state) {
    (void)state;
    struct at_numerics n = at_numerics_default();
    n.pv_zero = AT_PV_ZERO_SKIPPED;
    at_assert_same(limit_of(1, -1, NAN, AT_F32, &n), 0.0);
    n.pv_zero = AT_PV_ZERO_MULTIPLIED;
    assert_true(isinf(limit_of(1, -1, NAN, AT_F32, &n)));
    at_assert_same(limit_of(1, -1, 1, AT_F32, &n), 0.0);
    assert_true(isinf(limit_of(1, 1, INFINITY, AT_F32, &n)));
    assert_true(isinf(limit_of(1, NAN, 1, AT_F32, &n)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared_arithmetic_stays_inside),
        cmocka_unit_test(test_range_ends),
        cmocka_unit_test(test_non_finite_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
