/* Softcap and ALiBi: slopes, exact scores against 200-bit arithmetic, limits and intervals that hold every kernel of a
 * declaration, decoys, scores without a number.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/alibi.h"
#include "softmax_attention/softmax_attention.h"
#include "special/special.h"
#include "tests/oracle/softmax_mpfr.h"
#include "tests/support/attention_problem.h"
#include "tests/support/softmax_kernel.h"

enum { HEADS = 16 };
static const struct at_op *op = &at_op_softmax_attention;

/* A problem and its slopes. */
struct bent {
    struct at_test_problem p;
    float slopes[HEADS];
};

static void set_parameters(struct bent *b, float softcap, float alibi) {
    const struct at_softmax_own own = { softcap, alibi };
    struct at_problem *problem = &b->p.problem;
    at_softmax_own_set(problem, &own);
    at_problem_shape(problem);
    problem->tensors[AT_SOFTMAX_SLOPES].data = alibi > 0 ? b->slopes : NULL;
    for (int64_t i = 0; i < problem->sizes.h; i++)
        b->slopes[i] = (float)((double)alibi * at_alibi_slope(problem->sizes.h, i));
    at_assert_ok(op->check(problem));
}

static void make(const struct at_test_shape *shape, uint64_t seed, float softcap, float alibi, struct bent *out) {
    at_assert_ok(at_test_attention_problem(op, shape, seed, &out->p));
    set_parameters(out, softcap, alibi);
}

static struct at_test_eval evaluated(const struct at_problem *p, const struct at_numerics *numerics) {
    struct at_test_eval e;
    at_assert_ok(at_test_eval_init(p, 1, &e));
    at_assert_ok(op->evaluate(p, numerics, 0, op->rows(p), &e.eval));
    return e;
}

static void test_slopes(void **state) {
    (void)state;
    for (int64_t h = 1; h <= 8; h *= 2) /* powers of two, to the bit */
        for (int64_t i = 0; i < h; i++)
            at_assert_same(at_alibi_slope(h, i), ldexp(1, (int)(-8 * (i + 1) / h)));
    for (int64_t h = 1; h <= 64; h *= 2) /* the series ends with 2^-8, whatever h */
        at_assert_same(at_alibi_slope(h, h - 1), 0x1p-8);
    at_assert_within(at_alibi_slope(16, 0), sqrt(0.5), 1e-15);
    /* of twelve heads eight have the slopes of eight, four those of heads 0, 2, 4, 6 of sixteen */
    for (int64_t i = 0; i < 12; i++)
        at_assert_same(at_alibi_slope(12, i), i < 8 ? at_alibi_slope(8, i) : at_alibi_slope(16, 2 * (i - 8)));
    at_assert_same(at_alibi_slope(3, 2), 0x1p-2); /* head 0 of four */
    at_assert_same(at_alibi_slope(1, 0), 0x1p-8);
}

/* ---- exact values ---- */

static double worst_ratio;

static int64_t compare(const struct at_problem *p) {
    struct at_test_eval e = evaluated(p, NULL);
    int64_t compared = 0;
    for (int64_t row = 0; row < op->rows(p); row++)
        for (int64_t c = 0; c < p->sizes.d; c++, compared++) {
            const struct softmax_oracle want = softmax_oracle(p, row / p->sizes.h, row % p->sizes.h, c);
            const int64_t at = row * p->sizes.d + c;
            const double bound = e.eval.limit[AT_SOFTMAX_O][at];
            at_assert_within(e.eval.value[AT_SOFTMAX_O][at], want.o, bound);
            at_assert_true(bound <= 1e-9 * (1 + fabs(want.o)), "own error %g beside o = %g", bound, want.o);
            if (bound > 0)
                worst_ratio = fmax(worst_ratio, fabs(e.eval.value[AT_SOFTMAX_O][at] - want.o) / bound);
            if (isinf(want.lse))
                at_assert_same(e.eval.value[AT_SOFTMAX_LSE][row], want.lse);
            else
                at_assert_within(e.eval.value[AT_SOFTMAX_LSE][row], want.lse, e.eval.limit[AT_SOFTMAX_LSE][row]);
        }
    at_test_eval_release(&e);
    return compared;
}

