/* Is the softmax limit slack: for each constant of struct at_softmax_limit an input whose error, in the declared
 * arithmetic, is more than half of the limit with that constant alone. A constant halved by mistake is then exceeded.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Those of factors and reciprocals of f16 are in test_softmax_reach_f16.c. Not reached by half here: flush of a libm
 * exponential (the model rounds to nearest, which is half of "within one ulp"). */
#include "tests/at_test.h"

#include "softmax_attention/softmax_attention.h"
#include "tests/support/attention_problem.h"

/* One request, one query, one head, n contiguous keys of head size d; everything zero, scale 1. */
static void make(int64_t n, int64_t d, enum at_format dtype, struct at_test_problem *p) {
    const int sq = 1, sk = (int)n;
    struct at_test_shape shape = { .b = 1, .d = (int)d, .sq = &sq, .sk = &sk, .dtype = dtype };
    at_assert_ok(at_test_attention_problem(&at_op_softmax_attention, &shape, 1, p));
    at_test_set_all(&p->problem, "q", 0);
    at_test_set_all(&p->problem, "k", 0);
    at_test_set_all(&p->problem, "v", 0);
    p->problem.params.scale = 1;
}

/* q = 1 in channel 0, so that k[t][0] is the score. */
static void set_score(struct at_test_problem *p, int64_t t, double s) {
    at_test_set(&p->problem, "q", 0, 1);
    at_test_set(&p->problem, "k", t * p->problem.sizes.d, s);
}
static void set_v(struct at_test_problem *p, int64_t t, double v) {
    at_test_set(&p->problem, "v", t * p->problem.sizes.d, v);
}

/* The limit with every constant 0 ... */
static struct at_softmax_limit nothing(const struct at_softmax_limit *all) {
    struct at_softmax_limit none = { .declared = 1,
                                     .scale_on = all->scale_on,
                                     .d = all->d,
                                     .split = all->split,
                                     .splits = all->splits,
                                     .block = all->block,
                                     .qk = all->qk,
                                     .pv = all->pv,
                                     .scale = all->scale };
    none.q_end = none.qk_end = none.score_end = none.pv_end = none.out_end = INFINITY;
    return none;
}
/* ... but the named ones. */
enum { QK, SCORE, QUERY, ARGUMENT, SUM, P, ETA_P, PV, RESCALE, STORE, MERGE, DIVIDE, OUT, ADD, LSE, FLUSH };
static struct at_softmax_limit only(const struct at_softmax_limit *all, int stage) {
    struct at_softmax_limit one = nothing(all);
    switch (stage) {
    case QK:
        one.e_qk = all->e_qk;
        break;
    case SCORE:
        one.u_score = all->u_score;
        break;
    case QUERY:
        one.u_q = all->u_q;
        break;
    case ARGUMENT:
        one.u_argument = all->u_argument;
        break;
    case SUM:
        one.u_sum = all->u_sum;
        break;
    case P:
        one.u_p = all->u_p;
        break;
    case ETA_P:
        one.eta_p = all->eta_p;
        break;
    case PV:
        one.pv_share = all->pv_share;
        break;
    case RESCALE:
        one.u_rescale = all->u_rescale;
        one.u_out = all->u_out;
        break; /* o is as coarse as acc */
    case STORE:
        one.u_store = all->u_store;
        break;
    case MERGE:
        one.u_merge = all->u_merge;
        break;
    case DIVIDE:
        one.u_divide = all->u_divide;
        break;
    case OUT:
        one.u_out = all->u_out;
        break;
    case ADD:
        one.u_add = all->u_add;
        break;
    case LSE:
        one.u_lse = all->u_lse;
        break;
    default:
        one.flush = all->flush;
        break;
    }
    return one;
}

