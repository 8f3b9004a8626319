/* Is the softmax limit sound: values in the declared arithmetic, random and adversarial, over a grid of numerics, none
 * beyond it; and none of a kernel with another correct exponential outside the model's interval.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "softmax_attention/softmax_attention.h"
#include "tests/support/attention_problem.h"
#include "tests/support/softmax_kernel.h"

/* A declaration and the activation types it makes sense for. */
struct setting {
    const char *numerics;
    int dtypes; /* bit per enum at_format */
};
#define ANY (1 << AT_F32 | 1 << AT_F16 | 1 << AT_BF16)
#define F32 (1 << AT_F32)
#define F16 (1 << AT_F16)
#define BF16 (1 << AT_BF16)
static const struct setting settings[] = {
    { "qk_unit=f64 pv_unit=f64", ANY },
    { "qk_unit=f64 pv_unit=f64 block=16 split=32 scale_on=q", ANY },
    { "qk_unit=f64 pv_unit=f32 scale_on=q_rounded", ANY },
    { "qk_unit=f32_fma pv_unit=f64 p=bf16 block=5", ANY },
    { "qk_unit=f32 pv_unit=f32", ANY },
    { "qk_unit=f32_fma pv_unit=f32_fma qk_lanes=8 qk_tree=butterfly", ANY },
    { "qk_unit=f32_fma pv_unit=f32_fma qk_lanes=4 qk_run=2 scale_on=q p=f16 block=16", ANY },
    { "qk_unit=f32_fma pv_unit=f32_fma split=20 scale_on=q_rounded", ANY },
    { "qk_unit=f32_fma pv_unit=f32_fma exp=ex2_approx block=8 split=24 p=bf16", ANY },
    { "exp=ex2_approx exp_arg=fma l_lanes=4 l_run=2 l_tree=butterfly divide=rcp_approx lse=lg2_approx", ANY },
    { "exp=ex2_approx_ftz exp_arg=fma l_lanes=8 l_run=1 divide=reciprocal lse=lg2_approx_ftz block=8 split=24", ANY },
    { "exp=ex2_approx_ftz ex2_poly3=8 l_lanes=1 l_run=1 divide=rcp_approx_ftz lse=lg2_approx_ftz block=16", ANY },
    { "qk_unit=f32 pv_unit=f32 pv_zero=skipped p=e4m3", ANY },
    { "qk_unit=tc_f32 pv_unit=tc_f32 pv_chunk=16 p=bf16", BF16 },
    { "qk_unit=tc_f32 pv_unit=tc_f32 pv_chunk=16 p=f16 block=16", F16 },
    { "qk_unit=tc_f32 pv_unit=tc_f32 pv_chunk=64 p=bf16 block=64 exp=ex2_approx_ftz exp_arg=fma "
      "ex2_poly3=32 l_lanes=4 l_run=2 l_tree=butterfly divide=rcp_approx_ftz lse=lg2_approx_ftz",
      BF16 },
    { "qk_unit=tc_f32 pv_unit=tc_f32 pv_chunk=16 p=f16 split=32 scale_on=q_rounded", F16 },
    { "qk_unit=tc_f16 pv_unit=tc_f16 pv_chunk=16 p=f16", F16 },
    { "qk_unit=tc_f32 pv_unit=tc_f16 pv_chunk=16 p=f16 block=16 split=48", F16 },
    { "qk_unit=tc_f16 pv_unit=f32_fma", F16 | BF16 },
    { "qk_unit=tc_f16 pv_unit=tc_f16 pv_chunk=16 p=f16 block=16 rescale=f16", F16 },
    { "qk_unit=tc_f32 pv_unit=tc_f16 pv_chunk=16 p=f16 block=16 divide=reciprocal_f16", F16 },
    { "qk_unit=f32_fma pv_unit=f32_fma block=4 rescale=f16 divide=reciprocal_f16", ANY },
    { "qk_unit=f32_fma pv_unit=f32_fma block=2 split=4 splits=3 rescale=f16", ANY },
    { "qk_unit=f32_fma pv_unit=f32_fma split=1 splits=7", ANY },
    { "qk_unit=f16_fma pv_unit=f16_fma p=f16 block=4", F16 },
    { "qk_unit=tc_tf32 pv_unit=tc_tf32 pv_chunk=8", F32 },
    { "qk_unit=tc_tf32_rna pv_unit=tc_tf32_rna pv_chunk=16 p=tf32 block=16 scale_on=q", F32 },
    { "qk_unit=f32_fma pv_unit=tc_tf32_rna pv_chunk=8 split=24", F32 },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static struct at_numerics parse(const char *text) {
    struct at_numerics numerics;
    at_assert_ok(at_numerics_parse(text, &numerics));
    return numerics;
}

static struct at_test_random random_numbers = { 77 };
static int below(int n) { return at_test_below(&random_numbers, n); }

/* A row of k and v that some key of the head owns: rows of no key are NaN. */
static int64_t owned_row(const struct at_problem *p, int64_t head) {
    int64_t row = head;
    while (row + p->sizes.hk < p->sizes.slots * p->sizes.hk && isnan(at_test_get(p, "k", row * p->sizes.d)))
        row += p->sizes.hk;
    return row;
}

/* Bends keys towards what hurts: equal scores, one dominating key, tiny weights, cancelling or stalling values. */
static void bend(struct at_problem *p) {
    const int kind = below(6);
    const int64_t d = p->sizes.d, rows = p->sizes.slots * p->sizes.hk;
    for (int64_t r = 0; r < rows && kind > 1; r++)
        for (int64_t i = 0; i < d; i++) {
            double v = at_test_get(p, "v", r * d + i), k = at_test_get(p, "k", r * d + i);
            if (isnan(v) || isnan(k))
                continue;
            if (kind == 2) /* equal scores; a large value, then ones that an accumulator swallows */
                at_test_set(p, "k", r * d + i, at_test_get(p, "k", owned_row(p, r % p->sizes.hk) * d + i));
            if (kind == 2 || kind == 3)
                at_test_set(p, "v", r * d + i, r == owned_row(p, r % p->sizes.hk) ? 1 : 0x1p-10 * fabs(v));
            if (kind == 4) /* values that cancel */
                at_test_set(p, "v", r * d + i, (r & 1 ? -1 : 1) * (1 + 0x1p-7 * v));
            if (kind == 5) /* a hot key: the others' weights underflow P, then exp */
                at_test_set(p, "k", r * d + i, k * (r / p->sizes.hk == 3 ? 8 : 0.5));
        }
}

static void draw(int dtypes, struct at_test_problem *p) {
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16 };
    enum at_format dtype = formats[below(3)];
    while (!(dtypes >> dtype & 1))
        dtype = formats[below(3)];
    int hk = 1 + below(2);
    struct at_test_shape shape = { .b = 1 + below(2),
                                   .hk = hk,
                                   .h = hk * (1 + below(2)),
                                   .d = 1 + below(24),
                                   .page = below(2) * 16,
                                   .causal = below(2),
                                   .max_sq = 4,
                                   .max_sk =
                                       1 + below(below(2) ? 100 : 3), /* short rows: nothing hides the exponential */

                                   .dtype = dtype,
                                   .fill = (enum at_test_fill)below(3),
                                   .q_scale = exp2(below(9) - 4),
                                   .k_scale = 1 + below(3),
                                   .v_scale = exp2(below(5) - 2) };
    at_assert_ok(at_test_attention_problem(&at_op_softmax_attention, &shape, at_test_bits(&random_numbers), p));
    bend(&p->problem);
}

