/* The modelled softmax: hand-computed rows, what is refused, specials, range, the ledger.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "softmax_attention/softmax_attention.h"
#include "tests/support/attention_problem.h"

static const struct at_op *const op = &at_op_softmax_attention;

static struct at_test_problem make(int n, int d, enum at_format dtype) {
    const int sq = 1, sk = n;
    struct at_test_problem p;
    struct at_test_shape shape = { .b = 1, .d = d, .sq = &sq, .sk = &sk, .dtype = dtype };
    at_assert_ok(at_test_attention_problem(op, &shape, 31, &p));
    p.problem.params.scale = 1;
    return p;
}

static struct at_numerics parse(const char *text) {
    struct at_numerics numerics;
    at_assert_ok(at_numerics_parse(text, &numerics));
    return numerics;
}

static struct at_test_eval model(const struct at_test_problem *p, const char *text, struct at_ledger *ledger) {
    struct at_test_eval e;
    struct at_numerics numerics = parse(text);
    at_assert_ok(at_test_eval_init(&p->problem, 1, &e));
    e.eval.ledger = ledger;
    at_assert_ok(op->model(&p->problem, &numerics, 0, op->rows(&p->problem), &e.eval));
    return e;
}

/* d = 1, scores s, values v: the documented order in plain floats, blocks of two, splits of four. */
static void test_order_by_hand(void **state) {
    (void)state;
    const float s[7] = { 0.3f, -1.7f, 0.9f, 0.4f, 2.1f, -0.2f, 1.3f },
                v[7] = { 1.1f, -2.3f, 0.7f, 3.1f, -0.9f, 2.2f, 0.3f };
    struct at_test_problem p = make(7, 1, AT_F32);
    at_test_set(&p.problem, "q", 0, 1);
    float m[2], l[2], acc[2];
    for (int part = 0; part < 2; part++) {
        m[part] = -INFINITY;
        l[part] = acc[part] = 0;
        for (int t = 4 * part; t < 4 * part + 4 && t < 7; t++) {
            at_test_set(&p.problem, "k", t, (double)s[t]);
            at_test_set(&p.problem, "v", t, (double)v[t]);
            if (t % 2 == 0) {
                float now = fmaxf(m[part], fmaxf(s[t], t + 1 < 7 ? s[t + 1] : s[t]));
                float r = (float)exp((double)(m[part] - now));
                l[part] *= r;
                acc[part] *= r;
                m[part] = now;
            }
            float w = (float)exp((double)(s[t] - m[part]));
            l[part] += w;
            acc[part] = fmaf((float)at_round(AT_BF16, (double)w), v[t], acc[part]);
        }
    }
    float most = fmaxf(m[0], m[1]), a = (float)exp((double)(m[0] - most)), b = (float)exp((double)(m[1] - most));
    float sum = l[0] * a + l[1] * b, o = (acc[0] * a + acc[1] * b) / sum, lse = most + (float)log((double)sum);
    struct at_test_eval e = model(&p, "block=2 split=4 p=bf16", NULL);
    at_assert_same(e.eval.value[AT_SOFTMAX_O][0], (double)o);
    at_assert_same(e.eval.value[AT_SOFTMAX_LSE][0], (double)lse);
    at_assert_true(e.eval.limit[AT_SOFTMAX_O][0] > 0 && e.eval.limit[AT_SOFTMAX_O][0] < 1e-5, "interval %g",
                   e.eval.limit[AT_SOFTMAX_O][0]);
    at_test_eval_release(&e);
    at_test_problem_release(&p);
}

/* The same with sums of P V rescaled by a factor of f16, which the sum of weights does not take, and divided by a
 * reciprocal of f16; o is f16. */
