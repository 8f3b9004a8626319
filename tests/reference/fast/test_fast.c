/* The fast tier against the plain operators: values, limits, classes, ledger, trace, threads, cross-check.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "asynct_attention/asynct_attention.h"
#include "attest/blas_alone.h"
#include "attest/blas_core.h"
#include "fast/block.h"
#include "fast/fast.h"
#include "softmax_attention/softmax_attention.h"
#include "tests/support/asynct_parameters.h"
#include "tests/support/attention_problem.h"

static const struct at_op *const operators[] = { &at_op_asynct_attention, &at_op_softmax_attention };

/* A shape and what it is there for. */
struct shape {
    const char *purpose;
    struct at_test_shape shape;
};

static const int ragged_sq[] = { 5, 0, 40, 1, 3 }, ragged_sk[] = { 64, 7, 40, 90, 0 };
static const int more_queries_sq[] = { 20 }, more_queries_sk[] = { 9 };
static const int panels_sq[] = { 33, 2 }, panels_sk[] = { 1100, 2049 };
static const int blocks_sq[] = { 300 }, blocks_sk[] = { 310 };
static const int long_sq[] = { 240 }, long_sk[] = { 9000 };
static const int group_sq[] = { 3 }, group_sk[] = { 40 };
static const int decode_sq[] = { 1, 1, 1 }, decode_sk[] = { 17, 33, 100 };