struct tally {
    int64_t compared, unlimited, positive;
    double worst;
};

static void count(struct tally *tally, const char *what, double got, double want, double limit) {
    tally->compared++;
    if (!isfinite(want) || !isfinite(got)) {
        /* a limit promises finite values near finite ones; without a limit nothing is promised */
        at_assert_true(limit == INFINITY || (isinf(want) && got == want) || (isnan(want) && isnan(got)),
                       "%s: got %g, exact %g", what, got, want);
        tally->unlimited += limit == INFINITY;
        return;
    }
    at_assert_within(got, want, limit);
    tally->unlimited += isinf(limit) != 0;
    tally->positive += limit > 0;
    if (limit > 0 && limit < INFINITY)
        tally->worst = fmax(tally->worst, fabs(got - want) / limit);
}

static void judge(const struct at_problem *p, const struct at_numerics *numerics, struct tally *tally) {
    const struct at_op *op = &at_op_softmax_attention;
    struct at_test_eval exact, got;
    at_assert_ok(op->check(p));
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(at_test_eval_init(p, 0, &got));
    at_assert_ok(op->evaluate(p, numerics, 0, op->rows(p), &exact.eval));
    at_assert_ok(op->model(p, numerics, 0, op->rows(p), &got.eval));
    for (int t = AT_SOFTMAX_O; t <= AT_SOFTMAX_LSE; t++)
        for (int64_t i = 0; i < at_test_count(p, t); i++)
            count(tally, op->tensors[t].name, got.eval.value[t][i], exact.eval.value[t][i], exact.eval.limit[t][i]);
    at_test_eval_release(&exact);
    at_test_eval_release(&got);
}