static void test_f16_steps_by_hand(void **state) {
    (void)state;
    const double s[4] = { 0.25, -1.5, 0.75, 2.125 }, v[4] = { 1.125, -2.25, 0.75, 3.125 };
    struct at_test_problem p = make(4, 1, AT_F16);
    at_test_set(&p.problem, "q", 0, 1);
    for (int64_t t = 0; t < 4; t++) {
        at_test_set(&p.problem, "k", t, s[t]);
        at_test_set(&p.problem, "v", t, v[t]);
    }
    float l = 0, acc = 0;
    for (int t = 0; t < 4; t += 2) {
        const float m = t ? 2.125f : 0.25f, r = t ? (float)exp(0.25 - 2.125) : 0;
        l *= r;
        acc *= (float)at_round(AT_F16, (double)r);
        for (int i = t; i < t + 2; i++) {
            const float w = (float)exp(s[i] - (double)m);
            l += w;
            acc = fmaf(w, (float)v[i], acc);
        }
    }
    const double r = at_round(AT_F16, (double)(1 / l));
    struct at_test_eval e = model(&p, "block=2 rescale=f16 divide=reciprocal_f16", NULL),
                        other = model(&p, "block=2", NULL);
    at_assert_same(e.eval.value[AT_SOFTMAX_O][0], at_round(AT_F16, (double)acc * r));
    at_assert_true(e.eval.value[AT_SOFTMAX_O][0] != other.eval.value[AT_SOFTMAX_O][0], "f16 changes nothing");
    at_assert_same(e.eval.value[AT_SOFTMAX_LSE][0], (double)(2.125f + (float)log((double)l)));
    at_test_eval_release(&e);
    at_test_eval_release(&other);
    at_test_problem_release(&p);
}

/* A number of splits is the split of that length; of another number of keys it is another one. */
static void test_number_of_splits(void **state) {
    (void)state;
    static const struct {
        int n;
        const char *number, *length;
    } same[] = { { 7, "split=1 splits=3", "split=3" },   { 7, "split=3 splits=2", "split=6" },
                 { 29, "split=4 splits=3", "split=12" }, { 24, "split=4 splits=3", "split=8" },
                 { 24, "split=4 splits=1", "split=0" },  { 5, "split=4 splits=9", "split=4" } };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct at_test_problem p = make(same[i].n, 3, AT_F32);
        struct at_test_eval a = model(&p, same[i].number, NULL), b = model(&p, same[i].length, NULL);
        for (int64_t c = 0; c < 3; c++)
            at_assert_same(a.eval.value[AT_SOFTMAX_O][c], b.eval.value[AT_SOFTMAX_O][c]);
        at_assert_same(a.eval.value[AT_SOFTMAX_LSE][0], b.eval.value[AT_SOFTMAX_LSE][0]);
        at_test_eval_release(&a);
        at_test_eval_release(&b);
        at_test_problem_release(&p);
    }
}

/* Weights of 0 and 1 leave nothing to the exponential: the interval is a point, in every unit. */
static void test_exact_cases_have_no_interval(void **state) {
    (void)state;
    const char *texts[] = { "pv_unit=f32_fma", "qk_unit=tc_f16 pv_unit=tc_f16 pv_chunk=16 p=f16 block=16 split=16",
                            "qk_unit=f64 pv_unit=f64 block=3" };
    for (int i = 0; i < 3; i++) {
        struct at_test_problem p = make(40, 2, i == 1 ? AT_F16 : AT_F32);
        at_test_set_all(&p.problem, "q", 1);
        for (int64_t t = 0; t < 40; t++)
            for (int64_t c = 0; c < 2; c++) {
                at_test_set(&p.problem, "k", t * 2 + c, t % 5 ? -900 : 3);
                at_test_set(&p.problem, "v", t * 2 + c, (double)(t % 7 - 3));
            }
        struct at_test_eval e = model(&p, texts[i], NULL);
        for (int64_t c = 0; c < 2; c++) { /* keys 0 5 10 ... 35: v = -3 2 0 -2 3 1 -1 -3 */
            at_assert_same(e.eval.value[AT_SOFTMAX_O][c], -0.375);
            at_assert_same(e.eval.limit[AT_SOFTMAX_O][c], 0);
        }
        at_test_eval_release(&e);
        at_test_problem_release(&p);
    }
}