static const enum at_format dtypes[] = { AT_F32, AT_F16, AT_BF16 };
static const float caps[] = { 0, 0.01f, 2, 30, 1000, AT_SOFTCAP_LEAST, AT_SOFTCAP_MAX };
static const float factors[] = { 0, 1, 0.3f, 40 };

static struct at_test_shape any_shape(struct at_test_random *random) {
    const int hk = 1 + at_test_below(random, 3);
    return (struct at_test_shape){ .b = 1 + at_test_below(random, 3),
                                   .hk = hk,
                                   .h = hk * (1 + at_test_below(random, 3)),
                                   .d = 1 + at_test_below(random, 8),
                                   .page = at_test_below(random, 2) * (1 + at_test_below(random, 7)),
                                   .causal = at_test_below(random, 2),
                                   .max_sq = 4,
                                   .max_sk = 20,
                                   .dtype = dtypes[at_test_below(random, 3)],
                                   .q_scale = ldexp(1, at_test_below(random, 6) - 2) };
}

static void test_oracle(void **state) {
    (void)state;
    struct at_test_random random = { 31 };
    int64_t compared = 0;
    for (long i = 0; i < at_test_effort(10) * 14; i++) {
        const struct at_test_shape shape = any_shape(&random);
        struct bent b;
        make(&shape, at_test_bits(&random), caps[i % 7], factors[i / 7 % 4], &b);
        compared += compare(&b.p.problem);
        at_test_problem_release(&b.p);
    }
    at_assert_true(compared > 900, "only %lld elements", (long long)compared);
    print_message("%lld elements, largest error / own bound %.3f\n", (long long)compared, worst_ratio);
}

/* ---- limits and models ---- */

