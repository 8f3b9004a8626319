/* The C baselines beside the references: declared orders to the bit, the others within their limits, nothing
 * read that may not be read, nothing written outside.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Random ragged problems; unmapped pages and slots past the sequences hold NaN, so one read too many shows in
 * the output. Variants run behind the real runner, $BUILD/attest-cpu. */
#include "tests/at_test.h"

#include "tests/support/attention_problem.h"
#include "tests/support/gemm_problem.h"
#include "verify/runner/launch.h"

#include <unistd.h>

static struct at_runner *runner;

static int open_runner(void **state) {
    (void)state;
    const char *build = getenv("BUILD");
    char spec[4200];
    snprintf(spec, sizeof spec, "exec '%s/attest-cpu'", build ? build : "build");
    if (at_runner_open(spec, &runner) != AT_OK)
        print_error("%s\n", at_error_trail());
    return runner ? 0 : -1;
}

static int close_runner(void **state) {
    (void)state;
    at_runner_close(runner);
    return 0;
}

/* ---- problems ---- */

static const int sk_limits[] = { 0, 1, 17, 64, 300, 600 };

/* Shape number n of a phase: everything varies, limits and odd sizes come up again and again. */
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
                                   .max_sk = sk_limits[at_test_below(&random, 6)],
                                   .dtype = dtypes[at_test_below(&random, 4)],
                                   .fill = (enum at_test_fill)at_test_below(&random, 4),
                                   .q_scale = 1,
                                   .k_scale = 1,
                                   .v_scale = 1 };
    at_assert_ok(at_test_attention_problem(op, &shape, n, out));
    struct at_params *params = &out->problem.params;
    params->fir_form = at_test_below(&random, 2);
    params->edge = at_test_below(&random, 2);
    params->relu_pre = at_test_below(&random, 4) > 0;
    params->clip_min = at_test_below(&random, 4) == 0 ? 0.125f : 0.0f;
    if (strcmp(op->name, "asynct_attention") == 0) {
        at_test_set_all(&out->problem, "gamma", 0.5 + at_test_uniform(&random));
        if (params->fir_form == AT_FIR_TAPS)
            for (int i = 0; i < shape.h * shape.taps; i++)
                at_test_set(&out->problem, "taps", i, (double)(float)at_test_normal(&random));
    }
}

/* The same for a norm or a cache write: activations N(0,2), parameters around 1, every third problem with an empty
 * batch or one channel; tokens go to every third slot but a few. `memory` is owned by the caller. */
static void make_norm(const struct at_op *op, uint64_t n, struct at_problem *problem, void **memory) {
    static const enum at_format dtypes[] = { AT_BF16, AT_F16, AT_F32, AT_BF16 };
    struct at_test_random random = { n * 0x9e3779b97f4a7c15u + 777u };
    *problem = (struct at_problem){ .op = op, .params = at_params_default(), .dtype = dtypes[n % 4] };
    problem->sizes = (struct at_sizes){ .tokens = n % 3 ? 1 + at_test_below(&random, 20) : (int64_t)(n % 2),
                                        .channels = n % 3 ? 1 + at_test_below(&random, 600) : 1,
                                        .h = 4,
                                        .hk = 2,
                                        .d = n % 3 < 2 ? 64 : 1 + at_test_below(&random, 64) };
    problem->sizes.slots = 3 * problem->sizes.tokens;
    problem->params.from = at_test_below(&random, 2);
    at_problem_shape(problem);
    int64_t bytes = 0;
    for (int t = 0; t < op->n_tensors; t++)
        bytes += at_test_count(problem, t) * 4;
    *memory = calloc(1, (size_t)bytes + 1);
    assert_non_null(*memory);
    uint8_t *at = *memory;
    for (int t = 0; t < op->n_tensors; t++) {
        struct at_tensor *tensor = &problem->tensors[t];
        int64_t count = at_test_count(problem, t);
        if (op->tensors[t].role == AT_OUT || count == 0)
            continue;
        tensor->data = at;
        at += count * 4;
        double middle = op->tensors[t].format == AT_FORMAT_F32, spread = middle != 0 ? 0.5 : 2;
        for (int64_t i = 0; i < count; i++)
            if (op->tensors[t].format == AT_FORMAT_I32)
                ((int32_t *)tensor->data)[i] = i % 7 == 5 ? -1 : (int32_t)(3 * (count - 1 - i));
            else
                at_store(tensor->format, tensor->data, (size_t)i, middle + spread * at_test_normal(&random));
    }
    at_assert_ok(op->check(problem));
}

/* ---- judging ---- */

struct tally {
    int64_t runs, declined, elements, exact;
    double worst; /* of error / limit, where there is a limit */
};