/* A weight within 2u of a tie of bf16, below it or above: another exponential rounds it the other way, up or down, and
 * only such a weight widens o. */
static void test_ties_of_p_widen_the_interval(void **state) {
    (void)state;
    for (int side = -1; side <= 1; side++) {
        struct at_test_problem p = make(2, 1, AT_F32);
        float s = (float)log(0.5 * (1 + (side ? 0x1p-8 : 0x1p-9)));
        for (int i = 0; i < 2 && side; i++)
            s = nextafterf(s, side > 0 ? 0 : -1);
        at_test_set(&p.problem, "q", 0, 1);
        at_test_set(&p.problem, "k", 0, 0);
        at_test_set(&p.problem, "k", 1, (double)s);
        at_test_set(&p.problem, "v", 0, 0);
        at_test_set(&p.problem, "v", 1, 1);
        struct at_test_eval e = model(&p, "p=bf16", NULL);
        double width = e.eval.limit[AT_SOFTMAX_O][0], o = e.eval.value[AT_SOFTMAX_O][0];
        at_assert_true(side ? width > 0x1p-10 : width < 0x1p-20, "side %d: interval %g", side, width);
        /* below the tie P is 0.5, above it 0.5 (1 + 2^-7) */
        at_assert_within(o * 1.501953125, side > 0 ? 0.50390625 : 0.5, 0x1p-9 * 0.5);
        at_test_eval_release(&e);
        at_test_problem_release(&p);
    }
}

/* Sums past the range of f16 that another exponential leaves elsewhere: the guard holds the ends of the interval as it
 * holds the value. */
static void test_guarded_sums_keep_an_interval(void **state) {
    (void)state;
    struct at_test_problem p = make(3, 1, AT_F16);
    at_test_set(&p.problem, "q", 0, 1);
    p.problem.params.scale = nextafterf((float)log(0.5 * (1 + 0x1p-11)), 0); /* the last weight: by a tie of f16 */
    for (int64_t t = 0; t < 3; t++) {
        at_test_set(&p.problem, "k", t, t == 2);
        at_test_set(&p.problem, "v", t, t == 2 ? 1000 : 60000);
    }
    struct at_test_eval e = model(&p, "pv_unit=tc_f16 pv_chunk=16 p=f16 guard=isinf", NULL);
    at_assert_same(e.eval.value[AT_SOFTMAX_O][0], 26192); /* 65504 / 2.50024, in f16 */
    at_assert_true(e.eval.limit[AT_SOFTMAX_O][0] <= 16, "interval %g", e.eval.limit[AT_SOFTMAX_O][0]);
    at_test_eval_release(&e);
    at_test_problem_release(&p);
}

/* Rows own their elements in order, none twice, none left out; inputs belong to no row. */
static void test_row_spans(void **state) {
    (void)state;
    struct at_test_problem p = make(3, 5, AT_F32);
    for (int tensor = 0; tensor < op->n_tensors; tensor++) {
        int64_t first, count, each = tensor == AT_SOFTMAX_O ? 5 : tensor == AT_SOFTMAX_LSE;
        for (int64_t row = 0; row < 4; row++) {
            op->row_span(&p.problem, tensor, row, &first, &count);
            at_assert_true(count == each && first == row * each, "%s row %d", op->tensors[tensor].name, (int)row);
        }
    }
    at_test_problem_release(&p);
}

