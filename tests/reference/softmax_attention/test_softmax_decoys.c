/* Each softmax decoy is the fault it is named after, changes what it should, and leaves the rest alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "softmax_attention/softmax_attention.h"
#include "tests/support/attention_problem.h"

static const struct at_op *const op = &at_op_softmax_attention;
enum { D = 4, KEYS = 9 };

/* One request of two queries and one head; the last key is hot. */
static struct at_test_problem make(int causal) {
    const int sq = 2, sk = KEYS;
    struct at_test_problem p;
    struct at_test_shape shape = { .b = 1, .d = D, .causal = causal, .dtype = AT_F32, .sq = &sq, .sk = &sk };
    at_assert_ok(at_test_attention_problem(op, &shape, 21, &p));
    for (int64_t c = 0; c < D; c++)
        at_test_set(&p.problem, "k", (KEYS - 1) * D + c, 1.5 * at_test_get(&p.problem, "q", c));
    return p;
}

static struct at_test_eval run(const struct at_problem *p, int decoy, int split) {
    struct at_test_eval e;
    struct at_numerics numerics = at_numerics_default();
    numerics.split = split;
    at_assert_ok(at_test_eval_init(p, 0, &e));
    if (decoy < 0)
        at_assert_ok(op->evaluate(p, NULL, 0, op->rows(p), &e.eval));
    else
        at_assert_ok(op->decoy(p, split < 0 ? NULL : &numerics, decoy, 0, op->rows(p), &e.eval));
    return e;
}

/* Row `row` of both outputs within rounding of double. */
static void same_row(const struct at_test_eval *got, const struct at_test_eval *want, int64_t row) {
    for (int64_t c = 0; c < D; c++)
        at_assert_within(got->eval.value[AT_SOFTMAX_O][row * D + c], want->eval.value[AT_SOFTMAX_O][row * D + c],
                         1e-13);
    at_assert_within(got->eval.value[AT_SOFTMAX_LSE][row], want->eval.value[AT_SOFTMAX_LSE][row], 1e-13);
}

/* The decoy on p equals the right answer of `twin`, and is far from the right answer of p in some row. */
static void expect_twin(struct at_test_problem *p, int decoy, struct at_test_problem *twin, int64_t rows) {
    struct at_test_eval got = run(&p->problem, decoy, 0), want = run(&twin->problem, -1, 0),
                        right = run(&p->problem, -1, 0);
    double square = 0, gap = 0;
    for (int64_t row = 0; row < rows; row++)
        same_row(&got, &want, row);
    for (int64_t i = 0; i < rows * D; i++) {
        double o = right.eval.value[AT_SOFTMAX_O][i];
        square += o * o / (double)(rows * D);
        gap = fmax(gap, fabs(got.eval.value[AT_SOFTMAX_O][i] - o));
    }
    at_assert_true(gap > sqrt(square) / 4, "%s changes o by %g only", op->decoys[decoy].name, gap);
    at_test_eval_release(&got);
    at_test_eval_release(&want);
    at_test_eval_release(&right);
    at_test_problem_release(p);
    at_test_problem_release(twin);
}

static void test_keys(void **state) {
    (void)state;
    struct at_test_problem p = make(0), twin = make(0);
    ((int32_t *)twin.problem.tensors[AT_ATTN_SEQ_LENS].data)[0] = KEYS - 1;
    expect_twin(&p, AT_SOFTMAX_LAST_KEY_DROPPED, &twin, 2);

    p = make(1); /* query 0 hides one key, query 1 none */
    twin = make(0);
    expect_twin(&p, AT_SOFTMAX_HIDDEN_KEY_ADDED, &twin, 2);
    p = make(0);
    struct at_test_eval got = run(&p.problem, AT_SOFTMAX_HIDDEN_KEY_ADDED, 0), right = run(&p.problem, -1, 0);
    same_row(&got, &right, 0); /* nothing is hidden */
    at_test_eval_release(&got);
    at_test_eval_release(&right);
    at_test_problem_release(&p);
}

