/* Norm limits hold: every output of the declared arithmetic is within the limit derived for it, over random
 * declarations, problems and adversarial inputs; and range ends exactly where it may.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "rms_norm/rms_norm.h"
#include "tests/support/norm_problem.h"

/* What was seen of one operator. */
struct tally {
    long judged, range, classes, on_edge;
    double worst, worst_f64;
};

/* A finite limit promises a number that close to the exact one, or, where that is not finite, one of its class. */
static void judge_element(const struct at_problem *p, const struct at_numerics *numerics, const char *name, int64_t i,
                          double got, double want, double limit, struct tally *tally) {
    at_assert_true(limit >= 0, "%s of %s: limit %g", name, p->op->name, limit);
    if (isinf(limit)) {
        tally->range++;
        return;
    }
    const int same_class = (isnan(got) && isnan(want)) || got == want;
    if (!(isfinite(want) ? fabs(got - want) <= limit : same_class)) {
        char text[640];
        at_assert_ok(at_numerics_format(numerics, text, sizeof text));
        fail_msg("%s %s[%lld]: got %.9g, exact %.12g, limit %.3g, ratio %.6f, dtype %s, from %d, eps %g, %lld "
                 "channels\n%s",
                 p->op->name, name, (long long)i, got, want, limit, fabs(got - want) / limit,
                 at_format_info(p->dtype)->name, p->params.from, (double)p->params.eps, (long long)p->sizes.channels,
                 text);
    }
    tally->judged++;
    tally->classes += !isfinite(want);
    if (limit > 0 && isfinite(want)) {
        double *worst = numerics->qk_unit == AT_UNIT_F64 ? &tally->worst_f64 : &tally->worst;
        tally->on_edge += fabs(got - want) > limit / 2;
        *worst = fmax(*worst, fabs(got - want) / limit);
    }
}

static void judge(const struct at_problem *p, const struct at_numerics *numerics, struct tally *tally) {
    const struct at_op *op = p->op;
    struct at_test_eval exact, model;
    at_assert_ok(op->check(p));
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(at_test_eval_init(p, 1, &model));
    at_assert_ok(op->evaluate(p, numerics, 0, op->rows(p), &exact.eval));
    at_assert_ok(op->model(p, numerics, 0, op->rows(p), &model.eval));
    for (int t = 0; t < op->n_tensors; t++)
        for (int64_t i = 0; op->tensors[t].role != AT_IN && i < at_test_count(p, t); i++) {
            at_assert_same(model.eval.limit[t][i], 0.0);
            judge_element(p, numerics, op->tensors[t].name, i, model.eval.value[t][i], exact.eval.value[t][i],
                          exact.eval.limit[t][i], tally);
        }
    at_test_eval_release(&exact);
    at_test_eval_release(&model);
}

static void test_declared_arithmetic_stays_inside(void **state) {
    (void)state;
    const long want = at_test_effort(20) * 100000 / AT_TEST_NORMS;
    long elements = 0, classes = 0, range = 0;
    for (int op = 0; op < AT_TEST_NORMS; op++) {
        struct tally tally = { 0 };
        for (uint64_t seed = 0; tally.judged < want; seed++) {
            struct at_test_random random = { seed * AT_TEST_NORMS + (uint64_t)op };
            struct at_test_problem made;
            at_test_norm_draw(at_test_norm_op(op), &random, 64, &made);
            for (int i = 0; i < 4; i++) {
                struct at_numerics numerics = at_test_norm_numerics(&random);
                judge(&made.problem, &numerics, &tally);
            }
            at_test_problem_release(&made);
        }
        print_message("%-24s %7ld judged (%ld not finite), %6ld without limit, worst %.4f, f64 %.4f, %ld beyond half\n",
                      at_test_norm_op(op)->name, tally.judged, tally.classes, tally.range, tally.worst, tally.worst_f64,
                      tally.on_edge);
        assert_true(tally.worst > 0.5 && tally.on_edge > 0);
        elements += tally.judged;
        classes += tally.classes;
        range += tally.range;
    }
    print_message("%ld outputs within their limits\n", elements);
    assert_true(range > 0 && range < elements / 4 && classes > elements / 1000);
}

/* A kernel of its own whose rsqrt is as far off as the special-function unit can be is inside too, for f32 rows of many
 * sizes. */