static void test_what_is_refused(void **state) {
    (void)state;
    struct at_test_problem p = make(3, 2, AT_F32), half = make(3, 2, AT_BF16);
    struct at_test_eval e;
    at_assert_ok(at_test_eval_init(&p.problem, 1, &e));
    struct at_numerics n = parse("free_order=1");
    at_assert_fails(op->model(&p.problem, &n, 0, 1, &e.eval), AT_UNSUPPORTED, "free_order");
    at_assert_ok(op->evaluate(&p.problem, &n, 0, 1, &e.eval)); /* any order has a limit */
    n = parse("qk_unit=tc_f32");
    at_assert_fails(op->model(&p.problem, &n, 0, 1, &e.eval), AT_UNSUPPORTED, "q.k on tensor cores");
    at_assert_fails(op->evaluate(&p.problem, &n, 0, 1, &e.eval), AT_UNSUPPORTED, "q.k on tensor cores");
    n = parse("qk_unit=tc_f32 scale_on=q");
    at_assert_fails(op->model(&half.problem, &n, 0, 1, &e.eval), AT_UNSUPPORTED, "q.k on tensor cores");
    n = parse("pv_unit=tc_f32 pv_chunk=16 p=f16");
    at_assert_fails(op->model(&half.problem, &n, 0, 1, &e.eval), AT_UNSUPPORTED, "p.v on tensor cores");
    n = parse("qk_unit=f64 pv_unit=f64 divide=reciprocal_f16");
    at_assert_fails(op->model(&p.problem, &n, 0, 1, &e.eval), AT_UNSUPPORTED, "softmax in f64");
    n = parse("qk_unit=f64 pv_unit=f64 block=2 rescale=f16");
    at_assert_fails(op->evaluate(&p.problem, &n, 0, 1, &e.eval), AT_UNSUPPORTED, "softmax in f64");
    n = parse("pv_unit=f16_fma p=f16");
    at_assert_fails(op->model(&half.problem, &n, 0, 1, &e.eval), AT_UNSUPPORTED, "p.v by f16 FMA");
    n.qk_lanes = 0;
    at_assert_fails(op->model(&half.problem, &n, 0, 1, &e.eval), AT_USAGE, "qk_lanes");
    at_test_eval_release(&e);
    at_test_problem_release(&p);
    at_test_problem_release(&half);
}

/* Scores that are not finite: reference and model agree in class, and the limit is 0 where the class decides. */
static void test_specials(void **state) {
    (void)state;
    const double bad[] = { (double)NAN, (double)INFINITY, (double)-INFINITY };
    const char *texts[] = { "pv_unit=f32_fma", "pv_unit=f32 block=2", "split=2 exp=ex2_approx",
                            "qk_unit=f64 pv_unit=f64 block=2" };
    for (int i = 0; i < 12; i++)
        for (int all = 0; all <= 1; all++) {
            struct at_test_problem p = make(5, 1, AT_F32);
            struct at_numerics numerics = parse(texts[i / 3]);
            struct at_test_eval e, m;
            at_test_set(&p.problem, "q", 0, 1);
            for (int64_t t = 0; t < 5; t++)
                if (all || t == 2)
                    at_test_set(&p.problem, "k", t, bad[i % 3]);
            at_assert_ok(at_test_eval_init(&p.problem, 1, &e));
            at_assert_ok(op->evaluate(&p.problem, &numerics, 0, 1, &e.eval));
            m = model(&p, texts[i / 3], NULL);
            double o = e.eval.value[AT_SOFTMAX_O][0], lse = e.eval.value[AT_SOFTMAX_LSE][0];
            if (i % 3 < 2 || all) {
                at_assert_same(o, (double)NAN);
                at_assert_same(lse, i % 3 < 2 ? (double)NAN : (double)-INFINITY);
                at_assert_same(m.eval.value[AT_SOFTMAX_O][0], o);
                at_assert_same(m.eval.value[AT_SOFTMAX_LSE][0], lse);
                at_assert_same(e.eval.limit[AT_SOFTMAX_O][0], 0);
            } else { /* one key of weight 0 */
                at_assert_within(m.eval.value[AT_SOFTMAX_O][0], o, e.eval.limit[AT_SOFTMAX_O][0]);
                at_assert_within(m.eval.value[AT_SOFTMAX_LSE][0], lse, e.eval.limit[AT_SOFTMAX_LSE][0]);
                at_assert_true(e.eval.limit[AT_SOFTMAX_O][0] < 1e-4, "limit %g", e.eval.limit[AT_SOFTMAX_O][0]);
            }
            at_test_eval_release(&e);
            at_test_eval_release(&m);
            at_test_problem_release(&p);
        }
}

