/* Sums over an output: kernels that round as they say pass with half of the bound to spare, faults that lie inside every
 * element's limit do not.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel here is the exact one with weights and outputs rounded: in double, so that nothing else is in its errors. */
#include "tests/at_test.h"

#include <math.h>
#include <stdlib.h>

#include "attest/decoy.h"
#include "tests/support/built_case.h"
#include "verify/judge/aggregate.h"
#include "verify/judge/resolution.h"

/* How a kernel rounds, and what it does to its outputs. */
struct kernel {
    int cuts_p, cuts_o; /* towards 0, not to nearest */
    double times, plus; /* of the finished sum */
    int64_t head;       /* only of this head; -1: all */
};
static const struct kernel right = { .times = 1, .head = -1 };

struct bench {
    struct at_built_case built;
    struct at_answer answer;
    struct at_judgement judgement;
    struct at_numerics numerics;
    struct at_tensor got;
    const struct kernel *kernel;
};

static double cut(enum at_format format, double x) {
    const double rounded = at_round(format, fabs(x));
    const double size = rounded > fabs(x) ? at_decode(format, at_encode(format, rounded) - 1) : rounded;
    return copysign(size, x);
}

static void mix(void *context, int64_t row, enum at_stage stage, int64_t n, const double *p) {
    struct bench *b = context;
    if (stage != AT_STAGE_p)
        return;
    const struct at_problem *problem = &b->built.data.problem;
    const struct at_attn_row at = at_attn_row(problem, row);
    const enum at_format format = (enum at_format)b->numerics.p;
    const int is_meant = b->kernel->head < 0 || b->kernel->head == at.head;
    const int64_t d = problem->sizes.d;
    const double gamma = problem->op->weights == AT_WEIGHTS_GATE ? at_built_value(&b->built, "gamma", at.head) : 1;
    double o[256] = { 0 };
    for (int64_t t = 0; t < n; t++) {
        const double x = gamma * p[t];
        const double w = format == AT_F32 ? x : b->kernel->cuts_p && is_meant ? cut(format, x) : at_round(format, x);
        for (int64_t c = 0; c < d; c++)
            o[c] += w * at_built_kv(&b->built, AT_ATTN_V, at, t, c);
    }
    for (int64_t c = 0; c < d; c++) {
        const double x = is_meant ? o[c] * b->kernel->times + b->kernel->plus : o[c];
        at_store(b->got.format, b->got.data, (size_t)(row * d + c), b->kernel->cuts_o ? cut(b->got.format, x) : x);
    }
}

static void open_bench(struct bench *b, const char *line, enum at_format p) {
    *b = (struct bench){ .built = at_build_line(line), .numerics = at_numerics_default() };
    struct at_problem *problem = &b->built.data.problem;
    const int o = at_op_tensor_index(problem->op, "o");
    b->numerics.free_order = 1;
    b->numerics.p = (int)p;
    at_assert_ok(at_answer_open(problem, 1, 1, &b->answer));
    at_assert_ok(at_judgement_open(&b->answer, &b->numerics, 1, 0, 0, &b->judgement));
    b->got = problem->tensors[o];
    b->got.data = calloc((size_t)at_tensor_count(&b->got) + 1, sizeof(double));
    assert_non_null(b->got.data);
}

static void close_bench(struct bench *b) {
    at_judgement_close(&b->judgement);
    at_answer_close(&b->answer);
    at_drop_case(&b->built);
    free(b->got.data);
}

static struct at_aggregate look(struct bench *b, const struct kernel *kernel) {
    const struct at_problem *problem = &b->built.data.problem;
    struct at_eval eval = { .trace = mix, .trace_context = b };
    struct at_aggregate a;
    b->kernel = kernel;
    at_assert_ok(problem->op->evaluate(problem, NULL, 0, b->answer.rows, &eval));
    const int o = at_op_tensor_index(problem->op, "o");
    at_assert_ok(at_aggregate_judge(&b->answer, &b->numerics, o, &b->got, b->judgement.limit[o], 2, &a));
    return a;
}