/* No mask; and one of as many keys as there are queries, which begins where the request does. */
static void test_masks(void **state) {
    (void)state;
    struct at_test_problem p = make(1), twin = make(0);
    expect_twin(&p, AT_SOFTMAX_MASK_MISSING, &twin, 2);
    p = make(1);
    twin = make(1);
    ((int32_t *)twin.problem.tensors[AT_ATTN_SEQ_LENS].data)[0] = 2;
    expect_twin(&p, AT_SOFTMAX_MASK_TOP_LEFT, &twin, 2);
    p = make(0); /* without a mask both are right */
    struct at_test_eval right = run(&p.problem, -1, 0);
    for (int decoy = AT_SOFTMAX_MASK_MISSING; decoy <= AT_SOFTMAX_MASK_TOP_LEFT; decoy++) {
        struct at_test_eval got = run(&p.problem, decoy, 0);
        same_row(&got, &right, 0);
        same_row(&got, &right, 1);
        at_test_eval_release(&got);
    }
    at_test_eval_release(&right);
    at_test_problem_release(&p);
}

static void test_scale(void **state) {
    (void)state;
    struct at_test_problem p = make(0), twin = make(0);
    twin.problem.params.scale = 1;
    expect_twin(&p, AT_SOFTMAX_NO_SCALE, &twin, 2);
}

static void test_swapped_values(void **state) {
    (void)state;
    struct at_test_problem p = make(0), twin = make(0);
    for (int64_t t = 0; t < KEYS - 1; t++) /* of nine keys the last stays */
        for (int64_t c = 0; c < D; c++)
            at_test_set(&twin.problem, "v", t * D + c, at_test_get(&p.problem, "v", (t ^ 1) * D + c));
    expect_twin(&p, AT_SOFTMAX_V_SWAPPED, &twin, 2);
}

static void test_base(void **state) {
    (void)state;
    struct at_test_problem p = make(0);
    struct at_test_eval got = run(&p.problem, AT_SOFTMAX_LSE_BASE_2, 0), right = run(&p.problem, -1, 0);
    for (int64_t i = 0; i < 2 * D; i++)
        at_assert_same(got.eval.value[AT_SOFTMAX_O][i], right.eval.value[AT_SOFTMAX_O][i]);
    for (int64_t row = 0; row < 2; row++)
        at_assert_within(exp2(got.eval.value[AT_SOFTMAX_LSE][row]), exp(right.eval.value[AT_SOFTMAX_LSE][row]), 1e-12);
    at_assert_true(got.eval.value[AT_SOFTMAX_LSE][0] != right.eval.value[AT_SOFTMAX_LSE][0], "lse did not change");
    at_test_eval_release(&got);
    at_test_eval_release(&right);
    at_test_problem_release(&p);
}

static double score(const struct at_problem *p, int64_t row, int64_t t) {
    double dot = 0;
    for (int64_t c = 0; c < D; c++)
        dot += at_test_get(p, "q", row * D + c) * at_test_get(p, "k", t * D + c);
    return dot * (double)p->params.scale;
}

/* Splits of `split` keys added without their weights, spelled out. */
static void expect_unweighted(const struct at_test_problem *p, int split, int declared) {
    struct at_test_eval got = run(&p->problem, AT_SOFTMAX_SPLIT_MERGE_UNWEIGHTED, declared);
    struct at_test_eval right = run(&p->problem, -1, 0);
    for (int64_t row = 0; row < 2; row++) {
        double sum = 0, acc[D] = { 0 }, most = -INFINITY;
        for (int64_t first = 0; first < KEYS; first += split) {
            double m = -INFINITY;
            for (int64_t t = first; t < first + split && t < KEYS; t++)
                m = fmax(m, score(&p->problem, row, t));
            most = fmax(most, m);
            for (int64_t t = first; t < first + split && t < KEYS; t++) {
                double w = exp(score(&p->problem, row, t) - m);
                sum += w;
                for (int64_t c = 0; c < D; c++)
                    acc[c] += w * at_test_get(&p->problem, "v", t * D + c);
            }
        }
        for (int64_t c = 0; c < D; c++)
            at_assert_within(got.eval.value[AT_SOFTMAX_O][row * D + c], acc[c] / sum, 1e-13);
        at_assert_within(got.eval.value[AT_SOFTMAX_LSE][row], most + log(sum), 1e-13);
    }
    double gap = fabs(got.eval.value[AT_SOFTMAX_O][0] - right.eval.value[AT_SOFTMAX_O][0]);
    at_assert_true((split >= KEYS) == (gap == 0), "splits of %d change o by %g", split, gap);
    at_test_eval_release(&got);
    at_test_eval_release(&right);
}

