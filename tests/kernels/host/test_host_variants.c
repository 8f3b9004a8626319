/* The C baselines beside the references: declared orders to the bit, the others within their limits, nothing
 * read that may not be read, nothing written outside.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Random ragged problems; unmapped pages and slots past the sequences hold NaN, so one read too many shows in
 * the output. Variants run behind the real runner, $BUILD/attest-cpu. */
#include "tests/at_test.h"

#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "tests/support/gemm_problem.h"
#include "tests/support/judge_variants.h"

/* ---- problems ---- */

/* Of decode up to three blocks of 256 and two of 512 keys; of prefill, whose tiles have 128 at most, three of these: 40 rows a
 * head make it dear. */
static const int decode_sk_limits[] = { 0, 1, 17, 64, 300, 600 }, prefill_sk_limits[] = { 0, 1, 17, 64, 150, 300 };

/* Shape number n of a phase: everything varies, limits and odd sizes come up again and again. Every fourth is what kernels
 * are written for, three taps, a gate from 0 to 1 and 64 elements a head: those that take nothing else would see none. */
static void make_problem(const struct at_op *op, int decode, uint64_t n, struct at_test_problem *out) {
    struct at_test_random random = { n * 0x9e3779b97f4a7c15u + 12345u };
    static const int heads[][2] = { { 1, 1 }, { 2, 1 }, { 4, 2 }, { 3, 3 } }, sizes[] = { 1, 8, 17, 32, 64 };
    static const enum at_format dtypes[] = { AT_F16, AT_BF16, AT_F32, AT_F16 };
    int h = at_test_below(&random, 4);
    struct at_test_shape shape = { .b = 1 + at_test_below(&random, 3),
                                   .h = heads[h][0],
                                   .hk = heads[h][1],
                                   .d = sizes[at_test_below(&random, 5)],
                                   .page = at_test_below(&random, 2) * (1 + at_test_below(&random, 16)),
                                   .taps = 1 + at_test_below(&random, 4),
                                   .causal = at_test_below(&random, 2),
                                   .max_sq = decode ? 1 : 1 + at_test_below(&random, 40),
                                   .max_sk = (decode ? decode_sk_limits : prefill_sk_limits)[at_test_below(&random, 6)],
                                   .dtype = dtypes[at_test_below(&random, 4)],
                                   .fill = (enum at_test_fill)at_test_below(&random, 4),
                                   .q_scale = 1,
                                   .k_scale = 1,
                                   .v_scale = 1 };
    const int usual = n % 4 == 3;
    if (usual) {
        shape.d = 64;
        shape.taps = 3;
    }
    at_assert_ok(at_test_attention_problem(op, &shape, n, out));
    struct at_params *params = &out->problem.params;
    params->fir_form = at_test_below(&random, 2);
    params->edge = usual ? AT_EDGE_ZERO : at_test_below(&random, 2);
    params->relu_pre = usual || at_test_below(&random, 4) > 0;
    params->clip_min = !usual && at_test_below(&random, 4) == 0 ? 0.125f : 0.0f;
    if (strcmp(op->name, "asynct_attention") == 0) {
        at_test_set_all(&out->problem, "gamma", 0.5 + at_test_uniform(&random));
        if (params->fir_form == AT_FIR_TAPS)
            for (int i = 0; i < shape.h * shape.taps; i++)
                at_test_set(&out->problem, "taps", i, (double)(float)at_test_normal(&random));
    }
}

/* All variants of a family on the same random problems. */
static void judge_family(const char *family, const char *op_name, int decode) {
    const struct at_op *op = at_op_find(op_name);
    assert_non_null(op);
    /* few suit a variant for paged keys alone: 48 have one that does */
    const uint64_t problems = 48 + (uint64_t)at_test_effort(12);
    static struct at_candidates all;
    at_collect_family(family, &all);
    for (uint64_t n = 0; n < problems; n++) {
        struct at_test_problem problem;
        make_problem(op, decode, n, &problem);
        for (int i = 0; i < all.n; i++) {
            /* kernels on the SIMT machine are most of the time, many take nearly every problem, and the cases of @check are theirs */
            const int baseline = strncmp(at_runner_variant(at_host_runner, all.variant[i])->name, "00_", 3) == 0;
            if (all.model[i].runs < at_test_effort(baseline ? 24 : 6))
                at_judge_variant(all.variant[i], &problem.problem, n, &all.model[i], &all.limit[i]);
        }
        at_test_problem_release(&problem);
    }
    for (int i = 0; i < all.n; i++) {
        const struct at_variant *v = at_tell(&all, i);
        const struct at_tally *model = &all.model[i];
        at_assert_true(model->runs > (int64_t)problems / 100, "%s/%s took only %lld problems", v->family, v->name,
                       (long long)model->runs);
        at_assert_true(!decode == !strstr(v->family, "decode"), "%s is not of this phase", v->family);
        if (strcmp(op_name, "asynct_attention") == 0)
            assert_int_equal(model->exact, model->elements);
    }
    assert_true(all.n >= 5);
}

