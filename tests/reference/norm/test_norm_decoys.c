/* Each decoy of the norms is the fault that its name says: it equals expectations computed in plain sight, differs from
 * the reference where the fault shows, equals it to the bit where it cannot, and counts there and not here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/norm_problem.h"

enum { TOKENS = 3, CHANNELS = 8 };
#define PERI "post_attn_pre_mlp_uclip"

static double get(const struct at_problem *p, const char *name, int64_t i) { return at_test_get(p, name, i); }

/* Decoy by its name; -1 (NULL): the right result. The caller frees. */
static double *run(const struct at_problem *p, const char *decoy, const char *output) {
    struct at_test_eval eval;
    const int tensor = at_op_tensor_index(p->op, output);
    const int64_t n = at_test_count(p, tensor);
    int which = decoy ? 0 : -1;
    while (decoy && which < p->op->n_decoys && strcmp(p->op->decoys[which].name, decoy) != 0)
        which++;
    at_assert_true(which < p->op->n_decoys, "%s has no decoy %s", p->op->name, decoy);
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 0, &eval));
    for (int64_t row = 0; row < TOKENS; row++) /* rows are independent */
        at_assert_ok(decoy ? p->op->decoy(p, NULL, which, row, row + 1, &eval.eval)
                           : p->op->evaluate(p, NULL, row, row + 1, &eval.eval));
    double *out = malloc((size_t)n * sizeof *out);
    assert_non_null(out);
    memcpy(out, eval.eval.value[tensor], (size_t)n * sizeof *out);
    at_test_eval_release(&eval);
    return out;
}

/* Does it count: some element is off by more than 16 units of the output format and a quarter of
 * its row's rms. */
static int counts(const struct at_problem *p, const double *wrong, const double *right, int64_t width) {
    for (int64_t i = 0; i < TOKENS * width; i++) {
        double sum = 0;
        for (int64_t c = 0; c < width; c++)
            sum += right[i - i % width + c] * right[i - i % width + c];
        if (fabs(wrong[i] - right[i]) > fmax(16 * at_ulp(p->dtype, right[i]), sqrt(sum / (double)width) / 4))
            return 1;
    }
    return 0;
}

/* The expectation of one element, from the inputs. */
typedef double expectation(const struct at_problem *p, int64_t i);

/* The decoy is the expectation everywhere and counts. */
static void assert_decoy(const struct at_problem *p, const char *decoy, const char *output, expectation *expected) {
    double *wrong = run(p, decoy, output), *right = run(p, NULL, output);
    const int64_t n = at_test_count(p, at_op_tensor_index(p->op, output));
    for (int64_t i = 0; i < n; i++)
        at_assert_within(wrong[i], expected(p, i), 1e-13 * (1 + fabs(wrong[i])));
    at_assert_true(counts(p, wrong, right, n / TOKENS), "%s of %s changes nothing that counts", decoy, p->op->name);
    free(wrong);
    free(right);
}

/* The decoy is the right result to the bit. */
static void assert_inert(const struct at_problem *p, const char *decoy, const char *output) {
    double *wrong = run(p, decoy, output), *right = run(p, NULL, output);
    const int64_t n = at_test_count(p, at_op_tensor_index(p->op, output));
    for (int64_t i = 0; i < n; i++)
        at_assert_same(wrong[i], right[i]);
    free(wrong);
    free(right);
}

/* Eighths up to 2 in either sign, alpha and gamma from quarters, beta from sixteenths, all different by channel: sums
 * of them are exact in every format, so rounding a sum changes nothing. */
static void make(const char *op, enum at_format dtype, struct at_test_problem *made) {
    struct at_test_norm_shape shape = { .tokens = TOKENS, .channels = CHANNELS, .dtype = dtype };
    at_test_norm_problem(at_op_find(op), &shape, made);
    struct at_problem *p = &made->problem;
    for (int t = 0; t < p->op->n_tensors; t++) {
        const char *name = p->op->tensors[t].name;
        for (int64_t i = 0; p->op->tensors[t].role != AT_OUT && i < at_tensor_count(&p->tensors[t]); i++) {
            double x = (double)((11 * i + 5 * t + 3) % 33 - 16) / 8;
            if (p->op->tensors[t].format == AT_FORMAT_F32)
                x = name[0] == 'b' ? (double)(i + t) / 16 : 0.25 + (double)((3 * i + t) % 7) / 4;
            at_test_set(p, name, i, x);
        }
    }
}

static double clip(double t) { return t < -1 ? -1 : t > 1 ? 1 : t; }