static const struct shape shapes[] = {
    { "ragged, causal, grouped heads, paged",
      { .b = 5,
        .h = 6,
        .hk = 2,
        .d = 33,
        .page = 16,
        .causal = 1,
        .sq = ragged_sq,
        .sk = ragged_sk,
        .dtype = AT_BF16 } },
    { "the same without causality",
      { .b = 5, .h = 4, .hk = 4, .d = 16, .sq = ragged_sq, .sk = ragged_sk, .dtype = AT_F16 } },
    { "rows that see nothing",
      { .b = 1, .h = 2, .hk = 1, .d = 8, .causal = 1, .sq = more_queries_sq, .sk = more_queries_sk, .dtype = AT_F32 } },
    { "more keys than a panel, values of both signs and sizes",
      { .b = 2,
        .h = 2,
        .hk = 1,
        .d = 12,
        .page = 8,
        .causal = 1,
        .sq = panels_sq,
        .sk = panels_sk,
        .dtype = AT_BF16,
        .fill = AT_TEST_WIDE,
        .q_scale = 0.01 } },
    { "more rows than a block",
      { .b = 1, .h = 4, .hk = 2, .d = 8, .causal = 1, .sq = blocks_sq, .sk = blocks_sk, .dtype = AT_F16 } },
    { "so many keys that blocks have fewer rows",
      { .b = 1, .h = 1, .d = 2, .sq = long_sq, .sk = long_sk, .dtype = AT_F16 } },
    { "a group of more heads than a block has rows",
      { .b = 1, .h = 300, .hk = 1, .d = 4, .causal = 1, .sq = group_sq, .sk = group_sk, .dtype = AT_F16 } },
    { "decode", { .b = 3, .h = 8, .hk = 4, .d = 64, .page = 16, .sq = decode_sq, .sk = decode_sk, .dtype = AT_BF16 } },
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void build(const struct at_op *op, const struct at_test_shape *shape, struct at_test_problem *out) {
    at_assert_ok(at_test_attention_problem(op, shape, 7, out));
}

/* Plain and fast evaluation of the same problem; numerics NULL: limits are the reference's own error. */
struct pair {
    struct at_test_eval plain, fast;
};

static void evaluate(const struct at_problem *problem, const struct at_numerics *numerics, struct pair *out) {
    at_assert_ok(at_test_eval_init(problem, 1, &out->plain));
    at_assert_ok(at_test_eval_init(problem, 1, &out->fast));
    at_assert_ok(problem->op->evaluate(problem, numerics, 0, problem->op->rows(problem), &out->plain.eval));
    at_assert_ok(at_fast_evaluate(problem, numerics, 2, &out->fast.eval, NULL, NULL, NULL));
}

static void release(struct pair *pair) {
    at_test_eval_release(&pair->plain);
    at_test_eval_release(&pair->fast);
}

static void assert_class_or_within(const char *what, int64_t i, double got, double want, double bound) {
    if (isfinite(want) ? !(fabs(got - want) <= bound) : !((isnan(got) && isnan(want)) || got == want))
        fail_msg("%s: element %lld is %.17g, plain %.17g, bound %.3g", what, (long long)i, got, want, bound);
}

/* Values within twice the reference's own error, every element. */
static void assert_values(const char *what, const struct at_problem *problem, const struct pair *pair) {
    for (int t = 0; t < problem->op->n_tensors; t++)
        for (int64_t i = 0; pair->plain.eval.value[t] && i < at_test_count(problem, t); i++)
            assert_class_or_within(what, i, pair->fast.eval.value[t][i], pair->plain.eval.value[t][i],
                                   2 * pair->plain.eval.limit[t][i]);
}

/* Largest fast limit over plain limit; none is smaller, but for the rounding of the sums in it. */
static double limits_wider(const char *what, const struct at_problem *problem, const struct pair *pair) {
    double widest = 0;
    for (int t = 0; t < problem->op->n_tensors; t++)
        for (int64_t i = 0; pair->plain.eval.limit[t] && i < at_test_count(problem, t); i++) {
            double fast = pair->fast.eval.limit[t][i], plain = pair->plain.eval.limit[t][i];
            if (!(fast >= plain * (1 - 1e-9)) || !(isfinite(fast) || isinf(plain)))
                fail_msg("%s: limit %lld is %.17g, plain %.17g", what, (long long)i, fast, plain);
            if (plain > 0 && isfinite(plain))
                widest = fmax(widest, fast / plain);
            else if (plain == 0)
                at_assert_true(fast == 0, "%s: limit %lld is %g, plain 0", what, (long long)i, fast);
        }
    return widest;
}

static void test_equals_plain(void **state) {
    (void)state;
    for (int o = 0; o < 2; o++)
        for (int s = 0; s < SHAPES; s++) {
            struct at_test_problem p;
            struct pair pair;
            build(operators[o], &shapes[s].shape, &p);
            evaluate(&p.problem, NULL, &pair);
            assert_values(shapes[s].purpose, &p.problem, &pair);
            release(&pair);
            at_test_problem_release(&p);
        }
}

/* AsyncT with every kind of filter, edge and gate, and a sigma and gamma for every head. */
static void test_parameters(void **state) {
    (void)state;
    struct at_test_random random = { 5 };
    for (long i = 0; i < at_test_effort(6) * 5 * SHAPES; i++) {
        struct at_test_shape shape = shapes[i % SHAPES].shape;
        struct at_test_problem p;
        struct pair pair;
        if (i % SHAPES == 5) /* long rows, of which once is enough */
            continue;
        shape.taps = 1 + at_test_below(&random, 5);
        build(&at_op_asynct_attention, &shape, &p);
        at_test_asynct_parameters(&random, &p.problem);
        evaluate(&p.problem, NULL, &pair);
        assert_values(shapes[i % SHAPES].purpose, &p.problem, &pair);
        limits_wider(shapes[i % SHAPES].purpose, &p.problem, &pair);
        release(&pair);
        at_test_problem_release(&p);
    }
}

static void test_limits_of_a_kernel(void **state) {
    (void)state;
    struct at_numerics numerics = at_numerics_default();
    numerics.split = 40;
    for (int o = 0; o < 2; o++)
        for (int s = 0; s < SHAPES; s++) {
            struct at_test_problem p;
            struct pair pair;
            numerics.p = shapes[s].shape.dtype;
            numerics.scale_on = s % 2 ? AT_SCALE_ON_Q : AT_SCALE_ON_SCORE;
            build(operators[o], &shapes[s].shape, &p);
            evaluate(&p.problem, &numerics, &pair);
            double wider = limits_wider(shapes[s].purpose, &p.problem, &pair);
            print_message("%-18s %-56s limits at most %.3f times the plain ones\n", operators[o]->name,
                          shapes[s].purpose, wider);
            /* AsyncT's sums are the same; softmax takes |v| + |o| for |v - o| */
            at_assert_true(wider <= (o == 0 ? 1 + 1e-6 : 1.5), "%s: %g", shapes[s].purpose, wider);
            release(&pair);
            at_test_problem_release(&p);
        }
}

static const int special_sq[] = { 40, 3 }, special_sk[] = { 44, 70 };
static const struct at_test_shape special_shape = {
    .b = 2, .h = 2, .hk = 1, .d = 6, .causal = 1, .sq = special_sq, .sk = special_sk, .dtype = AT_F16
};

/* Non-finite q, k and v: visible, hidden from early rows, and beside weights of zero. */
static void test_classes(void **state) {
    (void)state;
    static const struct {
        const char *tensor;
        int64_t index;
        double value;
    } plants[] = {
        { "q", 30, NAN },         { "q", 31, INFINITY },     { "k", 20 * 6 + 1, NAN },     { "k", 60 * 6, INFINITY },
        { "v", 41 * 6 + 2, NAN }, { "v", 2 * 6, -INFINITY }, { "v", 50 * 6 + 5, INFINITY }
    };
    const struct at_numerics numerics = at_numerics_default();
    for (int o = 0; o < 2; o++)
        for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++)
            for (int skips = 0; skips < 2; skips++) {
                struct at_test_problem p;
                struct pair pair;
                struct at_numerics declared = numerics;
                declared.pv_zero = skips ? AT_PV_ZERO_SKIPPED : AT_PV_ZERO_MULTIPLIED;
                build(operators[o], &special_shape, &p);
                at_test_set(&p.problem, plants[i].tensor, plants[i].index, plants[i].value);
                evaluate(&p.problem, &declared, &pair);
                assert_values(plants[i].tensor, &p.problem, &pair);
                limits_wider(plants[i].tensor, &p.problem, &pair);
                release(&pair);
                at_test_problem_release(&p);
            }
}