static const char *const lines[] = {
    "softmax_prefill b=1 h=4 hk=2 sq=40 sk=100 d=32 dtype=bf16 data=%s seed=%d scale=0.05",
    "asynct_prefill b=1 h=4 hk=2 sq=40 sk=100 d=32 dtype=bf16 data=%s seed=%d scale=0.05",
    "softmax_prefill b=2 h=2 hk=1 sq=33/64 sk=70/64 d=64 causal=1 dtype=f16 data=%s seed=%d",
    "asynct_prefill b=2 h=2 hk=1 sq=33/64 sk=70/64 d=64 causal=1 dtype=f32 data=%s seed=%d gamma=1:-.5 clip=.0625:.75",
    "softmax_decode b=9 h=4 hk=2 sk=31/70/1/200 d=64 page=16 dtype=bf16 data=%s seed=%d",
};
enum { LINES = sizeof lines / sizeof *lines };

/* Half of the bound: the sums that independent errors make are far below what Hoeffding's inequality allows at 1e-12. */
static void right_kernels_come_no_nearer_than_half(void **state) {
    (void)state;
    static const char *const data[] = { "normal", "same_sign", "uniform", "heavy_tail", "outlier_channel" };
    static const enum at_format formats[] = { AT_F32, AT_BF16, AT_F16, AT_E4M3, AT_E5M2 };
    double most = 0;
    for (int i = 0; i < LINES; i++)
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
            for (long s = 0; s < at_test_effort(10); s++) {
                char line[256];
                struct bench b;
                snprintf(line, sizeof line, lines[i], data[(i + f + (size_t)s) % 5], (int)(100 * s) + i);
                open_bench(&b, line, formats[f]);
                const struct at_aggregate a = look(&b, &right);
                at_assert_true(a.judged == (b.got.format != AT_F32 || formats[f] != AT_F32), "%s: judged %d", line,
                               a.judged);
                at_assert_true(a.ratio <= 0.5, "%s, P in %s: ratio %g", line, at_format_info(formats[f])->name,
                               a.ratio);
                most = fmax(most, a.ratio);
                close_bench(&b);
            }
    assert_true(most > 0.01);
}

static void expect_alarm(const char *line, enum at_format p, const struct kernel *kernel, enum at_moment moment,
                         int64_t head) {
    struct bench b;
    open_bench(&b, line, p);
    const struct at_aggregate a = look(&b, kernel);
    at_assert_true(a.judged, "%s: not inside the limits", line);
    at_assert_true(a.moment_ratio[moment] > 1, "%s, P in %s, times %g plus %g: ratio %g", line, at_format_info(p)->name,
                   kernel->times, kernel->plus, a.moment_ratio[moment]);
    if (head >= 0)
        at_assert_true(a.head == head, "head %lld", (long long)a.head);
    close_bench(&b);
}

#define SOFTMAX "softmax_prefill b=1 h=4 hk=2 sq=40 sk=100 d=32 dtype=bf16 data=normal seed=3 scale=0.05"
#define SAME_SIGN "softmax_prefill b=1 h=4 hk=2 sq=40 d=32 dtype=bf16 data=same_sign seed=3"
#define ASYNCT "asynct_prefill b=1 h=4 hk=2 sq=40 sk=100 d=32 dtype=bf16 data=normal seed=3 scale=0.05"