/* A V row whose weight is 0 holds an infinity: multiplied it makes NaN, skipped it does not. */
static void test_zero_weights(void **state) {
    (void)state;
    struct at_test_problem p = make(4, 1, AT_F32);
    at_test_set(&p.problem, "q", 0, 1);
    at_test_set(&p.problem, "k", 2, -2000);
    at_test_set(&p.problem, "v", 2, (double)INFINITY);
    struct at_test_eval skipped = model(&p, "pv_zero=skipped", NULL), all = model(&p, "pv_zero=multiplied", NULL), e;
    at_assert_true(isfinite(skipped.eval.value[AT_SOFTMAX_O][0]), "skipped: %g", skipped.eval.value[AT_SOFTMAX_O][0]);
    at_assert_same(all.eval.value[AT_SOFTMAX_O][0], (double)NAN);
    for (int i = 0; i < 2; i++) {
        struct at_numerics numerics = parse(i ? "pv_zero=multiplied" : "pv_zero=skipped");
        at_assert_ok(at_test_eval_init(&p.problem, 1, &e));
        at_assert_ok(op->evaluate(&p.problem, &numerics, 0, 1, &e.eval));
        at_assert_true(isfinite(e.eval.value[AT_SOFTMAX_O][0]) && isinf(e.eval.limit[AT_SOFTMAX_O][0]) == i, "limit %g",
                       e.eval.limit[AT_SOFTMAX_O][0]);
        at_test_eval_release(&e);
    }
    at_test_eval_release(&skipped);
    at_test_eval_release(&all);
    at_test_problem_release(&p);
}

static double limit_of_one(double q, double k, double v, double scale, int tensor, const char *text) {
    struct at_test_problem p = make(1, 1, AT_F32);
    struct at_numerics numerics = parse(text);
    struct at_test_eval e;
    p.problem.params.scale = (float)scale;
    at_test_set(&p.problem, "q", 0, q);
    at_test_set(&p.problem, "k", 0, k);
    at_test_set(&p.problem, "v", 0, v);
    at_assert_ok(at_test_eval_init(&p.problem, 1, &e));
    at_assert_ok(op->evaluate(&p.problem, &numerics, 0, 1, &e.eval));
    const double limit = e.eval.limit[tensor][0];
    at_test_eval_release(&e);
    at_test_problem_release(&p);
    return limit;
}

/* An infinity times what tf32 has as 0 is NaN, and what it rounds to infinity is one: no limit. Elsewhere classes are kept. */
static void test_ends_of_tf32(void **state) {
    (void)state;
    const double inf = (double)INFINITY;
    at_assert_same(limit_of_one(0x1p-140, -inf, 1, 1, AT_SOFTMAX_LSE, "qk_unit=f32_fma"), 0.0);
    at_assert_same(limit_of_one(0x1p-140, -inf, 1, 1, AT_SOFTMAX_LSE, "qk_unit=tc_tf32"), inf);
    at_assert_same(limit_of_one(1, 1, inf, 1, AT_SOFTMAX_O, "pv_unit=f32_fma"), 0.0);
    at_assert_same(limit_of_one(1, 1, inf, 1, AT_SOFTMAX_O, "pv_unit=tc_tf32 pv_chunk=8"), inf);
    /* q is rounded to f32 by its scale before tf32 rounds it, here to infinity; without that step it would not be */
    const char *rna = "qk_unit=tc_tf32_rna scale_on=q";
    at_assert_same(limit_of_one(0x1.ffdffcp127, 0x1p-10, 1, 0x1.000002p0, AT_SOFTMAX_LSE, rna), inf);
    at_assert_true(isfinite(limit_of_one(0x1.ffcp126, 0x1p-120, 1, 0x1.000002p0, AT_SOFTMAX_LSE, rna)),
                   "far from the end");
}