/* Error of the model's first output element over the limit of that stage alone. */
static double reached(struct at_test_problem *p, const char *text, int stage, int tensor) {
    struct at_numerics numerics;
    struct at_softmax_limit all, one;
    struct at_test_eval exact, model;
    at_assert_ok(at_numerics_parse(text, &numerics));
    at_assert_ok(at_softmax_limit_init(&p->problem, &numerics, &all));
    one = only(&all, stage);
    at_assert_ok(at_test_eval_init(&p->problem, 1, &exact));
    at_assert_ok(at_test_eval_init(&p->problem, 0, &model));
    at_assert_ok(at_softmax_evaluate_with(&p->problem, &one, 0, 1, &exact.eval));
    at_assert_ok(at_op_softmax_attention.model(&p->problem, &numerics, 0, 1, &model.eval));
    double ratio = fabs(model.eval.value[tensor][0] - exact.eval.value[tensor][0]) / exact.eval.limit[tensor][0];
    at_test_eval_release(&exact);
    at_test_eval_release(&model);
    return ratio;
}

/* Releases p. More than half, and not beyond; `noise`: what the stages left out may add. */
static void expect(struct at_test_problem *p, const char *text, int stage, int tensor, double noise) {
    double ratio = reached(p, text, stage, tensor);
    print_message("%.3f  stage %2d  %s\n", ratio, stage, text);
    at_assert_true(ratio > 0.5 && ratio <= 1 + noise, "%s: stage %d reaches %g of its limit", text, stage, ratio);
    at_test_problem_release(p);
}

/* Two keys whose dot products come out too small and too large; o is the difference of their weights. */
static void dots(enum at_format dtype, double swallowed, double lifted, const char *text) {
    const int64_t d = 256;
    struct at_test_problem p;
    make(2, d, dtype, &p);
    at_test_set_all(&p.problem, "q", 1);
    for (int64_t i = 0; i < d; i++) {
        at_test_set(&p.problem, "k", i, i == 0 ? 1 : i < 16 && dtype != AT_F32 ? 0 : swallowed);
        at_test_set(&p.problem, "k", d + i, i == 0 ? 1 : i < 16 && dtype != AT_F32 ? 0 : lifted);
    }
    set_v(&p, 0, 1);
    set_v(&p, 1, -1);
    p.problem.params.scale = dtype == AT_F16 ? 1 : 64;
    expect(&p, text, QK, AT_SOFTMAX_O, 0.05);
}

static void test_dot_products(void **state) {
    (void)state;
    dots(AT_F32, 0x1p-24, 0x1p-24 + 0x1p-40, "qk_unit=f32_fma pv_unit=f64");
    dots(AT_F32, 0x1p-24, 0x1p-24 + 0x1p-40, "qk_unit=f32 pv_unit=f64");
    dots(AT_BF16, 0x1.fep-26, -0x1.fep-26, "qk_unit=tc_f32 pv_unit=f32_fma p=f32");
    dots(AT_F16, 0x1p-15, 0x1.04p-15, "qk_unit=tc_f16 pv_unit=f32_fma");
}

/* Finds s in [low, low + span) of f32 with the largest signed error of fl32(factor s), over |factor s|. */
static double worst_product(double low, double span, double factor, int sign) {
    double best = -1, found = low;
    for (int i = 0; i < 4000; i++) {
        double s = (double)(float)(low + span * i / 4000), y = s * factor;
        double error = sign * ((double)(float)y - y) / fabs(y);
        if (error > best) {
            best = error;
            found = s;
        }
    }
    return found;
}