/* |got - want| <= limit for each element; NaN and infinities as classes. */
static void compare(const struct at_variant *v, const struct at_outputs *got, const struct at_test_eval *want,
                    const struct at_problem *problem, int is_model, uint64_t n, struct tally *tally) {
    for (int t = 0; t < problem->op->n_tensors; t++) {
        const double *value = want->eval.value[t], *limit = want->eval.limit[t];
        if (problem->op->tensors[t].role == AT_IN)
            continue;
        for (int64_t i = 0; i < at_test_count(problem, t); i++) {
            double x = at_tensor_get(&got->tensors[t], i), error = fabs(x - value[i]);
            int same = x == value[i] || (isnan(x) && isnan(value[i]));
            if (isinf(limit[i])) /* an f16 accumulator that can overflow: the model judges */
                continue;
            if (!same && !(error <= limit[i]))
                fail_msg("%s/%s problem %llu: %s[%lld] = %a, wanted %a within %g (%s)", v->family, v->name,
                         (unsigned long long)n, problem->op->tensors[t].name, (long long)i, x, value[i], limit[i],
                         is_model ? "model" : "limit");
            tally->elements++;
            tally->exact += same;
            if (!same && error / limit[i] > tally->worst)
                tally->worst = error / limit[i];
        }
    }
}

static void judge(int variant, const struct at_problem *problem, uint64_t n, struct tally *model, struct tally *limit) {
    const struct at_variant *v = at_runner_variant(runner, variant);
    struct at_run_reply reply;
    struct at_outputs outputs;
    struct at_test_eval want;
    at_assert_ok(at_guarded_launch(runner, variant, problem, AT_POISON_JUDGED, NULL, n, 30, &reply, &outputs));
    at_assert_true(reply.outcome != AT_RUN_FAILED, "%s/%s: %s", v->family, v->name, reply.reason);
    if (reply.outcome == AT_RUN_UNSUPPORTED) {
        model->declined++;
        return;
    }
    model->runs++;
    for (int t = 0; t < problem->op->n_tensors; t++)
        at_assert_true(!outputs.dirty[t][0], "%s/%s problem %llu: %s", v->family, v->name, (unsigned long long)n,
                       outputs.dirty[t]);
    at_assert_ok(at_test_eval_init(problem, 1, &want));
    if (!v->numerics.free_order) {
        at_assert_ok(problem->op->model(problem, &v->numerics, 0, problem->op->rows(problem), &want.eval));
        compare(v, &outputs, &want, problem, 1, n, model);
    }
    at_assert_ok(problem->op->evaluate(problem, &v->numerics, 0, problem->op->rows(problem), &want.eval));
    compare(v, &outputs, &want, problem, 0, n, limit);
    at_test_eval_release(&want);
    at_outputs_release(&outputs);
}

enum { VARIANTS_MAX = 128 };

/* Variants that are judged on the same problems, each with what was seen of it. */
struct candidates {
    int n, variant[VARIANTS_MAX];
    struct tally model[VARIANTS_MAX], limit[VARIANTS_MAX];
};

static void collect_family(const char *family, struct candidates *c) {
    memset(c, 0, sizeof *c);
    for (int i = 0; i < at_runner_variant_count(runner); i++)
        if (strcmp(at_runner_variant(runner, i)->family, family) == 0) {
            assert_true(c->n < VARIANTS_MAX);
            c->variant[c->n++] = i;
        }
}

/* All that have not been judged often enough. */
static void judge_all(struct candidates *c, const struct at_problem *problem, uint64_t n, int64_t enough) {
    for (int i = 0; i < c->n; i++)
        if (c->model[i].runs < enough)
            judge(c->variant[i], problem, n, &c->model[i], &c->limit[i]);
}

static const struct at_variant *tell(const struct candidates *c, int i) {
    const struct at_variant *v = at_runner_variant(runner, c->variant[i]);
    const struct tally *model = &c->model[i];
    print_message("%s/%s: %lld runs, %lld declined; model %lld of %lld equal; worst error/limit %.3g\n", v->family,
                  v->name, (long long)model->runs, (long long)model->declined, (long long)model->exact,
                  (long long)model->elements, c->limit[i].worst);
    return v;
}