/* f16 dot products past the end of range: no limit, and the ledger tells where it happened and what vanished. */
static void test_range_and_ledger(void **state) {
    (void)state;
    struct at_test_problem p = make(3, 2, AT_F16);
    struct at_ledger ledger;
    struct at_test_eval e;
    struct at_numerics numerics = parse("qk_unit=tc_f16 pv_unit=f32_fma");
    at_test_set_all(&p.problem, "q", 250);
    at_test_set_all(&p.problem, "k", 1);
    at_test_set(&p.problem, "k", 4, -250);
    at_test_set(&p.problem, "k", 5, -250);
    p.problem.params.scale = 0.001f;
    at_ledger_init(&ledger);
    struct at_test_eval m = model(&p, "qk_unit=tc_f16 pv_unit=f32_fma", &ledger);
    at_assert_true(isfinite(m.eval.value[AT_SOFTMAX_O][0]), "an overflow to -inf leaves no trace in o");
    at_assert_true(ledger.laundered == 1 && ledger.has_laundered && ledger.first_laundered.k == 2, "laundered");
    at_assert_true(ledger.stage[AT_STAGE_qk_acc].inf == 1 && ledger.stage[AT_STAGE_scaled].inf == 1 &&
                       ledger.inf_made == 1 && ledger.stage[AT_STAGE_p].zero == 1,
                   "infinities %llu made", (unsigned long long)ledger.inf_made);
    at_assert_ok(at_test_eval_init(&p.problem, 1, &e));
    at_assert_ok(op->evaluate(&p.problem, &numerics, 0, 1, &e.eval));
    at_assert_same(e.eval.limit[AT_SOFTMAX_O][0], (double)INFINITY);
    at_assert_same(e.eval.limit[AT_SOFTMAX_LSE][0], (double)INFINITY);
    at_test_set(&p.problem, "k", 4, -1);
    at_test_set(&p.problem, "k", 5, -1);
    at_assert_ok(op->evaluate(&p.problem, &numerics, 0, 1, &e.eval));
    at_assert_true(e.eval.limit[AT_SOFTMAX_O][0] < 0.1, "limit %g", e.eval.limit[AT_SOFTMAX_O][0]);
    at_test_eval_release(&e);
    at_test_eval_release(&m);
    at_test_problem_release(&p);
}

/* The f16 sum of P V past its range, by equal weights and large values. */
static void test_pv_range(void **state) {
    (void)state;
    struct at_test_problem p = make(32, 1, AT_F16);
    struct at_test_eval e;
    struct at_ledger ledger;
    const char *text = "qk_unit=f32 pv_unit=tc_f16 pv_chunk=16 p=f16";
    struct at_numerics numerics = parse(text);
    at_test_set_all(&p.problem, "k", 0);
    at_assert_ok(at_test_eval_init(&p.problem, 1, &e));
    for (int big = 0; big <= 1; big++) {
        at_ledger_init(&ledger);
        at_test_set_all(&p.problem, "v", big ? 2048 : 2000);
        at_assert_ok(op->evaluate(&p.problem, &numerics, 0, 1, &e.eval));
        struct at_test_eval m = model(&p, text, &ledger);
        at_assert_true(isinf(m.eval.value[AT_SOFTMAX_O][0]) == big && (ledger.stage[AT_STAGE_pv_acc].to_inf > 0) == big,
                       "o = %g", m.eval.value[AT_SOFTMAX_O][0]);
        at_assert_true(isinf(e.eval.limit[AT_SOFTMAX_O][0]) == big, "limit %g", e.eval.limit[AT_SOFTMAX_O][0]);
        at_test_eval_release(&m);
    }
    at_test_eval_release(&e);
    at_test_problem_release(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_by_hand),
        cmocka_unit_test(test_f16_steps_by_hand),
        cmocka_unit_test(test_number_of_splits),
        cmocka_unit_test(test_exact_cases_have_no_interval),
        cmocka_unit_test(test_ties_of_p_widen_the_interval),
        cmocka_unit_test(test_guarded_sums_keep_an_interval),
        cmocka_unit_test(test_row_spans),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_specials),
        cmocka_unit_test(test_zero_weights),
        cmocka_unit_test(test_ends_of_tf32),
        cmocka_unit_test(test_range_and_ledger),
        cmocka_unit_test(test_pv_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