static void test_no_value_beyond_the_limit(void **state) {
    (void)state;
    const int64_t wanted = at_test_effort(20) * 50000 / SETTINGS + 1;
    int64_t compared = 0, unlimited = 0;
    for (int s = 0; s < SETTINGS; s++) {
        struct at_numerics numerics = parse(settings[s].numerics);
        struct tally tally = { 0 };
        while (tally.compared < wanted) {
            struct at_test_problem p;
            draw(settings[s].dtypes, &p);
            judge(&p.problem, &numerics, &tally);
            at_test_problem_release(&p);
        }
        print_message("%6lld elements, %lld without limit, worst %.3f: %s\n", (long long)tally.compared,
                      (long long)tally.unlimited, tally.worst, settings[s].numerics);
        at_assert_true(tally.positive > tally.compared / 4 && tally.worst > 0.01, "nothing was tried");
        compared += tally.compared;
        unlimited += tally.unlimited;
    }
    print_message("%lld elements, %lld without limit\n", (long long)compared, (long long)unlimited);
}

/* A kernel of its own, f32 throughout, whose exponential is off by up to one ulp either way: within the limit and
 * within the model's interval; with 4 ulp more it leaves the interval somewhere. */
static int64_t outside_interval(double ulps, int64_t problems) {
    const struct at_op *op = &at_op_softmax_attention;
    struct at_numerics numerics = at_numerics_default();
    int64_t outside = 0;
    for (int64_t i = 0; i < problems; i++) {
        struct at_test_problem p;
        struct at_test_eval exact, model;
        draw(ANY, &p);
        numerics.p = (int)(enum at_format[]){ AT_F32, AT_F16, AT_BF16 }[below(3)];
        at_assert_ok(at_test_eval_init(&p.problem, 1, &exact));
        at_assert_ok(at_test_eval_init(&p.problem, 1, &model));
        at_assert_ok(op->evaluate(&p.problem, &numerics, 0, op->rows(&p.problem), &exact.eval));
        at_assert_ok(op->model(&p.problem, &numerics, 0, op->rows(&p.problem), &model.eval));
        for (int64_t row = 0; row < op->rows(&p.problem); row++)
            for (int64_t c = 0; c < p.problem.sizes.d; c++) {
                struct softmax_kernel got =
                    softmax_kernel(&p.problem, (enum at_format)numerics.p, row, c, ulps, &random_numbers);
                int64_t e = row * p.problem.sizes.d + c;
                double gap_o = fabs(got.o - model.eval.value[AT_SOFTMAX_O][e]);
                double gap_lse = fabs(got.lse - model.eval.value[AT_SOFTMAX_LSE][row]);
                outside += !(gap_o <= model.eval.limit[AT_SOFTMAX_O][e]);
                outside += isfinite(got.lse) && !(gap_lse <= model.eval.limit[AT_SOFTMAX_LSE][row]);
                if (ulps > 1 || isinf(exact.eval.limit[AT_SOFTMAX_O][e]))
                    continue;
                at_assert_within(got.o, exact.eval.value[AT_SOFTMAX_O][e], exact.eval.limit[AT_SOFTMAX_O][e]);
                if (isfinite(got.lse))
                    at_assert_within(got.lse, exact.eval.value[AT_SOFTMAX_LSE][row],
                                     exact.eval.limit[AT_SOFTMAX_LSE][row]);
            }
        at_test_eval_release(&exact);
        at_test_eval_release(&model);
        at_test_problem_release(&p);
    }
    return outside;
}

static void test_another_exponential_is_inside(void **state) {
    (void)state;
    at_assert_true(outside_interval(1, at_test_effort(10) * 30) == 0, "a correct exponential was accused");
    int64_t outside = outside_interval(300, at_test_effort(10) * 30);
    print_message("exponential off by up to 300 ulp: %lld elements outside the interval\n", (long long)outside);
    at_assert_true(outside > 0, "an exponential 300 ulp off went unseen");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_value_beyond_the_limit),
        cmocka_unit_test(test_another_exponential_is_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