static void test_asynct_decode(void **state) {
    (void)state;
    judge_family("asynct_decode", "asynct_attention", 1);
}

static void test_asynct_prefill(void **state) {
    (void)state;
    judge_family("asynct_prefill", "asynct_attention", 0);
}

static void test_softmax_decode(void **state) {
    (void)state;
    judge_family("softmax_decode", "softmax_attention", 1);
}

static void test_softmax_prefill(void **state) {
    (void)state;
    judge_family("softmax_prefill", "softmax_attention", 0);
}

/* Products of every format, in any of which a variant may be at home: ragged sizes, factors N(0,1). */
static void judge_products(const char *family, enum at_gemm_layout layout, int max_m, int least_variants) {
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16, AT_E4M3, AT_E5M2 };
    const uint64_t problems = (uint64_t)(20 * at_test_effort(3));
    static struct at_candidates all;
    at_collect_family(family, &all);
    for (uint64_t n = 0; n < problems; n++) {
        struct at_test_random random = { n };
        const struct at_test_gemm_shape shape = {
            .m = at_test_below(&random, max_m + 1),
            .n = n % 4 < 2 ? 8 * (1 + at_test_below(&random, 9)) : 1 + at_test_below(&random, 70),
            .k = n % 3 ? 8 * (1 + at_test_below(&random, 25)) : 1 + at_test_below(&random, 200),
            .dtype = formats[n % 5],
            .out = formats[n / 5 % 3],
            .scale = 0.5 + at_test_uniform(&random),
            .layout = layout
        };
        struct at_test_problem made;
        at_test_gemm_problem(&shape, &made);
        for (int64_t at = 0; at < shape.m * shape.k; at++)
            at_test_set(&made.problem, "a", at, at_test_normal(&random));
        for (int64_t at = 0; at < shape.n * shape.k; at++)
            at_test_set(&made.problem, layout == AT_GEMM_NK ? "b" : "w", at, at_test_normal(&random));
        at_judge_all(&all, &made.problem, n, INT64_MAX);
        at_test_problem_release(&made);
    }
    for (int i = 0; i < all.n; i++) {
        const struct at_variant *v = at_tell(&all, i);
        at_assert_true(all.model[i].runs > 2 && all.limit[i].elements > 0, "%s/%s was not judged", v->family, v->name);
        assert_int_equal(all.model[i].exact, all.model[i].elements);
    }
    assert_true(all.n >= least_variants);
}

static void test_gemm(void **state) {
    (void)state;
    judge_products("gemm", AT_GEMM_NK, 69, 9);
}

static void test_gemv(void **state) {
    (void)state;
    judge_products("gemv", AT_GEMM_KN, 8, 7);
}

/* The exponential: the library's within what it declares, and not always the nearest; those by ex2.approx have the unit's bits. */
static void test_exp2(void **state) {
    (void)state;
    enum { N = 20000 };
    static float x[N];
    struct at_problem problem;
    struct at_test_random random = { 2 };
    int ran = 0, to_the_bit = 0;
    at_problem_init(&problem, at_op_find("exp2"), AT_F32);
    at_scalar_set(&problem, at_op_scalar(problem.op, "n"), N);
    at_problem_shape(&problem);
    problem.tensors[0].data = x;
    for (int i = 0; i < N; i++)
        x[i] = i % 8 ? (float)(-152 + 279 * at_test_uniform(&random)) : (float)(at_test_below(&random, 280) - 160);
    x[3] = (float)NAN;
    x[4] = INFINITY;
    x[5] = -INFINITY;
    x[6] = 0x1p-140f;
    for (int i = 0; i < at_runner_variant_count(at_host_runner); i++) {
        const struct at_variant *v = at_runner_variant(at_host_runner, i);
        struct at_tally model = { 0 }, limit = { 0 };
        if (strcmp(v->family, "exp2") != 0)
            continue;
        at_judge_variant(i, &problem, 1, &model, &limit);
        ran += model.runs > 0;
        to_the_bit += model.exact == model.elements;
        at_assert_true((v->numerics.exp == AT_EXP_LIBM) == (model.exact < model.elements), "%s/%s", v->family, v->name);
        print_message("%s/%s: model %lld of %lld equal; worst error/limit %.3g\n", v->family, v->name,
                      (long long)model.exact, (long long)model.elements, limit.worst);
    }
    assert_true(ran == 3 && to_the_bit == 2);
}