static void test_scale(void **state) {
    (void)state;
    struct at_test_problem p;
    make(2, 1, AT_F32, &p);
    p.problem.params.scale = 1.1f;
    set_score(&p, 0, worst_product(58.2, 0.1, 1.1f, 1));
    set_score(&p, 1, worst_product(58.2, 0.1, 1.1f, -1));
    set_v(&p, 0, 1);
    set_v(&p, 1, -1);
    expect(&p, "qk_unit=f64 pv_unit=f32_fma", SCORE, AT_SOFTMAX_O, 0.03);

    make(2, 2, AT_F32, &p); /* two channels of q rounded apart, keys of opposite sign */
    p.problem.params.scale = 1.0001f;
    at_test_set(&p.problem, "q", 0, worst_product(1.0, 1e-3, 1.0001f, 1));
    at_test_set(&p.problem, "q", 1, worst_product(1.0, 1e-3, 1.0001f, -1));
    for (int i = 0; i < 4; i++)
        at_test_set(&p.problem, "k", i, i == 0 || i == 3 ? 64 : -64);
    set_v(&p, 0, 1);
    set_v(&p, 1, -1);
    expect(&p, "qk_unit=f64 pv_unit=f32_fma scale_on=q", QUERY, AT_SOFTMAX_O, 0.03);

    for (int i = 0; i < 2; i++) {
        enum at_format dtype = i ? AT_F16 : AT_BF16;
        make(2, 1, dtype, &p);
        p.problem.params.scale = (float)(1 + 0.999 * at_format_info(dtype)->u);
        set_score(&p, 0, 1);
        set_score(&p, 1, -1);
        set_v(&p, 0, 1);
        set_v(&p, 1, -1);
        /* o itself is 16 bits wide: its rounding is left to a channel of f32 */
        double ratio = reached(&p, "qk_unit=f64 pv_unit=f32_fma scale_on=q_rounded", QUERY, AT_SOFTMAX_LSE);
        print_message("%.3f  q rounded to %s\n", ratio, at_format_info(dtype)->name);
        at_assert_true(ratio > 0.5 && ratio <= 1, "q rounded: %g", ratio);
        at_test_problem_release(&p);
    }
}

/* Differences s - m just beyond 64 that lie between two floats. */
static void test_argument(void **state) {
    (void)state;
    const char *texts[] = { "qk_unit=f64 pv_unit=f32_fma", "qk_unit=f64 pv_unit=f32_fma exp=ex2_approx" };
    for (int i = 0; i < 2; i++) {
        double best = 0;
        for (int j = 0; j < 400; j++) {
            struct at_test_problem p;
            make(2, 1, AT_F32, &p);
            set_score(&p, 0, 0.01 + j * 1.7e-7);
            set_score(&p, 1, -64.0 - j * 0x1p-12);
            set_v(&p, 1, 1);
            best = fmax(best, reached(&p, texts[i], ARGUMENT, AT_SOFTMAX_O));
            at_test_problem_release(&p);
        }
        print_message("%.3f  argument  %s\n", best, texts[i]);
        at_assert_true(best > 0.5 && best <= 1.05, "argument: %g", best);
    }
}

static void test_sum(void **state) {
    (void)state;
    struct at_test_problem p;
    make(512, 1, AT_F32, &p); /* weights of just under half an ulp of 1: the sum stays 1 */
    for (int64_t t = 1; t < 512; t++)
        set_score(&p, t, -16.64);
    set_v(&p, 0, 1);
    double o = reached(&p, "qk_unit=f64 pv_unit=f32_fma", SUM, AT_SOFTMAX_O);
    at_assert_true(o > 0.5 && o <= 1, "the sum in o: %g", o);
    expect(&p, "qk_unit=f64 pv_unit=f32_fma", SUM, AT_SOFTMAX_LSE, 0);
}

static void test_p(void **state) {
    (void)state;
    const char *texts[] = { "p=bf16", "p=f16", "p=e4m3" };
    const enum at_format formats[] = { AT_BF16, AT_F16, AT_E4M3 };
    struct at_test_problem p;
    for (int i = 0; i < 3; i++) {
        double u = at_format_info(formats[i])->u;
        make(2, 1, AT_F32, &p);
        set_score(&p, 1, log(0.5 * (1 + 0.999 * u)));
        set_v(&p, 1, 1);
        expect(&p, texts[i], P, AT_SOFTMAX_O, 0.01);
    }
    make(2, 1, AT_F32, &p);
    set_score(&p, 1, -17.34); /* just under 2^-25: gone in f16 */
    set_v(&p, 1, 1);
    expect(&p, "p=f16", ETA_P, AT_SOFTMAX_O, 0);
    make(2, 1, AT_F32, &p);
    set_score(&p, 1, -87.34); /* just under 2^-126 */
    set_v(&p, 1, 0x1p60);
    expect(&p, "exp=ex2_approx_ftz", FLUSH, AT_SOFTMAX_O, 0);
}