/* An online softmax of one split in blocks of `block` keys, in double, with the fault. */
static void online(const struct at_problem *p, int64_t row, int block, int decoy, double *o, double *lse) {
    double m = -INFINITY, l = 0;
    for (int64_t c = 0; c < D; c++)
        o[c] = 0;
    for (int64_t first = 0; first < KEYS; first += block) {
        double now = m;
        for (int64_t t = first; t < first + block && t < KEYS; t++)
            now = fmax(now, score(p, row, t));
        const double factor = decoy == AT_SOFTMAX_RESCALE_MISSING ? 1 : exp(m - now);
        const double base = decoy == AT_SOFTMAX_STALE_MAXIMUM && first > 0 ? m : now;
        l *= factor;
        for (int64_t c = 0; c < D; c++)
            o[c] *= factor;
        for (int64_t t = first; t < first + block && t < KEYS; t++) {
            const double w = exp(score(p, row, t) - base);
            l += w;
            for (int64_t c = 0; c < D; c++)
                o[c] += w * at_test_get(p, "v", t * D + c);
        }
        m = now;
    }
    for (int64_t c = 0; c < D; c++)
        o[c] /= l;
    *lse = m + log(l);
}

static void test_online_faults(void **state) {
    (void)state;
    struct at_test_problem p = make(0); /* the last key is the largest: the maximum rises */
    const int decoys[] = { AT_SOFTMAX_RESCALE_MISSING, AT_SOFTMAX_STALE_MAXIMUM };
    for (int i = 0; i < 2; i++)
        for (int block = 0; block <= 4; block += 2) {
            struct at_numerics n = at_numerics_default();
            struct at_test_eval got, right = run(&p.problem, -1, 0);
            n.block = block;
            at_assert_ok(at_test_eval_init(&p.problem, 0, &got));
            at_assert_ok(op->decoy(&p.problem, &n, decoys[i], 0, 2, &got.eval));
            for (int64_t row = 0; row < 2; row++) {
                double o[D], lse;
                online(&p.problem, row, block ? block : KEYS, decoys[i], o, &lse);
                for (int64_t c = 0; c < D; c++)
                    at_assert_within(got.eval.value[AT_SOFTMAX_O][row * D + c], o[c], 1e-12);
                at_assert_within(got.eval.value[AT_SOFTMAX_LSE][row], lse, 1e-12);
            }
            const double gap = fabs(got.eval.value[AT_SOFTMAX_O][0] - right.eval.value[AT_SOFTMAX_O][0]);
            at_assert_true((block == 0) == (gap == 0), "%s, blocks of %d: o changes by %g", op->decoys[decoys[i]].name,
                           block, gap);
            at_test_eval_release(&got);
            at_test_eval_release(&right);
        }
    at_test_problem_release(&p);
}

/* 2^s is e^(s log 2). */
static void test_powers_of_2(void **state) {
    (void)state;
    struct at_test_problem p = make(0), twin = make(0);
    twin.problem.params.scale *= (float)log(2.0);
    struct at_test_eval got = run(&p.problem, AT_SOFTMAX_BASE_2, 0), want = run(&twin.problem, -1, 0);
    for (int64_t row = 0; row < 2; row++) {
        double m = -INFINITY;
        for (int64_t t = 0; t < KEYS; t++)
            m = fmax(m, score(&p.problem, row, t));
        for (int64_t c = 0; c < D; c++)
            at_assert_within(got.eval.value[AT_SOFTMAX_O][row * D + c], want.eval.value[AT_SOFTMAX_O][row * D + c],
                             1e-6);
        at_assert_within(got.eval.value[AT_SOFTMAX_LSE][row] - m, want.eval.value[AT_SOFTMAX_LSE][row] - m * log(2.0),
                         1e-6);
    }
    at_test_eval_release(&got);
    at_test_eval_release(&want);
    at_test_problem_release(&p);
    at_test_problem_release(&twin);
}