/* ---- UClip ---- */

static int64_t channel(int64_t i) { return i % CHANNELS; }
static int64_t next(int64_t i) { return (i + 1) % CHANNELS; }
/* What the norm is of: the sum where there is one. */
static double x_of(const struct at_problem *p, int64_t i) {
    return get(p, "x", i) + (at_op_tensor_index(p->op, "res") >= 0 ? get(p, "res", i) : 0);
}
static double uclip_unclamped(const struct at_problem *p, int64_t i) {
    return get(p, "gamma", channel(i)) * get(p, "alpha", channel(i)) * x_of(p, i) + get(p, "beta", channel(i));
}
static double uclip_no_alpha(const struct at_problem *p, int64_t i) {
    return get(p, "gamma", channel(i)) * clip(x_of(p, i)) + get(p, "beta", channel(i));
}
static double uclip_no_gamma(const struct at_problem *p, int64_t i) {
    return clip(get(p, "alpha", channel(i)) * x_of(p, i)) + get(p, "beta", channel(i));
}
static double uclip_next(const struct at_problem *p, int64_t i) {
    return get(p, "gamma", next(i)) * clip(get(p, "alpha", next(i)) * x_of(p, i)) + get(p, "beta", next(i));
}
static double uclip_no_residual(const struct at_problem *p, int64_t i) {
    return get(p, "gamma", channel(i)) * clip(get(p, "alpha", channel(i)) * get(p, "x", i)) +
           get(p, "beta", channel(i));
}
static double x_alone(const struct at_problem *p, int64_t i) { return get(p, "x", i); }

static void test_uclip(void **state) {
    (void)state;
    for (int add = 0; add < 2; add++) {
        struct at_test_problem made;
        struct at_problem *p = &made.problem;
        make(add ? "add_uclip_norm" : "uclip_norm", add ? AT_BF16 : AT_F32, &made);
        for (int i = 0; i < CHANNELS; i++) /* some clamp, some do not */
            at_test_set(p, "alpha", i, (double)(i + 1) / 8);
        assert_decoy(p, "unclamped", "y", uclip_unclamped);
        assert_decoy(p, "no_alpha", "y", uclip_no_alpha);
        assert_decoy(p, "no_gamma", "y", uclip_no_gamma);
        assert_decoy(p, "next_channel", "y", uclip_next);
        if (add) {
            assert_decoy(p, "residual_dropped", "y", uclip_no_residual);
            assert_decoy(p, "residual_dropped", "res_out", x_alone);
            static const char *const only_y[] = { "unclamped", "no_alpha", "no_gamma", "next_channel" };
            for (int i = 0; i < 4; i++)
                assert_inert(p, only_y[i], "res_out");
            at_test_set_all(p, "res", 0);
            assert_inert(p, "residual_dropped", "y");
            assert_inert(p, "residual_dropped", "res_out");
        }
        p->params.lo = -100;
        p->params.hi = 100;
        assert_inert(p, "unclamped", "y");
        at_test_set_all(p, "alpha", 1);
        assert_inert(p, "no_alpha", "y");
        at_test_set_all(p, "gamma", 1);
        assert_inert(p, "no_gamma", "y");
        at_test_set_all(p, "beta", 0.5);
        assert_inert(p, "next_channel", "y");
        at_test_problem_release(&made);
    }
}

/* ---- q and k ---- */

static double qk(const struct at_problem *p, int64_t i, int from_k, int with_k, int64_t c, int alpha, int gamma) {
    double t = get(p, from_k ? "k" : "q", i) * (alpha ? get(p, with_k ? "alpha_k" : "alpha_q", c) : 1);
    return (gamma ? get(p, with_k ? "gamma_k" : "gamma_q", c) : 1) * clip(t);
}
static double q_swapped(const struct at_problem *p, int64_t i) { return qk(p, i, 0, 1, channel(i), 1, 1); }
static double k_swapped(const struct at_problem *p, int64_t i) { return qk(p, i, 1, 0, channel(i), 1, 1); }
static double q_no_alpha(const struct at_problem *p, int64_t i) { return qk(p, i, 0, 0, channel(i), 0, 1); }
static double k_no_alpha(const struct at_problem *p, int64_t i) { return qk(p, i, 1, 1, channel(i), 0, 1); }
static double q_no_gamma(const struct at_problem *p, int64_t i) { return qk(p, i, 0, 0, channel(i), 1, 0); }
static double k_no_gamma(const struct at_problem *p, int64_t i) { return qk(p, i, 1, 1, channel(i), 1, 0); }
static double q_next(const struct at_problem *p, int64_t i) { return qk(p, i, 0, 0, next(i), 1, 1); }
static double k_next(const struct at_problem *p, int64_t i) { return qk(p, i, 1, 1, next(i), 1, 1); }
static double q_unclamped(const struct at_problem *p, int64_t i) {
    return get(p, "gamma_q", channel(i)) * get(p, "alpha_q", channel(i)) * get(p, "q", i);
}
static double k_unclamped(const struct at_problem *p, int64_t i) {
    return get(p, "gamma_k", channel(i)) * get(p, "alpha_k", channel(i)) * get(p, "k", i);
}