/* All variants of a family on the same random problems. */
static void judge_family(const char *family, const char *op_name, int decode) {
    const struct at_op *op = at_op_find(op_name);
    assert_non_null(op);
    /* few suit a variant for paged keys alone; at fast effort the first that does is enough */
    const uint64_t problems = (uint64_t)(48 * at_test_effort(3));
    static struct candidates all;
    collect_family(family, &all);
    for (uint64_t n = 0; n < problems; n++) {
        struct at_test_problem problem;
        make_problem(op, decode, n, &problem);
        judge_all(&all, &problem.problem, n, at_test_effort(1000));
        at_test_problem_release(&problem);
    }
    for (int i = 0; i < all.n; i++) {
        const struct at_variant *v = tell(&all, i);
        const struct tally *model = &all.model[i];
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
static void test_gemm(void **state) {
    (void)state;
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16, AT_E4M3, AT_E5M2 };
    const uint64_t problems = (uint64_t)(15 * at_test_effort(10));
    static struct candidates all;
    collect_family("gemm", &all);
    for (uint64_t n = 0; n < problems; n++) {
        struct at_test_random random = { n };
        const struct at_test_gemm_shape shape = { .m = at_test_below(&random, 70),
                                                  .n = 1 + at_test_below(&random, 70),
                                                  .k = 1 + at_test_below(&random, 200),
                                                  .dtype = formats[n % 5],
                                                  .out = formats[n / 5 % 3],
                                                  .scale = 0.5 + at_test_uniform(&random) };
        struct at_test_problem made;
        at_test_gemm_problem(&shape, &made);
        for (int64_t at = 0; at < shape.m * shape.k; at++)
            at_test_set(&made.problem, "a", at, at_test_normal(&random));
        for (int64_t at = 0; at < shape.n * shape.k; at++)
            at_test_set(&made.problem, "b", at, at_test_normal(&random));
        judge_all(&all, &made.problem, n, INT64_MAX);
        at_test_problem_release(&made);
    }
    for (int i = 0; i < all.n; i++) {
        const struct at_variant *v = tell(&all, i);
        at_assert_true(all.model[i].runs > 2 && all.limit[i].elements > 0, "%s/%s was not judged", v->family, v->name);
        assert_int_equal(all.model[i].exact, all.model[i].elements);
    }
    assert_true(all.n >= 9);
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
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        struct tally model = { 0 }, limit = { 0 };
        if (strcmp(v->family, "exp2") != 0)
            continue;
        judge(i, &problem, 1, &model, &limit);
        ran += model.runs > 0;
        to_the_bit += model.exact == model.elements;
        at_assert_true((v->numerics.exp == AT_EXP_LIBM) == (model.exact < model.elements), "%s/%s", v->family, v->name);
        print_message("%s/%s: model %lld of %lld equal; worst error/limit %.3g\n", v->family, v->name,
                      (long long)model.exact, (long long)model.elements, limit.worst);
    }
    assert_true(ran == 3 && to_the_bit == 2);
}

/* Every variant of every family whose operator is no attention, product or exponential: all declare their order, so all are judged
 * to the bit. */
static void test_norms(void **state) {
    (void)state;
    const uint64_t problems = (uint64_t)(12 * at_test_effort(10));
    int variants = 0;
    for (int i = 0; i < at_family_count(); i++) {
        const struct at_family *family = at_family_at(i);
        /* tensor_core has patterns of its own: tests/cli/test_study.sh; counts are compared with those of recordings:
         * tests/reference/score_counts/test_score_counts_oracle.c */
        if (strstr(family->op, "attention") || strcmp(family->op, "dot_product_add") == 0 ||
            strcmp(family->op, "gemm") == 0 || strcmp(family->op, "exp2") == 0 ||
            strcmp(family->op, "score_counts") == 0)
            continue;
        static struct candidates all;
        collect_family(family->name, &all);
        for (uint64_t n = 0; n < problems; n++) {
            struct at_problem problem;
            void *memory;
            make_norm(at_op_find(family->op), n, &problem, &memory);
            judge_all(&all, &problem, n, INT64_MAX);
            free(memory);
        }
        for (int k = 0; k < all.n; k++) {
            const struct at_variant *v = tell(&all, k);
            at_assert_true(all.model[k].runs > 4 && all.model[k].elements > 0, "%s/%s was not judged", v->family,
                           v->name);
            assert_int_equal(all.model[k].exact, all.model[k].elements);
        }
        variants += all.n;
    }
    assert_true(variants >= 12);
}

/* Whether a variant declines a request with two queries for that reason: it may give the format's first. */
static int declines_two_queries(int variant, enum at_format dtype) {
    const int sq[] = { 2 }, sk[] = { 5 };
    const struct at_test_shape shape = { .b = 1, .d = 64, .page = 16, .sq = sq, .sk = sk, .dtype = dtype };
    const struct at_variant *v = at_runner_variant(runner, variant);
    struct at_test_problem problem;
    struct at_run_reply reply;
    struct at_outputs outputs;
    at_assert_ok(at_test_attention_problem(at_op_find(at_family_find(v->family)->op), &shape, 1, &problem));
    at_assert_ok(at_guarded_launch(runner, variant, &problem.problem, AT_POISON_JUDGED, NULL, 1, 30, &reply, &outputs));
    assert_int_equal(reply.outcome, AT_RUN_UNSUPPORTED);
    at_test_problem_release(&problem);
    return strstr(reply.reason, "one query") != NULL;
}

/* Decode variants decline a request with two queries instead of answering for one of them. */
static void test_decode_declines(void **state) {
    (void)state;
    int declined = 0;
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        const struct at_family *family = at_family_find(v->family);
        assert_non_null(family);
        if (!family->decode)
            continue;
        const int f16 = declines_two_queries(i, AT_F16), bf16 = declines_two_queries(i, AT_BF16);
        at_assert_true(f16 || bf16, "%s/%s gives no such reason", v->family, v->name);
        declined++;
    }
    assert_true(declined >= 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asynct_decode),  cmocka_unit_test(test_asynct_prefill),
        cmocka_unit_test(test_softmax_decode), cmocka_unit_test(test_softmax_prefill),
        cmocka_unit_test(test_gemm),           cmocka_unit_test(test_exp2),
        cmocka_unit_test(test_norms),          cmocka_unit_test(test_decode_declines),
    };
    return cmocka_run_group_tests(tests, open_runner, close_runner);
}
