/* The plain C softmax against 200-bit arithmetic: every element of many shapes, within the reference's own error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/oracle/softmax_mpfr.h"
#include "softmax_attention/softmax_attention.h"
#include "tests/support/attention_problem.h"

static double worst_ratio;

/* Both outputs of every row; the bound is the limit without a kernel, which holds nothing but double's errors. */
static int64_t compare(const struct at_problem *p) {
    struct at_test_eval e;
    int64_t compared = 0;
    at_assert_ok(at_op_softmax_attention.check(p));
    at_assert_ok(at_test_eval_init(p, 1, &e));
    at_assert_ok(at_op_softmax_attention.evaluate(p, NULL, 0, at_op_softmax_attention.rows(p), &e.eval));
    for (int64_t row = 0; row < at_op_softmax_attention.rows(p); row++)
        for (int64_t c = 0; c < p->sizes.d; c++, compared++) {
            struct softmax_oracle want = softmax_oracle(p, row / p->sizes.h, row % p->sizes.h, c);
            double o = e.eval.value[AT_SOFTMAX_O][row * p->sizes.d + c], lse = e.eval.value[AT_SOFTMAX_LSE][row];
            double bound = e.eval.limit[AT_SOFTMAX_O][row * p->sizes.d + c];
            at_assert_within(o, want.o, bound);
            /* Not a licence: a few dozen units of double at this size of numbers. */
            at_assert_true(bound <= 1e-9 * (1 + fabs(want.o)), "own error %g beside o = %g", bound, want.o);
            if (bound > 0)
                worst_ratio = fmax(worst_ratio, fabs(o - want.o) / bound);
            if (isinf(want.lse))
                at_assert_same(lse, want.lse);
            else
                at_assert_within(lse, want.lse, e.eval.limit[AT_SOFTMAX_LSE][row]);
        }
    at_test_eval_release(&e);
    return compared;
}

static int64_t compare_shape(struct at_test_shape shape, uint64_t seed) {
    struct at_test_problem p;
    at_assert_ok(at_test_attention_problem(&at_op_softmax_attention, &shape, seed, &p));
    int64_t n = compare(&p.problem);
    at_test_problem_release(&p);
    return n;
}

static const enum at_format dtypes[] = { AT_F32, AT_F16, AT_BF16 };

static void test_named_shapes(void **state) {
    (void)state;
    const int sq[] = { 3, 0, 1, 5, 4 }, sk[] = { 9, 4, 0, 2, 4 }; /* request 3: sq > sk; 2: no key */
    for (int causal = 0; causal <= 1; causal++)
        for (int page = 0; page <= 4; page += 2)
            for (int i = 0; i < 3; i++) {
                struct at_test_shape shape = { .b = 5,
                                               .h = 4,
                                               .hk = 2,
                                               .d = 5,
                                               .page = page,
                                               .causal = causal,
                                               .sq = sq,
                                               .sk = sk,
                                               .dtype = dtypes[i] };
                at_assert_true(compare_shape(shape, 11) == 13 * 4 * 5, "an element was not compared");
            }
}

static void test_random_shapes(void **state) {
    (void)state;
    struct at_test_random random = { 2024 };
    int64_t compared = 0;
    for (long i = 0; i < at_test_effort(12) * 15; i++) {
        int hk = 1 + at_test_below(&random, 3);
        struct at_test_shape shape = { .b = 1 + at_test_below(&random, 4),
                                       .hk = hk,
                                       .h = hk * (1 + at_test_below(&random, 3)),
                                       .d = 1 + at_test_below(&random, 12),
                                       .page = at_test_below(&random, 2) * (1 + at_test_below(&random, 7)),
                                       .causal = at_test_below(&random, 2),
                                       .max_sq = 4,
                                       .max_sk = 20,
                                       .dtype = dtypes[at_test_below(&random, 3)],
                                       .fill = (enum at_test_fill)at_test_below(&random, 3),
                                       .q_scale = ldexp(1, at_test_below(&random, 6) - 2) };
        compared += compare_shape(shape, at_test_bits(&random));
    }
    at_assert_true(compared > 1000, "only %lld elements", (long long)compared);
    print_message("%lld elements, largest error / own bound %.3f\n", (long long)compared, worst_ratio);
}