static void test_qk(void **state) {
    (void)state;
    struct at_test_problem made;
    struct at_problem *p = &made.problem;
    make("qk_uclip_norm", AT_F16, &made);
    at_test_set_all(p, "gamma_k", -1.5);
    assert_decoy(p, "unclamped", "q_out", q_unclamped);
    assert_decoy(p, "unclamped", "k_out", k_unclamped);
    assert_decoy(p, "no_alpha", "q_out", q_no_alpha);
    assert_decoy(p, "no_alpha", "k_out", k_no_alpha);
    assert_decoy(p, "no_gamma", "q_out", q_no_gamma);
    assert_decoy(p, "no_gamma", "k_out", k_no_gamma);
    assert_decoy(p, "next_channel", "q_out", q_next);
    assert_decoy(p, "next_channel", "k_out", k_next);
    assert_decoy(p, "swapped_parameters", "q_out", q_swapped);
    assert_decoy(p, "swapped_parameters", "k_out", k_swapped);
    for (int i = 0; i < CHANNELS; i++) {
        at_test_set(p, "alpha_k", i, get(p, "alpha_q", i));
        at_test_set(p, "gamma_k", i, get(p, "gamma_q", i));
    }
    assert_inert(p, "swapped_parameters", "q_out");
    assert_inert(p, "swapped_parameters", "k_out");
    at_test_problem_release(&made);
}

static double q_one_gamma_next(const struct at_problem *p, int64_t i) {
    return get(p, "gamma_q", 0) * clip(get(p, "alpha_q", next(i)) * get(p, "q", i));
}
static double k_one_gamma_swapped(const struct at_problem *p, int64_t i) {
    return get(p, "gamma_q", 0) * clip(get(p, "alpha_q", channel(i)) * get(p, "k", i));
}

/* The next channel has the same gamma, k another one. */
static void test_qk_one_gamma(void **state) {
    (void)state;
    struct at_test_norm_shape shape = { .tokens = TOKENS, .channels = CHANNELS, .dtype = AT_F16, .one_gamma = 1 };
    struct at_test_problem made;
    at_test_norm_problem(at_op_find("qk_uclip_norm"), &shape, &made);
    struct at_problem *p = &made.problem;
    assert_int_equal(at_test_count(p, at_op_tensor_index(p->op, "gamma_q")), 1);
    at_test_set(p, "gamma_q", 0, -1.5);
    at_test_set(p, "gamma_k", 0, 0.75);
    for (int i = 0; i < CHANNELS; i++) {
        at_test_set(p, "alpha_q", i, 0.25 * (1 + i));
        at_test_set(p, "alpha_k", i, -0.5 * (1 + i));
    }
    for (int i = 0; i < TOKENS * CHANNELS; i++) {
        at_test_set(p, "k", i, (i % 7 - 3) / 8.0);
        at_test_set(p, "q", i, (i % 5 - 2) / 8.0);
    }
    assert_decoy(p, "next_channel", "q_out", q_one_gamma_next);
    assert_decoy(p, "swapped_parameters", "k_out", k_one_gamma_swapped);
    at_test_problem_release(&made);
}

/* ---- both norms around the residual ---- */