/* Collects traced rows by a sum that depends on row, stage and place. */
struct traced {
    double sum;
    int64_t calls;
};

static void collect(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values) {
    struct traced *t = context;
    t->calls++;
    for (int64_t i = 0; i < n; i++)
        t->sum += values[i] * (double)((row * 31 + (int64_t)stage * 7 + i) % 1009);
}

static void assert_same_ledger(const struct at_ledger *got, const struct at_ledger *want) {
    for (int s = 0; s < AT_STAGE_COUNT; s++) {
        const struct at_ledger_row *g = &got->stage[s], *w = &want->stage[s];
        at_assert_true(g->count == w->count && g->zero == w->zero && g->nan == w->nan && g->inf == w->inf &&
                           g->above_65504 == w->above_65504 && g->subnormal == w->subnormal,
                       "stage %s differs", at_stage_name((enum at_stage)s));
        at_assert_within(g->max_abs, w->max_abs, 1e-12 * w->max_abs);
        at_assert_true(g->has_first == w->has_first && at_place_compare(&g->first, &w->first) == 0,
                       "stage %s: another first place", at_stage_name((enum at_stage)s));
    }
    at_assert_true(got->clamped_low == want->clamped_low && got->clamped_high == want->clamped_high, "clamped");
}

/* Integers: both tiers have the same scores to the bit, large enough for entries beyond 65504. */
static void test_ledger_and_trace(void **state) {
    (void)state;
    struct at_test_shape shape = special_shape;
    shape.fill = AT_TEST_INTEGERS;
    shape.q_scale = 256;
    shape.k_scale = 64;
    for (int o = 0; o < 2; o++) {
        struct at_test_problem p;
        build(operators[o], &shape, &p);
        p.problem.params.scale = 0.5f;
        struct traced traced[2] = { { 0, 0 }, { 0, 0 } };
        struct at_ledger ledgers[2];
        for (int fast = 0; fast < 2; fast++) {
            struct at_eval eval = { .ledger = &ledgers[fast], .trace = collect, .trace_context = &traced[fast] };
            at_ledger_init(&ledgers[fast]);
            if (fast)
                at_assert_ok(at_fast_evaluate(&p.problem, NULL, 2, &eval, NULL, NULL, NULL));
            else
                at_assert_ok(p.problem.op->evaluate(&p.problem, NULL, 0, p.problem.op->rows(&p.problem), &eval));
        }
        assert_same_ledger(&ledgers[1], &ledgers[0]);
        at_assert_true(ledgers[0].stage[AT_STAGE_score].above_65504 > 0, "no large score: the case is too tame");
        at_assert_true(traced[1].calls == traced[0].calls && traced[0].calls > 0, "%lld calls, plain %lld",
                       (long long)traced[1].calls, (long long)traced[0].calls);
        at_assert_within(traced[1].sum, traced[0].sum, 1e-9 * fabs(traced[0].sum));
        at_test_problem_release(&p);
    }
}