static void test_another_rsqrt_stays_inside(void **state) {
    (void)state;
    struct at_numerics numerics = at_numerics_default();
    struct tally tally = { 0 };
    const long want = at_test_effort(20) * 5000;
    numerics.rsqrt = AT_RSQRT_APPROX;
    for (uint64_t seed = 0; tally.judged < want; seed++) {
        struct at_test_random random = { seed };
        struct at_test_problem made;
        struct at_test_eval exact;
        float got[64];
        at_test_norm_draw(&at_op_rms_norm, &random, 64, &made);
        const struct at_problem *p = &made.problem;
        if (p->dtype == AT_F32) {
            at_assert_ok(at_test_eval_init(p, 1, &exact));
            at_assert_ok(p->op->evaluate(p, &numerics, 0, p->sizes.tokens, &exact.eval));
            for (int64_t row = 0; row < p->sizes.tokens; row++) {
                const int64_t n = p->sizes.channels;
                at_test_rms_kernel(n, (const float *)p->tensors[AT_RMS_X].data + row * n, p->tensors[AT_RMS_GAMMA].data,
                                   p->params.eps, at_test_below(&random, 2) ? 1 : -1, got);
                for (int64_t i = 0; i < n; i++)
                    judge_element(p, &numerics, "y", i, (double)got[i], exact.eval.value[AT_RMS_Y][row * n + i],
                                  exact.eval.limit[AT_RMS_Y][row * n + i], &tally);
            }
            at_test_eval_release(&exact);
        }
        at_test_problem_release(&made);
    }
    print_message("rsqrt as far off as the unit: %ld judged, %ld without limit, worst %.4f\n", tally.judged,
                  tally.range, tally.worst);
    assert_true(tally.worst > 0.5);
}

/* ---- ends of range ---- */

/* One element of one channel; the members left 0 mean x 1, res 0, alpha, gamma 1, beta 0. */
struct single {
    const char *op, *output;
    enum at_format dtype;
    double x, res, alpha, gamma, beta;
    float lo, hi;
    int from, clamp, rsqrt;
};

static void set_if(struct at_problem *p, const char *name, double value) {
    if (at_op_tensor_index(p->op, name) >= 0)
        at_test_set_all(p, name, value);
}

/* The limit of the single element; infinite means class RANGE. Checks that the model keeps it. */
static double limit_of(struct single s) {
    struct at_test_norm_shape shape = { .tokens = 1, .channels = 1, .dtype = s.dtype };
    struct at_numerics numerics = at_numerics_default();
    struct at_test_problem made;
    struct at_test_eval exact;
    struct tally tally = { 0 };
    const int out = at_op_tensor_index(at_op_find(s.op), s.output);
    numerics.clamp = s.clamp;
    numerics.rsqrt = s.rsqrt;
    at_test_norm_problem(at_op_find(s.op), &shape, &made);
    struct at_problem *p = &made.problem;
    set_if(p, "x", s.x != 0 ? s.x : 1);
    set_if(p, "a", s.x != 0 ? s.x : 1);
    set_if(p, "res", s.res);
    set_if(p, "alpha", s.alpha != 0 ? s.alpha : 1);
    set_if(p, "alpha_post", s.alpha != 0 ? s.alpha : 1);
    set_if(p, "gamma", s.gamma != 0 ? s.gamma : 1);
    set_if(p, "gamma_post", s.gamma != 0 ? s.gamma : 1);
    set_if(p, "beta", s.beta);
    p->params.lo = s.lo;
    p->params.hi = s.hi;
    p->params.eps = 0;
    p->params.from = s.from;
    judge(p, &numerics, &tally);
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(p->op->evaluate(p, &numerics, 0, 1, &exact.eval));
    double limit = exact.eval.limit[out][0];
    at_test_eval_release(&exact);
    at_test_problem_release(&made);
    return limit;
}

#define ENDS(...) limit_of((struct single){ __VA_ARGS__ })