/* Which parts of the formula stand. */
struct parts {
    int post_clamp, post, pre_clamp, pre_gamma, residual, pre_next; /* residual 2: of the sum that has overwritten it */
};
static double sum_of(const struct at_problem *p, int64_t i, struct parts with) {
    double t = get(p, "a", i), alpha = get(p, "alpha_post", channel(i));
    if (with.post) {
        t = get(p, "gamma_post", channel(i)) * (with.post_clamp ? clip(alpha * t) : alpha * t);
        t = at_round(p->dtype, t + get(p, "beta_post", channel(i)));
    }
    return t + (with.residual ? get(p, "res", i) : 0) + (with.residual == 2 ? t : 0);
}
static double both(const struct at_problem *p, int64_t i, struct parts with) {
    const int64_t c = with.pre_next ? next(i) : channel(i);
    double t = get(p, "alpha_pre", c) * at_round(p->dtype, sum_of(p, i, with));
    return (with.pre_gamma ? get(p, "gamma_pre", c) : 1) * (with.pre_clamp ? clip(t) : t) + get(p, "beta_pre", c);
}
#define PARTS(name, ...) \
    static double name##_y(const struct at_problem *p, int64_t i) { \
        return both(p, i, (struct parts){ __VA_ARGS__ }); \
    } \
    static double name##_res(const struct at_problem *p, int64_t i) { \
        return sum_of(p, i, (struct parts){ __VA_ARGS__ }); \
    }
PARTS(post_unclamped, 0, 1, 1, 1, 1, 0)
PARTS(post_skipped, 1, 0, 1, 1, 1, 0)
PARTS(pre_unclamped, 1, 1, 0, 1, 1, 0)
PARTS(pre_no_gamma, 1, 1, 1, 0, 1, 0)
PARTS(residual_dropped, 1, 1, 1, 1, 0, 0)
PARTS(next_channel, 1, 1, 1, 1, 1, 1)
PARTS(residual_read_late, 1, 1, 1, 1, 2, 0)

/* `stored`: what the new residual stream is written to. */
static void assert_peri(const char *op, const char *stored) {
    struct at_test_problem made;
    struct at_problem *p = &made.problem;
    make(op, AT_F32, &made);
    at_test_set_all(p, "gamma_pre", -1.75);
    at_test_set(p, "gamma_pre", 2, 1.75);
    for (int i = 0; i < CHANNELS; i++) /* what comes before must show behind the second clamp */
        at_test_set(p, "alpha_pre", i, (double)(i + 1) / 8);
    assert_decoy(p, "post_unclamped", "y", post_unclamped_y);
    assert_decoy(p, "post_unclamped", stored, post_unclamped_res);
    assert_decoy(p, "post_skipped", "y", post_skipped_y);
    assert_decoy(p, "post_skipped", stored, post_skipped_res);
    assert_decoy(p, "pre_unclamped", "y", pre_unclamped_y);
    assert_decoy(p, "pre_no_gamma", "y", pre_no_gamma_y);
    assert_decoy(p, "residual_dropped", "y", residual_dropped_y);
    assert_decoy(p, "residual_dropped", stored, residual_dropped_res);
    assert_decoy(p, "next_channel", "y", next_channel_y);
    static const char *const only_y[] = { "pre_unclamped", "pre_no_gamma", "next_channel" };
    for (int i = 0; i < 3; i++)
        assert_inert(p, only_y[i], stored);
    (void)pre_unclamped_res, (void)pre_no_gamma_res, (void)next_channel_res;
    p->params.lo = -100;
    p->params.hi = 100;
    assert_inert(p, "post_unclamped", "y");
    assert_inert(p, "pre_unclamped", "y");
    at_test_set_all(p, "res", 0);
    assert_inert(p, "residual_dropped", "y");
    static const char *const ones[] = { "alpha_post", "gamma_post", "gamma_pre", "alpha_pre" };
    for (int i = 0; i < 4; i++)
        at_test_set_all(p, ones[i], 1);
    at_test_set_all(p, "beta_post", 0);
    at_test_set_all(p, "beta_pre", 0.25);
    assert_inert(p, "post_skipped", "y");
    assert_inert(p, "pre_no_gamma", "y");
    assert_inert(p, "next_channel", "y");
    at_test_problem_release(&made);
}

static void test_peri(void **state) {
    (void)state;
    assert_peri(PERI, "res_out");
    assert_peri(PERI "_in_place", "res");
}

/* Where the new residual stream takes the place of the old one, that one may be read too late. */
static void test_in_place(void **state) {
    (void)state;
    struct at_test_problem made;
    make(PERI "_in_place", AT_F32, &made);
    for (int i = 0; i < CHANNELS; i++)
        at_test_set(&made.problem, "alpha_pre", i, (double)(i + 1) / 8);
    assert_decoy(&made.problem, "residual_read_late", "res", residual_read_late_res);
    assert_decoy(&made.problem, "residual_read_late", "y", residual_read_late_y);
    at_test_set_all(&made.problem, "gamma_post", 0); /* nothing is added */
    at_test_set_all(&made.problem, "beta_post", 0);
    assert_inert(&made.problem, "residual_read_late", "res");
    assert_inert(&made.problem, "residual_read_late", "y");
    at_test_problem_release(&made);
}