static void note_progress(void *context, double share) {
    double *last = context;
    at_assert_true(share > *last && share <= 1, "progress went from %g to %g", *last, share);
    *last = share;
}

/* Bits do not depend on the number of threads; progress ends at 1. */
static void test_threads(void **state) {
    (void)state;
    struct at_test_problem p;
    struct at_test_eval one, three;
    build(&at_op_asynct_attention, &shapes[4].shape, &p);
    at_assert_ok(at_test_eval_init(&p.problem, 0, &one));
    at_assert_ok(at_test_eval_init(&p.problem, 0, &three));
    double share = 0;
    int64_t bytes_one, bytes_three;
    at_assert_ok(at_fast_evaluate(&p.problem, NULL, 1, &one.eval, &bytes_one, note_progress, &share));
    at_assert_same(share, 1.0);
    at_assert_ok(at_fast_evaluate(&p.problem, NULL, 3, &three.eval, &bytes_three, NULL, NULL));
    at_assert_true(bytes_three > 2 * bytes_one - (1 << 20) && bytes_three < 3 * bytes_one, "%lld and %lld bytes",
                   (long long)bytes_one, (long long)bytes_three);
    for (int64_t i = 0; i < at_test_count(&p.problem, AT_ASYNCT_O); i++)
        at_assert_same(three.eval.value[AT_ASYNCT_O][i], one.eval.value[AT_ASYNCT_O][i]);
    at_test_eval_release(&one);
    at_test_eval_release(&three);
    at_test_problem_release(&p);
}

/* A thread's memory for b requests of s queries and keys. */
static int64_t bytes_for(int b, int s) {
    int32_t start[33], lens[33];
    for (int i = 0; i <= b; i++) {
        start[i] = i * s;
        lens[i] = s;
    }
    struct at_problem problem = { .op = &at_op_asynct_attention, .dtype = AT_BF16 };
    problem.sizes = (struct at_sizes){ .b = b, .h = 8, .hk = 4, .d = 128, .max_sk = s, .max_sq = s };
    problem.sizes.tokens = problem.sizes.slots = (int64_t)b * s;
    problem.params = at_params_default();
    problem.tensors[AT_ATTN_QUERY_START] = (struct at_tensor){ start, AT_I32, 1, { b + 1 } };
    problem.tensors[AT_ATTN_SEQ_LENS] = (struct at_tensor){ lens, AT_I32, 1, { b } };
    return at_fast_work_bytes(&problem, 1);
}

static void test_memory_is_bounded(void **state) {
    (void)state;
    int64_t one = bytes_for(1, 2048), many = bytes_for(32, 2048), longer = bytes_for(4, 65536);
    print_message("bytes a thread, limits included: b 32 s 2048 %lld, b 4 s 65536 %lld\n", (long long)many,
                  (long long)longer);
    at_assert_true(one == many, "memory grows with b: %lld, %lld", (long long)one, (long long)many);
    at_assert_true(many < 20 << 20, "%lld bytes", (long long)many);
    at_assert_true(longer < 48 << 20, "%lld bytes", (long long)longer);
}