/* Equal weights; a value, then ones that the accumulator swallows. */
static void values(int64_t n, enum at_format dtype, double first, double rest, const char *text, int stage) {
    struct at_test_problem p;
    make(n, 1, dtype, &p);
    for (int64_t t = 0; t < n; t++)
        set_v(&p, t, t == 0 ? first : t < 16 && dtype != AT_F32 ? 0 : rest);
    expect(&p, text, stage, AT_SOFTMAX_O, 0);
}

static void test_accumulators(void **state) {
    (void)state;
    values(512, AT_F32, 1, 0x1p-24, "pv_unit=f32_fma", PV);
    values(512, AT_F32, 1, 0x1p-24, "pv_unit=f32", PV);
    values(512, AT_BF16, 1, 0x1.fep-26, "pv_unit=tc_f32 pv_chunk=16 p=bf16", PV);
    values(512, AT_F16, 16, 0x1p-11, "pv_unit=tc_f16 pv_chunk=16 p=f16", PV);
    values(512, AT_F16, 16, 0x1p-7, "pv_unit=f16_fma p=f16", PV);
    values(2, AT_F32, 1, 0x1.ffp-25, "pv_unit=f64", STORE);
    values(256, AT_F32, 1, 0x1p-24, "split=1", MERGE);
    struct at_test_problem p;
    make(2, 1, AT_BF16, &p); /* a mean that is a tie of bf16 */
    set_v(&p, 0, 1);
    set_v(&p, 1, 1 + 0x1p-7);
    expect(&p, "pv_unit=f64", OUT, AT_SOFTMAX_O, 0);
}

/* A maximum that rises by a little less than half an ulp of f16 each block: acc never follows. */
static void test_rescaling(void **state) {
    (void)state;
    struct at_test_problem p;
    make(16 * 16, 1, AT_F16, &p);
    p.problem.params.scale = (float)(0.99 * 0x1p-11);
    for (int64_t t = 0; t < 256; t++)
        set_score(&p, t, t % 16 ? -60000 : (double)t / 16);
    set_v(&p, 0, 1 + 0x1p-10);
    expect(&p, "qk_unit=f32_fma pv_unit=tc_f16 pv_chunk=16 p=f16 block=16", RESCALE, AT_SOFTMAX_O, 0);
}

static void test_division(void **state) {
    (void)state;
    double best = 0;
    for (int64_t n = 3; n < 130; n++) {
        struct at_test_problem p;
        make(n, 1, AT_F32, &p);
        set_v(&p, 0, 1);
        best = fmax(best, reached(&p, "pv_unit=f32_fma", DIVIDE, AT_SOFTMAX_O));
        at_test_problem_release(&p);
    }
    print_message("%.3f  division\n", best);
    at_assert_true(best > 0.5 && best <= 1, "division: %g", best);
}

static void test_log_sum_exp(void **state) {
    (void)state;
    double add = 0, store = 0;
    for (int j = 0; j < 100; j++) {
        struct at_test_problem p;
        make(3 + j, 1, AT_F32, &p);
        for (int64_t t = 0; t < 3 + j; t++)
            set_score(&p, t, 63);
        add = fmax(add, reached(&p, "qk_unit=f64 pv_unit=f32_fma", ADD, AT_SOFTMAX_LSE));
        at_test_problem_release(&p);
        make(1, 1, AT_F32, &p);
        set_score(&p, 0, 1 + j * 0x1p-12);
        at_test_set(&p.problem, "q", 0, 1 + 0x1p-13);
        store = fmax(store, reached(&p, "qk_unit=f64 pv_unit=f64", LSE, AT_SOFTMAX_LSE));
        at_test_problem_release(&p);
    }
    print_message("%.3f  m + log l\n%.3f  lse stored\n", add, store);
    at_assert_true(add > 0.5 && add <= 1.05 && store > 0.5 && store <= 1, "add %g, store %g", add, store);
}