/* Pairs just inside and at what rounds to infinity, for each place with a range. */
static void test_range_ends(void **state) {
    (void)state;
    /* the store */
    assert_true(isfinite(ENDS("uclip_norm", "y", AT_F16, .gamma = 65519.9, .hi = 1)));
    assert_true(isinf(ENDS("uclip_norm", "y", AT_F16, .gamma = 65520, .hi = 1)));
    assert_true(isfinite(ENDS("uclip_norm", "y", AT_BF16, .gamma = 65520, .hi = 1)));
    /* a clamp hides an infinite product, unless its end is infinite */
    assert_true(isfinite(ENDS("uclip_norm", "y", AT_F32, .x = 0x1p100, .alpha = 0x1p100, .hi = 1)));
    assert_true(
        isinf(ENDS("uclip_norm", "y", AT_F32, .x = 0x1p100, .alpha = 0x1p28, .gamma = 0x1p-100, .hi = INFINITY)));
    assert_true(
        isfinite(ENDS("uclip_norm", "y", AT_F32, .x = 0x1p100, .alpha = 0x1p27, .gamma = 0x1p-100, .hi = INFINITY)));
    /* gamma and beta */
    assert_true(isinf(ENDS("uclip_norm", "y", AT_F32, .x = 2, .gamma = 0x1p127, .hi = 2)));
    assert_true(isinf(ENDS("uclip_norm", "y", AT_F32, .x = 1, .gamma = 0x1p127, .beta = 0x1p127, .hi = 2)));
    assert_true(isfinite(ENDS("uclip_norm", "y", AT_F32, .x = 1, .gamma = 0x1p127, .beta = 0x1p126, .hi = 2)));
    /* the residual: what is stored may be infinite, what is used is certain either way */
    assert_true(isfinite(ENDS("add_uclip_norm", "res_out", AT_F16, .x = 65504, .res = 15.9921875, .hi = 1)));
    assert_true(isinf(ENDS("add_uclip_norm", "res_out", AT_F16, .x = 65504, .res = 16, .hi = 1)));
    assert_true(isfinite(ENDS("add_uclip_norm", "y", AT_F16, .x = 65504, .res = 16, .hi = 1)));
    assert_true(
        isinf(ENDS("add_uclip_norm", "y", AT_F32, .x = 0x1p127, .res = 0x1p127, .hi = 1, .from = AT_FROM_EXACT)));
    /* the post-attention norm's result is rounded to f16: at the tie nobody knows what is used */
    assert_true(isinf(ENDS("post_attn_pre_mlp_uclip", "y", AT_F16, .x = 1, .gamma = 65520, .hi = 1)));
    assert_true(isfinite(ENDS("post_attn_pre_mlp_uclip", "y", AT_F16, .x = 1, .gamma = 65519, .hi = 1)));
    /* squares beyond f32, and all of them below it with nothing added */
    assert_true(isfinite(ENDS("rms_norm", "y", AT_F32, .x = 0x1.fffffep63)));
    assert_true(isinf(ENDS("rms_norm", "y", AT_F32, .x = 0x1p64)));
    assert_true(isfinite(ENDS("rms_norm", "y", AT_F32, .x = 0x1p-74)));
    assert_true(isinf(ENDS("rms_norm", "y", AT_F32, .x = 0x1p-75)));
    /* a mean square that may be subnormal, which ftz takes for 0 */
    assert_true(isfinite(ENDS("rms_norm", "y", AT_F32, .x = 0x1.00001p-63, .rsqrt = AT_RSQRT_APPROX_FTZ)));
    assert_true(isinf(ENDS("rms_norm", "y", AT_F32, .x = 0x1p-63, .rsqrt = AT_RSQRT_APPROX_FTZ)));
    assert_true(isinf(ENDS("rms_norm", "y", AT_F32, .x = 0x1p-70, .rsqrt = AT_RSQRT_APPROX_FTZ)));
    assert_true(isfinite(ENDS("rms_norm", "y", AT_F32, .x = 0x1p-70, .rsqrt = AT_RSQRT_APPROX)));
}

/* A NaN is one where the clamp lets it be; an infinity is clamped; both are certain. */
static void test_non_finite_inputs(void **state) {
    (void)state;
    at_assert_same(ENDS("uclip_norm", "y", AT_F32, .x = NAN, .hi = 1, .clamp = AT_CLAMP_PROPAGATE), 0.0);
    assert_true(isinf(ENDS("uclip_norm", "y", AT_F32, .x = NAN, .hi = 1, .clamp = AT_CLAMP_FMINMAX)));
    assert_true(isfinite(ENDS("uclip_norm", "y", AT_F32, .x = INFINITY, .hi = 1, .clamp = AT_CLAMP_FMINMAX)));
    at_assert_same(ENDS("uclip_norm", "y", AT_F32, .x = INFINITY, .hi = INFINITY), 0.0);
    at_assert_same(ENDS("add_uclip_norm", "res_out", AT_F16, .x = INFINITY, .res = -65504, .hi = 1), 0.0);
    at_assert_same(ENDS("add_rms_norm", "res_out", AT_F16, .x = INFINITY, .res = -INFINITY), 0.0);
    at_assert_same(ENDS("rms_norm", "y", AT_F16, .x = INFINITY), 0.0);
    at_assert_same(ENDS("rms_norm", "y", AT_F16, .x = NAN), 0.0);
    for (int rsqrt = AT_RSQRT_APPROX; rsqrt <= AT_RSQRT_APPROX_FTZ; rsqrt++) {
        at_assert_same(ENDS("rms_norm", "y", AT_F16, .x = INFINITY, .rsqrt = rsqrt), 0.0);
        at_assert_same(ENDS("rms_norm", "y", AT_F16, .x = NAN, .rsqrt = rsqrt), 0.0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared_arithmetic_stays_inside),
        cmocka_unit_test(test_another_rsqrt_stays_inside),
        cmocka_unit_test(test_range_ends),
        cmocka_unit_test(test_non_finite_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