static void test_unweighted_merge(void **state) {
    (void)state;
    struct at_test_problem p = make(0);
    expect_unweighted(&p, 4, 4);
    expect_unweighted(&p, 16, 0); /* none declared: nothing to merge */
    expect_unweighted(&p, 16, -1);
    expect_unweighted(&p, 16, 16); /* one split: nothing to merge */
    at_test_problem_release(&p);
}

/* A number of splits is the split of that length. */
static void test_number_of_splits(void **state) {
    (void)state;
    struct at_test_problem p = make(0);
    struct at_numerics n = at_numerics_default();
    struct at_test_eval got, want = run(&p.problem, AT_SOFTMAX_SPLIT_MERGE_UNWEIGHTED, 6);
    n.split = n.splits = 2; /* half of 9, rounded up to pairs */
    at_assert_ok(at_test_eval_init(&p.problem, 0, &got));
    at_assert_ok(op->decoy(&p.problem, &n, AT_SOFTMAX_SPLIT_MERGE_UNWEIGHTED, 0, 2, &got.eval));
    for (int64_t i = 0; i < 2 * D; i++)
        at_assert_same(got.eval.value[AT_SOFTMAX_O][i], want.eval.value[AT_SOFTMAX_O][i]);
    at_test_eval_release(&got);
    at_test_eval_release(&want);
    at_test_problem_release(&p);
}

static void test_sum_without_a_key(void **state) {
    (void)state;
    struct at_test_problem p = make(0);
    struct at_test_eval got = run(&p.problem, AT_SOFTMAX_ONE_KEY_SUM_MISSING, 0), right = run(&p.problem, -1, 0);
    for (int64_t row = 0; row < 2; row++) {
        double lse = right.eval.value[AT_SOFTMAX_LSE][row], rest = exp(lse) - exp(score(&p.problem, row, KEYS - 1));
        at_assert_true(rest < 0.99 * exp(lse), "the last key is not hot");
        at_assert_within(got.eval.value[AT_SOFTMAX_LSE][row], log(rest), 1e-12);
        for (int64_t c = row * D; c < row * D + D; c++) {
            double o = right.eval.value[AT_SOFTMAX_O][c] * exp(lse) / rest;
            at_assert_within(got.eval.value[AT_SOFTMAX_O][c], o, 1e-12 * (1 + fabs(o)));
        }
    }
    at_test_eval_release(&got);
    at_test_eval_release(&right);
    at_test_problem_release(&p);
}

/* One key, and none: every decoy is defined, and those that need a second key change nothing. */
static void test_short_rows(void **state) {
    (void)state;
    const int sq[] = { 1, 1 }, sk[] = { 1, 0 };
    struct at_test_problem p;
    struct at_test_shape shape = { .b = 2, .d = D, .dtype = AT_BF16, .sq = sq, .sk = sk };
    at_assert_ok(at_test_attention_problem(op, &shape, 22, &p));
    struct at_test_eval right = run(&p.problem, -1, 0);
    at_assert_same(right.eval.value[AT_SOFTMAX_LSE][1], (double)-INFINITY);
    for (int decoy = 0; decoy < op->n_decoys; decoy++) {
        struct at_test_eval got = run(&p.problem, decoy, 0);
        for (int64_t i = 0; i < 2 * D; i++) {
            double want = right.eval.value[AT_SOFTMAX_O][i];
            at_assert_same(got.eval.value[AT_SOFTMAX_O][i], decoy == AT_SOFTMAX_LAST_KEY_DROPPED ? 0 : want);
        }
        at_assert_same(got.eval.value[AT_SOFTMAX_LSE][1], (double)-INFINITY);
        at_test_eval_release(&got);
    }
    at_assert_fails(op->decoy(&p.problem, NULL, op->n_decoys, 0, 1, &right.eval), AT_USAGE, "no decoy 18");
    at_test_eval_release(&right);
    at_test_problem_release(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_swapped_values),
        cmocka_unit_test(test_base),
        cmocka_unit_test(test_unweighted_merge),
        cmocka_unit_test(test_number_of_splits),
        cmocka_unit_test(test_online_faults),
        cmocka_unit_test(test_powers_of_2),
        cmocka_unit_test(test_sum_without_a_key),
        cmocka_unit_test(test_short_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