/* What the model cannot show because it rounds correctly: an exponential or logarithm that is as far off as declared.
 * The error is worked out here and held against h, or against the limit of lse with that constant alone. */
static double h_of(const char *text, double u_exp_share, double u_shift_share, double m, double s) {
    struct at_numerics numerics;
    struct at_softmax_limit all, one;
    struct at_test_problem p;
    struct at_softmax_row row;
    const double dot[2] = { m, s }, zero[2] = { 0, 0 };
    double scaled[2], weights[2], h[2];
    make(2, 1, AT_F32, &p);
    at_assert_ok(at_numerics_parse(text, &numerics));
    at_assert_ok(at_softmax_limit_init(&p.problem, &numerics, &all));
    one = nothing(&all);
    one.u_exp = u_exp_share * all.u_exp;
    one.u_weight = u_exp_share * all.u_weight;
    one.u_shift = u_shift_share * all.u_shift;
    const struct at_softmax_form form = { .scale = 1 };
    at_softmax_weights(2, &form, dot, scaled, weights, &row);
    const struct at_softmax_scores scores = { 2, &form, dot, zero, zero, 1, 1 };
    at_softmax_limit_row(&one, &scores, scaled, weights, &row, h);
    at_test_problem_release(&p);
    return h[1];
}

static void test_exponential(void **state) {
    (void)state;
    double w = 0.5000001, ulp = at_ulp(AT_F32, w);
    double libm = ulp / w / h_of("exp=libm", 1, 0, 0, log(w));
    print_message("%.3f  1 ulp of libm\n", libm);
    at_assert_true(libm > 0.5 && libm <= 1, "exponential %g", libm);

    double best = 0; /* fl(m c) of a block whose maximum is m: its rounding stays in the block's weights */
    for (int j = 0; j < 200; j++) {
        double m = (double)(float)(44.4 + j * 1e-4), y = m * 1.4426950216293335;
        double error = fabs(expm1(log(2.0) * ((double)(float)y - y)));
        best = fmax(best, error / h_of("exp=ex2_approx exp_arg=fma block=1", 0, 1, m, m - 1));
    }
    print_message("%.3f  m * log2(e) rounded by itself\n", best);
    at_assert_true(best > 0.5 && best <= 1, "shift %g", best);
}

static void test_logarithm(void **state) {
    (void)state;
    double best = 0;
    for (int64_t n = 2; n < 200; n++) {
        struct at_test_problem p;
        struct at_numerics numerics = at_numerics_default();
        struct at_softmax_limit all, one;
        make(n, 1, AT_F32, &p);
        at_assert_ok(at_softmax_limit_init(&p.problem, &numerics, &all));
        one = nothing(&all);
        one.u_log = all.u_log;
        struct at_softmax_row row = { .n = n, .lse = log((double)n), .in_range = 1, .least = 1 };
        float right = logf((float)n), near[2] = { nextafterf(right, 0), nextafterf(right, INFINITY) };
        for (int i = 0; i < 2; i++) {
            double error = fabs((double)near[i] - row.lse);
            if (error <= at_ulp(AT_F32, row.lse))
                best = fmax(best, error / at_softmax_limit_lse(&one, &row));
        }
        at_test_problem_release(&p);
    }
    print_message("%.3f  1 ulp of logf\n", best);
    at_assert_true(best > 0.5 && best <= 1, "logarithm %g", best);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dot_products), cmocka_unit_test(test_scale),     cmocka_unit_test(test_argument),
        cmocka_unit_test(test_sum),          cmocka_unit_test(test_p),         cmocka_unit_test(test_accumulators),
        cmocka_unit_test(test_rescaling),    cmocka_unit_test(test_division),  cmocka_unit_test(test_log_sum_exp),
        cmocka_unit_test(test_exponential),  cmocka_unit_test(test_logarithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