static void errors_inside_every_limit_are_seen(void **state) {
    (void)state;
    static const struct kernel cuts_p = { .cuts_p = 1, .times = 1, .head = -1 }, cuts_all = { 1, 1, 1, 0, -1 };
    static const struct kernel large = { .times = 1.003, .head = -1 }, small = { .times = 0.997, .head = -1 };
    static const struct kernel loose = { .times = 1.03, .head = -1 },
                               shifted = { .times = 1, .plus = 2e-3, .head = -1 };
    static const struct kernel one_head = { .times = 1.005, .head = 2 };
    expect_alarm(SOFTMAX, AT_BF16, &cuts_p, AT_MOMENT_SLOPE, -1);
    expect_alarm(ASYNCT, AT_BF16, &cuts_p, AT_MOMENT_SLOPE, -1);
    expect_alarm(SOFTMAX, AT_BF16, &cuts_all, AT_MOMENT_SLOPE, -1);
    expect_alarm(SOFTMAX, AT_BF16, &large, AT_MOMENT_SLOPE, -1);
    expect_alarm(ASYNCT, AT_BF16, &large, AT_MOMENT_SLOPE, -1);
    expect_alarm(SOFTMAX, AT_BF16, &small, AT_MOMENT_SLOPE, -1);
    expect_alarm(SAME_SIGN, AT_E4M3, &loose, AT_MOMENT_SLOPE, -1);
    expect_alarm(SOFTMAX, AT_BF16, &shifted, AT_MOMENT_MEAN, -1);
    expect_alarm(SOFTMAX, AT_BF16, &one_head, AT_MOMENT_SLOPE, 2);
}

static void expect_no_alarm(const char *line, enum at_format p, double most) {
    struct bench b;
    open_bench(&b, line, p);
    const struct at_aggregate a = look(&b, &right);
    at_assert_true(a.judged && a.ratio <= most, "%s, P in %s: judged %d, ratio %g", line, at_format_info(p)->name,
                   a.judged, a.ratio);
    close_bench(&b);
}

/* Weights at an end of the gate that P's format does not have: all errors have one sign, and nothing is wrong. In one row,
 * and in rows of one key each. */
static void equal_weights_are_one_rounding(void **state) {
    (void)state;
    expect_no_alarm("asynct_prefill b=1 h=2 hk=1 sq=40 sk=60 d=32 dtype=f16 data=same_sign seed=3 clip=0.3:0.3",
                    AT_BF16, 0.5);
    expect_no_alarm("asynct_decode b=100 h=8 hk=1 sk=1 d=16 dtype=f16 data=same_sign seed=3 clip=0.3:0.3", AT_BF16,
                    0.5);
    /* equal keys have equal scores, and no end of a gate says so */
    expect_no_alarm("softmax_decode b=100 h=8 hk=1 sk=3 d=16 dtype=f16 data=same_sign seed=3 scale=1e-30", AT_BF16,
                    0.5);
}

/* Scores that hardly differ: all weights lie at one place of one cell, thousands of errors of one sign. */
static void weights_close_to_each_other_err_alike(void **state) {
    (void)state;
    for (int keys = 3; keys < 30; keys += 4)
        for (int i = 0; i < 4; i++) {
            char line[160];
            snprintf(line, sizeof line,
                     "softmax_prefill b=1 h=%d hk=1 sq=4000 sk=%d d=4 dtype=f32 data=normal scale=%s", 1 + i % 2, keys,
                     i < 2 ? "1e-4" : "1e-3");
            expect_no_alarm(line, AT_BF16, 0.5);
        }
    expect_no_alarm("softmax_decode b=900 h=2 hk=1 sk=24/25/26 d=4 dtype=f32 data=normal scale=1e-4", AT_BF16, 0.5);
}

/* Rows whose weights are alike within each and lie at places of their own. */
static void rows_err_alike_each_for_itself(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) {
        char line[300];
        int n = snprintf(line, sizeof line,
                         "softmax_decode b=7 h=1 hk=1 d=2 dtype=f32 data=same_sign seed=%d scale=1e-4 sk=", i + 1);
        for (int r = 0; r < 7; r++)
            n +=
                snprintf(line + n, sizeof line - (size_t)n, "%s%d", r ? "/" : "", 300 + (i * 611 + r * r * 377) % 1700);
        expect_no_alarm(line, AT_BF16, 0.5);
    }
}

/* A gate that leaves a few different weights: thousands of outputs that round to the same number. */
static void outputs_that_are_the_same_err_alike(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        char line[160];
        snprintf(line, sizeof line,
                 "asynct_prefill b=1 h=1 hk=1 sq=4000 sk=3 d=1 dtype=bf16 data=normal clip=0.3:0.4 sigma=1 window=1 "
                 "relu_pre=0 seed=%d",
                 i + 1);
        expect_no_alarm(line, AT_F32, 0.5);
    }
}