/* ---- RMS ---- */

static double rms(const struct at_problem *p, int64_t i, int seen, int divisor, int residual, double gamma) {
    double sum = 0, x = 0;
    for (int c = 0; c < CHANNELS; c++) {
        const int64_t at = i - i % CHANNELS + c;
        double one = residual ? x_of(p, at) : get(p, "x", at);
        sum += c < seen ? one * one : 0;
        x = at == i ? one : x;
    }
    return gamma * x / sqrt(sum / divisor + (double)p->params.eps);
}
static double rms_no_mean(const struct at_problem *p, int64_t i) {
    return rms(p, i, CHANNELS, 1, 1, get(p, "gamma", channel(i)));
}
static double rms_no_gamma(const struct at_problem *p, int64_t i) { return rms(p, i, CHANNELS, CHANNELS, 1, 1); }
static double rms_next(const struct at_problem *p, int64_t i) {
    return rms(p, i, CHANNELS, CHANNELS, 1, get(p, "gamma", next(i)));
}
static double rms_last_unseen(const struct at_problem *p, int64_t i) {
    return rms(p, i, CHANNELS - 1, CHANNELS, 1, get(p, "gamma", channel(i)));
}
static double rms_no_residual(const struct at_problem *p, int64_t i) {
    return rms(p, i, CHANNELS, CHANNELS, 0, get(p, "gamma", channel(i)));
}

static void test_rms(void **state) {
    (void)state;
    for (int add = 0; add < 2; add++) {
        struct at_test_problem made;
        struct at_problem *p = &made.problem;
        make(add ? "add_rms_norm" : "rms_norm", add ? AT_F16 : AT_F32, &made);
        p->params.eps = 0.25f;
        at_test_set_all(p, "gamma", -1.75);
        at_test_set(p, "gamma", 2, 1.75);
        for (int row = 0; row < TOKENS; row++) /* a last channel that matters */
            at_test_set(p, "x", row * CHANNELS + CHANNELS - 1, 16);
        assert_decoy(p, "no_mean", "y", rms_no_mean);
        assert_decoy(p, "no_gamma", "y", rms_no_gamma);
        assert_decoy(p, "next_channel", "y", rms_next);
        assert_decoy(p, "last_channel_unseen", "y", rms_last_unseen);
        if (add) {
            assert_decoy(p, "residual_dropped", "y", rms_no_residual);
            assert_decoy(p, "residual_dropped", "res_out", x_alone);
            static const char *const only_y[] = { "no_mean", "no_gamma", "next_channel", "last_channel_unseen" };
            for (int i = 0; i < 4; i++)
                assert_inert(p, only_y[i], "res_out");
            at_test_set_all(p, "res", 0);
            assert_inert(p, "residual_dropped", "y");
        }
        at_test_set_all(p, "gamma", 1);
        assert_inert(p, "no_gamma", "y");
        assert_inert(p, "next_channel", "y");
        for (int row = 0; row < TOKENS; row++)
            at_test_set(p, "x", row * CHANNELS + CHANNELS - 1, 0);
        assert_inert(p, "last_channel_unseen", "y");
        at_test_problem_release(&made);
    }
}

/* One channel: nothing to divide by, and no other channel. */
static void test_one_channel(void **state) {
    (void)state;
    for (int op = 0; op < AT_TEST_NORMS; op++) {
        struct at_test_norm_shape shape = { .tokens = TOKENS, .channels = 1, .dtype = AT_F32 };
        struct at_test_problem made;
        at_test_norm_problem(at_test_norm_op(op), &shape, &made);
        const struct at_problem *p = &made.problem;
        for (int t = 0; t < p->op->n_tensors; t++)
            for (int64_t i = 0; p->op->tensors[t].role != AT_OUT && i < at_test_count(p, t); i++)
                at_test_set(&made.problem, p->op->tensors[t].name, i, 0.75 + 0.25 * (double)(i + t));
        const char *y = at_op_tensor_index(p->op, "y") >= 0 ? "y" : "q_out";
        assert_inert(p, "next_channel", y);
        if (at_test_norm_is_rms(p->op))
            assert_inert(p, "no_mean", y);
        at_test_problem_release(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uclip),       cmocka_unit_test(test_qk),       cmocka_unit_test(test_qk_one_gamma),
        cmocka_unit_test(test_peri),        cmocka_unit_test(test_in_place), cmocka_unit_test(test_rms),
        cmocka_unit_test(test_one_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