/* Scores of hundreds: all but one weight vanish, and lse is as large as the scores. */
static void test_large_scores(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct at_test_shape shape = {
            .b = 2, .h = 2, .d = 8, .max_sq = 3, .max_sk = 15, .dtype = dtypes[i], .q_scale = 40, .k_scale = 10
        };
        compare_shape(shape, 5 + (uint64_t)i);
    }
}

/* Products of a million that cancel to a score of one: what the sum in double loses is in the bound. */
static void test_cancelling_scores(void **state) {
    (void)state;
    struct at_test_problem p;
    const int sq = 2, sk = 9;
    struct at_test_shape shape = { .b = 1, .d = 3, .sq = &sq, .sk = &sk, .dtype = AT_F32 };
    at_assert_ok(at_test_attention_problem(&at_op_softmax_attention, &shape, 9, &p));
    for (int64_t row = 0; row < 2; row++)
        at_test_set(&p.problem, "q", row * 3 + 2, at_test_get(&p.problem, "q", row * 3 + 1));
    for (int64_t t = 0; t < 9; t++) {
        double x = 1e6 * at_test_get(&p.problem, "k", t * 3 + 1);
        at_test_set(&p.problem, "k", t * 3 + 1, x);
        at_test_set(&p.problem, "k", t * 3 + 2, -x);
    }
    compare(&p.problem);
    at_test_problem_release(&p);
}

/* The intermediates are what they are called. */
static int traced[AT_STAGE_COUNT];
static double weight_sum;
static void on_trace(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values) {
    const struct at_problem *p = context;
    traced[stage]++;
    weight_sum = stage == AT_STAGE_p ? 0 : weight_sum;
    for (int64_t t = 0; t < n; t++) {
        double dot = 0;
        int64_t key = at_attn_kv_index(p, at_attn_row(p, row).request, t, at_attn_row(p, row).kv_head);
        for (int64_t i = 0; i < p->sizes.d; i++)
            dot += at_test_get(p, "q", row * p->sizes.d + i) * at_test_get(p, "k", key + i);
        if (stage != AT_STAGE_p)
            at_assert_within(values[t], stage == AT_STAGE_scaled ? dot * (double)p->params.scale : dot, 1e-12);
        weight_sum += stage == AT_STAGE_p ? values[t] : 0;
    }
    if (stage == AT_STAGE_p)
        at_assert_within(weight_sum, 1, 1e-14);
}

static void test_trace_and_ledger(void **state) {
    (void)state;
    const int sq[] = { 2, 1 }, sk[] = { 7, 0 };
    struct at_test_shape shape = { .b = 2, .h = 2, .d = 4, .sq = sq, .sk = sk, .dtype = AT_F16 };
    struct at_test_problem p;
    struct at_ledger ledger;
    at_assert_ok(at_test_attention_problem(&at_op_softmax_attention, &shape, 3, &p));
    at_ledger_init(&ledger);
    struct at_eval eval = { .ledger = &ledger, .trace = on_trace, .trace_context = &p.problem };
    memset(traced, 0, sizeof traced);
    at_assert_ok(at_op_softmax_attention.evaluate(&p.problem, NULL, 0, 6, &eval));
    at_assert_true(traced[AT_STAGE_score] == 4 && traced[AT_STAGE_scaled] == 4 && traced[AT_STAGE_p] == 4 &&
                       traced[AT_STAGE_gate_in] == 0,
                   "trace calls");
    at_assert_true(ledger.stage[AT_STAGE_score].count == 28 && ledger.stage[AT_STAGE_p].count == 28 &&
                       ledger.stage[AT_STAGE_pv_acc].count == 16 && ledger.stage[AT_STAGE_out].count == 24,
                   "ledger counts");
    at_assert_same(ledger.stage[AT_STAGE_p].max_abs, 1);
    at_test_problem_release(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_shapes),     cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_large_scores),     cmocka_unit_test(test_cancelling_scores),
        cmocka_unit_test(test_trace_and_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