/* A format of few bits has cells so wide that a density falls within one: roundings to nearest have a mean. */
static void wide_cells_have_a_mean(void **state) {
    (void)state;
    expect_no_alarm("softmax_prefill b=1 h=16 hk=1 sq=200 sk=20 d=16 dtype=f16 data=same_sign seed=3", AT_E5M2, 0.5);
    expect_no_alarm("asynct_prefill b=1 h=16 hk=1 sq=200 sk=20 d=16 dtype=f16 data=same_sign seed=3", AT_E5M2, 0.5);
}

/* Rows that no bound of many roundings is needed for: one element beyond its limit, or one that is no number. */
static void what_others_settle_is_left_to_them(void **state) {
    (void)state;
    struct bench b;
    static const struct kernel wrong = { .times = 2, .head = 1 };
    open_bench(&b, SOFTMAX, AT_BF16);
    struct at_aggregate a = look(&b, &wrong);
    assert_int_equal(a.judged, 0);
    assert_int_equal(a.outside, 1);
    static const struct kernel nothing = { .times = NAN, .head = 1 };
    a = look(&b, &nothing);
    assert_int_equal(a.judged, 0);
    assert_int_equal(a.outside, 1);
    close_bench(&b);
}

/* What a case is said to resolve, it does: twice the bound off is an alarm for any right kernel made so. */
static void a_scale_error_of_the_resolution_is_seen(void **state) {
    (void)state;
    struct bench b;
    open_bench(&b, SOFTMAX, AT_BF16);
    const struct at_aggregate a = look(&b, &right);
    const double r = at_resolution(&b.answer, &b.judgement, at_op_tensor_index(b.built.data.problem.op, "o"), a.scale);
    at_assert_same(r, a.scale); /* no element resolves as much */
    at_assert_true(r < AT_DECOY_SCALE && r > 1e-4, "resolution %g", r);
    const struct kernel scaled = { .times = 1 + r, .head = -1 };
    assert_true(look(&b, &scaled).moment_ratio[AT_MOMENT_SLOPE] > 1);
    const double by_elements =
        at_resolution(&b.answer, &b.judgement, at_op_tensor_index(b.built.data.problem.op, "o"), (double)INFINITY);
    const struct kernel more = { .times = 1 + by_elements, .head = -1 };
    assert_int_equal(look(&b, &more).outside, 1);
    close_bench(&b);
}

static void a_bias_in_words(void **state) {
    (void)state;
    char text[160];
    struct at_aggregate a = { .worst = { .size = 3, .bound = 0.04, .norm = 100 },
                              .moment = AT_MOMENT_SLOPE,
                              .head = -1 };
    at_aggregate_say(&a, text, sizeof text);
    assert_string_equal(text, "biased: slope 1.03, at most 1.0004 by the declaration");
    a.worst.size = -3;
    a.head = 3;
    at_aggregate_say(&a, text, sizeof text);
    assert_string_equal(text, "biased: slope 0.97, at least 0.9996 by the declaration (head 3)");
    a.moment = AT_MOMENT_MEAN;
    at_aggregate_say(&a, text, sizeof text);
    assert_string_equal(text, "biased: mean error -0.03, at most 0.0004 by the declaration (head 3)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_kernels_come_no_nearer_than_half),
        cmocka_unit_test(errors_inside_every_limit_are_seen),
        cmocka_unit_test(equal_weights_are_one_rounding),
        cmocka_unit_test(weights_close_to_each_other_err_alike),
        cmocka_unit_test(rows_err_alike_each_for_itself),
        cmocka_unit_test(outputs_that_are_the_same_err_alike),
        cmocka_unit_test(wide_cells_have_a_mean),
        cmocka_unit_test(what_others_settle_is_left_to_them),
        cmocka_unit_test(a_scale_error_of_the_resolution_is_seen),
        cmocka_unit_test(a_bias_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