static void test_cross_check(void **state) {
    (void)state;
    for (int o = 0; o < 2; o++) {
        struct at_test_problem p;
        struct at_test_eval fast;
        build(operators[o], &shapes[0].shape, &p);
        at_assert_ok(at_test_eval_init(&p.problem, 0, &fast));
        at_assert_ok(at_fast_evaluate(&p.problem, NULL, 2, &fast.eval, NULL, NULL, NULL));
        double worst = -1;
        int rows = (int)p.problem.op->rows(&p.problem);
        at_assert_ok(at_fast_cross_check(&p.problem, &fast.eval, 12, 3, &worst));
        at_assert_true(worst >= 0 && worst <= 1, "worst ratio %g", worst);
        /* one element of one row, by 2^-20 of itself; every row is sampled */
        double *o_values = fast.eval.value[AT_ATTN_COMMON + (o == 0 ? AT_ASYNCT_O - AT_ATTN_COMMON : 0)];
        int64_t victim = 0;
        while (o_values[victim] == 0)
            victim++;
        double right = o_values[victim];
        o_values[victim] = right * (1 + 0x1p-20);
        at_assert_fails(at_fast_cross_check(&p.problem, &fast.eval, rows, 3, &worst), AT_BUG, "o[");
        at_assert_true(worst > 1, "worst ratio %g", worst);
        o_values[victim] = NAN;
        at_assert_fails(at_fast_cross_check(&p.problem, &fast.eval, rows, 3, &worst), AT_BUG, "o[");
        o_values[victim] = right;
        at_assert_ok(at_fast_cross_check(&p.problem, &fast.eval, rows, 3, &worst));
        at_test_eval_release(&fast);
        at_test_problem_release(&p);
    }
}

static void test_supports(void **state) {
    (void)state;
    struct at_test_problem small, large;
    const int sq[] = { 64 }, sk[] = { 2048 };
    const struct at_test_shape big = { .b = 1, .h = 4, .d = 128, .sq = sq, .sk = sk, .dtype = AT_BF16 };
    build(&at_op_asynct_attention, &shapes[0].shape, &small);
    build(&at_op_softmax_attention, &big, &large);
    at_assert_true(!at_fast_supports(&small.problem), "a small problem is worth it");
    at_assert_true(at_fast_supports(&large.problem), "a large problem is not worth it");
    struct at_op other = at_op_asynct_attention;
    struct at_problem problem = large.problem;
    struct at_eval eval = { 0 };
    problem.op = &other;
    at_assert_true(!at_fast_supports(&problem), "an unknown operator is supported");
    at_assert_fails(at_fast_evaluate(&problem, NULL, 1, &eval, NULL, NULL, NULL), AT_UNSUPPORTED, "no fast tier");
    at_assert_true(strstr(at_fast_blas_name(), "OpenBLAS") != NULL, "BLAS is called %s", at_fast_blas_name());
    at_test_problem_release(&small);
    at_test_problem_release(&large);
}

/* Without limits the weights take the place of the scores: the same values to the bit. */
static void test_values_alone(void **state) {
    (void)state;
    for (int o = 0; o < 2; o++)
        for (int s = 0; s < SHAPES; s++) {
            struct at_test_problem p;
            struct at_test_eval alone, beside;
            build(operators[o], &shapes[s].shape, &p);
            at_assert_ok(at_test_eval_init(&p.problem, 0, &alone));
            at_assert_ok(at_test_eval_init(&p.problem, 1, &beside));
            at_assert_ok(at_fast_evaluate(&p.problem, NULL, 2, &alone.eval, NULL, NULL, NULL));
            at_assert_ok(at_fast_evaluate(&p.problem, NULL, 2, &beside.eval, NULL, NULL, NULL));
            for (int t = 0; t < p.problem.op->n_tensors; t++)
                for (int64_t i = 0; alone.eval.value[t] && i < at_test_count(&p.problem, t); i++)
                    at_assert_same(alone.eval.value[t][i], beside.eval.value[t][i]);
            at_test_eval_release(&alone);
            at_test_eval_release(&beside);
            at_test_problem_release(&p);
        }
}

int main(void) {
    at_blas_alone();
    at_blas_core_choose(); /* as attest does */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_plain), cmocka_unit_test(test_limits_of_a_kernel),
        cmocka_unit_test(test_classes),      cmocka_unit_test(test_ledger_and_trace),
        cmocka_unit_test(test_threads),      cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_cross_check),  cmocka_unit_test(test_supports),
        cmocka_unit_test(test_values_alone), cmocka_unit_test(test_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