/* The special-function unit: every instruction has a variant that gives its bits, those of pairs with an odd element too. */
static void test_special_function(void **state) {
    (void)state;
    enum { N = 1001 };
    static uint32_t x[N];
    const struct at_op *op = at_op_find("special_function");
    const struct at_scalar *instruction = at_op_scalar(op, "instruction");
    struct at_test_random random = { 3 };
    for (int k = 0; instruction->text(k); k++) {
        struct at_problem problem;
        int ran = 0;
        at_problem_init(&problem, op, AT_F32);
        at_scalar_set(&problem, at_op_scalar(op, "n"), N);
        at_scalar_set(&problem, instruction, k);
        op->complete(&problem, ~0u);
        at_problem_shape(&problem);
        problem.tensors[0].data = x;
        for (int i = 0; i < N; i++)
            at_store(problem.dtype, x, (size_t)i, 2 * at_test_normal(&random));
        for (int i = 0; i < at_runner_variant_count(at_host_runner); i++) {
            struct at_tally model = { 0 }, limit = { 0 };
            if (strcmp(at_runner_variant(at_host_runner, i)->family, "special_function") != 0)
                continue;
            at_judge_variant(i, &problem, 1, &model, &limit);
            ran += model.runs > 0;
            assert_true(model.exact == model.elements && model.elements == (model.runs ? N : 0));
        }
        at_assert_true(ran == 1, "%s: %d variants", instruction->text(k), ran);
    }
}

/* Whether a variant declines a request with two queries for that reason: it may give the format's first. */
static int declines_two_queries(int variant, enum at_format dtype) {
    const int sq[] = { 2 }, sk[] = { 5 };
    const struct at_test_shape shape = { .b = 1, .d = 64, .page = 16, .sq = sq, .sk = sk, .dtype = dtype };
    const struct at_variant *v = at_runner_variant(at_host_runner, variant);
    struct at_test_problem problem;
    struct at_run_reply reply;
    struct at_outputs outputs;
    at_assert_ok(at_test_attention_problem(at_op_find(at_family_find(v->family)->op), &shape, 1, &problem));
    at_assert_ok(
        at_guarded_launch(at_host_runner, variant, &problem.problem, AT_POISON_JUDGED, NULL, 1, 30, &reply, &outputs));
    assert_int_equal(reply.outcome, AT_RUN_UNSUPPORTED);
    at_test_problem_release(&problem);
    return strstr(reply.reason, "one query") != NULL;
}

/* Decode variants decline a request with two queries instead of answering for one of them. */
static void test_decode_declines(void **state) {
    (void)state;
    int declined = 0;
    for (int i = 0; i < at_runner_variant_count(at_host_runner); i++) {
        const struct at_variant *v = at_runner_variant(at_host_runner, i);
        const struct at_family *family = at_family_find(v->family);
        assert_non_null(family);
        if (!family->decode || at_op_find(family->op)->kind != AT_KIND_ATTENTION)
            continue;
        const int f16 = declines_two_queries(i, AT_F16), bf16 = declines_two_queries(i, AT_BF16);
        at_assert_true(f16 || bf16, "%s/%s gives no such reason", v->family, v->name);
        declined++;
    }
    assert_true(declined >= 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asynct_decode),
        cmocka_unit_test(test_asynct_prefill),
        cmocka_unit_test(test_softmax_decode),
        cmocka_unit_test(test_softmax_prefill),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemv),
        cmocka_unit_test(test_exp2),
        cmocka_unit_test(test_special_function),
        cmocka_unit_test(test_decode_declines),
    };
    return cmocka_run_group_tests(tests, at_open_host_runner, at_close_host_runner);
}