static const struct {
    const char *numerics;
    int f32; /* activations of f32 too */
} settings[] = {
    { "", 1 },
    { "fir_fma=1 block=4 split=12", 1 },
    { "tanh=tanh_approx fir_fma=1", 1 },
    { "tanh=ex2_rcp p=bf16 block=5", 1 },
    { "tanh=tanh_approx exp=ex2_approx_ftz exp_arg=fma l_lanes=4 l_run=2 lse=lg2_approx_ftz block=8 split=16", 1 },
    { "tanh=libm exp=ex2_approx exp_arg=fma ex2_poly3=8 l_lanes=1 l_run=1 block=4", 1 },
    { "tanh=ex2_rcp exp=ex2_approx l_lanes=8 l_run=1 l_tree=butterfly lse=lg2_approx divide=rcp_approx", 1 },
    { "scale_on=q tanh=tanh_approx", 1 },
    { "scale_on=q_rounded tanh=ex2_rcp fir_fma=1 split=3", 1 },
    { "qk_unit=f64 pv_unit=f64", 1 },
    { "qk_unit=f64 pv_unit=f64 fir_fma=1 scale_on=q block=4", 1 },
    { "qk_unit=f64 pv_unit=f32_fma tanh=tanh_approx", 1 },
    { "qk_unit=tc_f32 pv_unit=tc_f32 pv_chunk=16 p=f16 block=16 tanh=tanh_approx fir_fma=1", 0 },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static double shares[SETTINGS];

/* The model of each declaration lies within its limit of the exact value, and so do the ends of its interval. */
static void test_models_within_limits(void **state) {
    (void)state;
    struct at_test_random random = { 8 };
    for (long i = 0; i < at_test_effort(10) * 60; i++) {
        const int which = (int)(i % SETTINGS);
        struct at_test_shape shape = any_shape(&random);
        struct at_numerics n;
        struct bent b;
        if (!settings[which].f32)
            shape.dtype = AT_F16;
        make(&shape, at_test_bits(&random), caps[at_test_below(&random, 7)], factors[at_test_below(&random, 4)], &b);
        at_assert_ok(at_numerics_parse(settings[which].numerics, &n));
        const struct at_problem *p = &b.p.problem;
        struct at_test_eval exact = evaluated(p, &n), model;
        at_assert_ok(at_test_eval_init(p, 1, &model));
        at_assert_ok(op->model(p, &n, 0, op->rows(p), &model.eval));
        for (int t = AT_SOFTMAX_O; t <= AT_SOFTMAX_LSE; t++)
            for (int64_t e = 0; e < at_test_count(p, t); e++) {
                const double want = exact.eval.value[t][e], limit = exact.eval.limit[t][e],
                             got = model.eval.value[t][e];
                const double reach = model.eval.limit[t][e];
                if (isinf(want) || isinf(limit)) {
                    at_assert_true(isinf(limit) || got == want, "%g where the exact value is %g", got, want);
                    continue;
                }
                at_assert_true(fabs(got - want) <= limit, "%s: %s[%lld] %g, exact %g, limit %g; cap %g alibi %g",
                               settings[which].numerics, op->tensors[t].name, (long long)e, got, want, limit,
                               (double)at_softmax_own_of(p).softcap, (double)at_softmax_own_of(p).alibi);
                at_assert_true(reach >= 0 && reach < 1, "interval %g", reach);
                if (limit > 0)
                    shares[which] = fmax(shares[which], fabs(got - want) / limit);
            }
        at_test_eval_release(&exact);
        at_test_eval_release(&model);
        at_test_problem_release(&b.p);
    }
    for (int i = 0; i < SETTINGS; i++)
        at_assert_true(shares[i] > 0.01, "%s: no value came nearer to its limit than %g of it", settings[i].numerics,
                       shares[i]);
}

/* A unit's tanh leaves nothing open: one value, where the rest of the declaration is one. */
static void test_unit_is_exact(void **state) {
    (void)state;
    static const char *const texts[] = { "tanh=tanh_approx", "tanh=ex2_rcp" };
    const int sq = 3, sk = 19;
    const struct at_test_shape shape = { .b = 1, .h = 4, .hk = 2, .d = 8, .sq = &sq, .sk = &sk, .dtype = AT_F32 };
    struct bent b;
    make(&shape, 4, 50, 0, &b); /* no power of two: its product rounds */
    for (int i = 0; i < 2; i++) {
        struct at_numerics n;
        struct at_test_eval e;
        char text[160];
        snprintf(text, sizeof text, "%s exp=ex2_approx_ftz l_lanes=4 l_run=1 lse=lg2_approx_ftz fir_fma=1", texts[i]);
        at_assert_ok(at_numerics_parse(text, &n));
        at_assert_ok(at_test_eval_init(&b.p.problem, 1, &e));
        at_assert_ok(op->model(&b.p.problem, &n, 0, 12, &e.eval));
        for (int t = AT_SOFTMAX_O; t <= AT_SOFTMAX_LSE; t++)
            for (int64_t k = 0; k < at_test_count(&b.p.problem, t); k++)
                at_assert_same(e.eval.limit[t][k], 0);
        at_test_eval_release(&e);
    }
    at_test_problem_release(&b.p);
}

/* Kernels with any exponential within one ulp and any tanh within two are within the interval; with errors a hundred times
 * as large some are not. */
static void test_intervals_hold_other_libms(void **state) {
    (void)state;
    struct at_test_random random = { 5 };
    const struct at_numerics n = at_numerics_default();
    int64_t outside[2] = { 0, 0 };
    for (long i = 0; i < at_test_effort(10) * 20; i++) {
        const struct at_test_shape shape = any_shape(&random);
        const int wrong = (int)(i % 2);
        struct bent b;
        make(&shape, at_test_bits(&random), caps[1 + at_test_below(&random, 4)], factors[at_test_below(&random, 3)],
             &b);
        const struct at_problem *p = &b.p.problem;
        struct at_test_eval m;
        at_assert_ok(at_test_eval_init(p, 1, &m));
        at_assert_ok(op->model(p, &n, 0, op->rows(p), &m.eval));
        for (int64_t row = 0; row < op->rows(p); row++)
            for (int64_t c = 0; c < p->sizes.d; c++) {
                const struct softmax_kernel got = softmax_kernel(p, AT_F32, row, c, wrong ? 100 : 1, &random);
                const int64_t e = row * p->sizes.d + c;
                outside[wrong] += !(fabs(got.o - m.eval.value[AT_SOFTMAX_O][e]) <= m.eval.limit[AT_SOFTMAX_O][e]);
                outside[wrong] += isfinite(got.lse) && !(fabs(got.lse - m.eval.value[AT_SOFTMAX_LSE][row]) <=
                                                         m.eval.limit[AT_SOFTMAX_LSE][row]);
            }
        at_test_eval_release(&m);
        at_test_problem_release(&b.p);
    }
    at_assert_true(outside[0] == 0, "%lld values of right kernels outside", (long long)outside[0]);
    at_assert_true(outside[1] > 0, "no value of a wrong kernel is outside");
}

/* ---- values without a number ---- */

/* Keys of +-inf: under a cap scores of +-cap; without one a NaN row, or a weight of 0. NaN stays NaN. */
static void test_scores_without_a_number(void **state) {
    (void)state;
    const int sq = 1, sk = 3;
    const struct at_test_shape shape = { .b = 1, .h = 1, .hk = 1, .d = 1, .sq = &sq, .sk = &sk, .dtype = AT_F32 };
    const double keys[][3] = { { -INFINITY, 0, 0 }, { INFINITY, 0, 0 }, { NAN, 0, 0 } };
    for (int i = 0; i < 3; i++) {
        struct bent b;
        struct at_numerics n = at_numerics_default();
        make(&shape, 3, 2, 0, &b);
        at_test_set_all(&b.p.problem, "q", 1);
        for (int t = 0; t < 3; t++) {
            at_test_set(&b.p.problem, "k", t, keys[i][t]);
            at_test_set(&b.p.problem, "v", t, t == 0);
        }
        struct at_test_eval e = evaluated(&b.p.problem, &n), m;
        const double w = exp(i ? 2 : -2), o = e.eval.value[AT_SOFTMAX_O][0];
        at_assert_ok(at_test_eval_init(&b.p.problem, 1, &m));
        at_assert_ok(op->model(&b.p.problem, &n, 0, 1, &m.eval));
        if (i < 2) {
            at_assert_within(o, w / (w + 2), 1e-15);
            at_assert_within(e.eval.value[AT_SOFTMAX_LSE][0], log(w + 2), 1e-15);
            at_assert_true(e.eval.limit[AT_SOFTMAX_O][0] < 1e-6, "limit %g", e.eval.limit[AT_SOFTMAX_O][0]);
            at_assert_within(m.eval.value[AT_SOFTMAX_O][0], o, e.eval.limit[AT_SOFTMAX_O][0]);
        } else {
            at_assert_same(o, (double)NAN);
            at_assert_same(m.eval.value[AT_SOFTMAX_O][0], (double)NAN);
        }
        at_test_eval_release(&e);
        at_test_eval_release(&m);
        set_parameters(&b, 0, 1);
        e = evaluated(&b.p.problem, NULL);
        at_assert_true(isnan(e.eval.value[AT_SOFTMAX_O][0]) == (i > 0), "without a cap: %g",
                       e.eval.value[AT_SOFTMAX_O][0]);
        at_test_eval_release(&e);
        at_test_problem_release(&b.p);
    }
}

/* A sum that overflows in f16 becomes +-cap: the ledger of the declared arithmetic says that it was lost. */
static void test_lost_overflow_is_noted(void **state) {
    (void)state;
    const int sq = 1, sk = 2;
    const struct at_test_shape shape = { .b = 1, .h = 1, .hk = 1, .d = 16, .sq = &sq, .sk = &sk, .dtype = AT_F16 };
    for (int sign = -1; sign <= 1; sign += 2) {
        struct at_numerics n;
        struct at_ledger ledger;
        struct bent b;
        struct at_test_eval m;
        make(&shape, 3, 2, 0, &b);
        at_test_set_all(&b.p.problem, "q", 200);
        at_test_set_all(&b.p.problem, "k", 200 * sign);
        at_assert_ok(at_numerics_parse("qk_unit=tc_f16 pv_unit=f32_fma", &n));
        at_assert_ok(at_test_eval_init(&b.p.problem, 0, &m));
        at_ledger_init(&ledger);
        m.eval.ledger = &ledger;
        at_assert_ok(op->model(&b.p.problem, &n, 0, 1, &m.eval));
        at_assert_true(ledger.laundered == 2 && isfinite(m.eval.value[AT_SOFTMAX_O][0]), "laundered %lld, o %g",
                       (long long)ledger.laundered, m.eval.value[AT_SOFTMAX_O][0]);
        at_test_eval_release(&m);
        at_test_problem_release(&b.p);
    }
}

/* ---- places and decoys ---- */

/* Each query of a request is what a decode step at its place is: prefix and mask count, bottom right. */
static void test_decode_is_a_row_of_prefill(void **state) {
    (void)state;
    enum { SQ = 4, SK = 9, D = 3, H = 6 };
    const int sq = SQ, sk = SK, one = 1;
    const struct at_test_shape shape = {
        .b = 1, .h = H, .hk = 2, .d = D, .causal = 1, .sq = &sq, .sk = &sk, .dtype = AT_F32
    };
    struct bent whole;
    make(&shape, 6, 3, 1, &whole);
    struct at_test_eval all = evaluated(&whole.p.problem, NULL);
    for (int i = 0; i < SQ; i++) {
        const int keys = SK - SQ + i + 1;
        const struct at_test_shape step = { .b = 1, .h = H, .hk = 2, .d = D, .sq = &one, .sk = &keys, .dtype = AT_F32 };
        struct bent b;
        make(&step, 6, 3, 1, &b);
        for (int x = 0; x < H * D; x++)
            at_test_set(&b.p.problem, "q", x, at_test_get(&whole.p.problem, "q", i * H * D + x));
        for (int t = 0; t < keys; t++)
            for (int g = 0; g < 2; g++)
                for (int c = 0; c < D; c++) {
                    const int64_t from = at_attn_kv_index(&whole.p.problem, 0, t, g) + c;
                    const int64_t to = at_attn_kv_index(&b.p.problem, 0, t, g) + c;
                    at_test_set(&b.p.problem, "k", to, at_test_get(&whole.p.problem, "k", from));
                    at_test_set(&b.p.problem, "v", to, at_test_get(&whole.p.problem, "v", from));
                }
        struct at_test_eval e = evaluated(&b.p.problem, NULL);
        for (int x = 0; x < H; x++)
            at_assert_same(e.eval.value[AT_SOFTMAX_LSE][x], all.eval.value[AT_SOFTMAX_LSE][i * H + x]);
        at_test_eval_release(&e);
        at_test_problem_release(&b.p);
    }
    at_test_eval_release(&all);
    at_test_problem_release(&whole.p);
}

/* What each decoy changes: with a cap, with biases, with neither. bias_of_key moves a row's scores together: lse alone. */
static void test_decoys(void **state) {
    (void)state;
    static const struct {
        enum at_softmax_decoy decoy;
        int of_cap, of_bias, o;
    } wanted[] = {
        { AT_SOFTMAX_CAP_IGNORED, 1, 0, 1 },    { AT_SOFTMAX_CAP_BEFORE_SCALE, 1, 0, 1 },
        { AT_SOFTMAX_NEXT_HEAD_BIAS, 0, 1, 1 }, { AT_SOFTMAX_BIAS_SIGN, 0, 1, 1 },
        { AT_SOFTMAX_BIAS_OF_KEY, 0, 1, 0 },
    };
    const int sq = 2, sk = 12;
    const struct at_test_shape shape = {
        .b = 1, .h = 2, .hk = 1, .d = 4, .causal = 1, .sq = &sq, .sk = &sk, .dtype = AT_F32
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        for (int with = 0; with < 4; with++) {
            const int has_cap = with & 1, has_bias = with >> 1;
            const int differs = (has_cap && wanted[i].of_cap) || (has_bias && wanted[i].of_bias);
            struct bent b;
            make(&shape, 2, has_cap ? 0.5f : 0, has_bias ? 1 : 0, &b);
            struct at_test_eval right = evaluated(&b.p.problem, NULL), got;
            at_assert_ok(at_test_eval_init(&b.p.problem, 0, &got));
            at_assert_ok(op->decoy(&b.p.problem, NULL, (int)wanted[i].decoy, 0, 4, &got.eval));
            double gap_o = 0, gap_lse = 0;
            for (int64_t e = 0; e < 16; e++)
                gap_o = fmax(gap_o, fabs(got.eval.value[AT_SOFTMAX_O][e] - right.eval.value[AT_SOFTMAX_O][e]));
            for (int64_t e = 0; e < 4; e++)
                gap_lse = fmax(gap_lse, fabs(got.eval.value[AT_SOFTMAX_LSE][e] - right.eval.value[AT_SOFTMAX_LSE][e]));
            at_assert_true((gap_o > 1e-3) == (differs && wanted[i].o), "%s: o moves by %g",
                           op->decoys[wanted[i].decoy].name, gap_o);
            at_assert_true((gap_lse > 1e-3) == differs, "%s: lse moves by %g", op->decoys[wanted[i].decoy].name,
                           gap_lse);
            at_test_eval_release(&right);
            at_test_eval_release(&got);
            at_test_problem_release(&b.p);
        }
    struct bent b; /* the order of cap and bias shows where there are both */
    make(&shape, 2, 0.5f, 1, &b);
    struct at_test_eval right = evaluated(&b.p.problem, NULL), got;
    at_assert_ok(at_test_eval_init(&b.p.problem, 0, &got));
    at_assert_ok(op->decoy(&b.p.problem, NULL, AT_SOFTMAX_BIAS_BEFORE_CAP, 0, 4, &got.eval));
    at_assert_true(fabs(got.eval.value[AT_SOFTMAX_O][0] - right.eval.value[AT_SOFTMAX_O][0]) > 1e-3, "no order");
    at_test_eval_release(&right);
    at_test_eval_release(&got);
    at_test_problem_release(&b.p);
}

static void test_check(void **state) {
    (void)state;
    const int sq = 1, sk = 2;
    const struct at_test_shape shape = { .b = 1, .h = 2, .hk = 1, .d = 2, .sq = &sq, .sk = &sk, .dtype = AT_F32 };
    struct bent b;
    make(&shape, 2, 2, 1, &b);
    struct at_problem p = b.p.problem;
    at_softmax_own_set(&p, &(struct at_softmax_own){ AT_SOFTCAP_LEAST / 2, 1 });
    at_assert_fails(op->check(&p), AT_USAGE, "softcap is 0.000488281, wanted 0 or a number from");
    at_softmax_own_set(&p, &(struct at_softmax_own){ NAN, 1 });
    at_assert_fails(op->check(&p), AT_USAGE, "softcap is");
    at_softmax_own_set(&p, &(struct at_softmax_own){ 2, -1 });
    at_assert_fails(op->check(&p), AT_USAGE, "alibi is -1");
    at_softmax_own_set(&p, &(struct at_softmax_own){ 2, 0 });
    at_assert_fails(op->check(&p), AT_USAGE, "slopes has 2 elements of f32, wanted 0");
    p = b.p.problem;
    b.slopes[1] = NAN;
    at_assert_fails(op->check(&p), AT_USAGE, "slopes[1] is nan");
    struct at_numerics n;
    at_assert_ok(at_numerics_parse("qk_unit=f64 pv_unit=f64 tanh=tanh_approx", &n));
    at_assert_fails(at_softmax_check_numerics(&p, &n), AT_UNSUPPORTED, "tanh of the special-function unit");
    at_test_problem_release(&b.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_models_within_limits),
        cmocka_unit_test(test_unit_is_exact),
        cmocka_unit_test(test_intervals_hold_other_libms),
        cmocka_unit_test(test_scores_without_a_number),
        cmocka_unit_test(test_lost_overflow_is_noted),
        cmocka_unit_test(test_decode_is_a_row_of_prefill),
        cmocka_unit_test(test_decoys),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
