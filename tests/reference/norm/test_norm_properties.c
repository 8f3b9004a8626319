/* What must hold of the norms whatever the reference says: symmetries, independence, compositions. Each is checked to
 * the bit, of the exact value and of the declared arithmetic in f32 and in double.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/norm_outputs.h"

#define PERI "post_attn_pre_mlp_uclip"

/* Every format with many seeds. */
static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16 };
static int runs(void) { return 9 * (int)at_test_effort(10); }

/* ---- rows ---- */

static int is_per_token(const struct at_op *op, int t) {
    return op->tensors[t].role != AT_OUT && op->tensors[t].dims[0] == AT_DIM_tokens;
}

/* Tokens in another order give rows in that order, and a token alone gives its row. */
static void test_tokens_are_independent(void **state) {
    (void)state;
    static const int to[AT_NORM_TOKENS] = { 3, 0, 4, 2, 1 };
    for (int op = 0; op < AT_TEST_NORMS; op++)
        for (int run = 0; run < runs(); run++) {
            const enum at_format dtype = formats[run % 3];
            const uint64_t seed = (uint64_t)run / 3;
            const struct at_op *o = at_test_norm_op(op);
            struct at_test_norm_shape alone = {
                .tokens = 1, .channels = AT_NORM_CHANNELS, .h = 2, .hk = 2, .dtype = dtype
            };
            struct at_test_problem one, two, single;
            at_norm_make(o->name, dtype, seed, &one);
            at_norm_make(o->name, dtype, seed, &two);
            at_test_norm_problem(o, &alone, &single);
            for (int t = 0; t < o->n_tensors; t++) {
                const char *name = o->tensors[t].name;
                const int64_t width = at_tensor_count(&single.problem.tensors[t]);
                for (int64_t i = 0; is_per_token(o, t) && i < AT_NORM_TOKENS * width; i++)
                    at_test_set(&two.problem, name, to[i / width] * width + i % width,
                                at_test_get(&one.problem, name, i));
                for (int64_t i = 0; o->tensors[t].role != AT_OUT && i < width; i++)
                    at_test_set(&single.problem, name, i,
                                at_test_get(&one.problem, name, is_per_token(o, t) ? 2 * width + i : i));
            }
            for (int t = 0; t < o->n_tensors; t++) {
                if (o->tensors[t].role == AT_IN)
                    continue;
                struct at_norm_output a = at_norm_run(&one.problem, o->tensors[t].name),
                                      b = at_norm_run(&two.problem, o->tensors[t].name),
                                      c = at_norm_run(&single.problem, o->tensors[t].name);
                for (int row = 0; row < AT_NORM_TOKENS; row++)
                    at_norm_assert_part(&a, row * c.n, &b, to[row] * c.n, c.n, 1);
                at_norm_assert_part(&a, 2 * c.n, &c, 0, c.n, 1);
                free(a.value);
                free(b.value);
                free(c.value);
            }
            at_test_problem_release(&one);
            at_test_problem_release(&two);
            at_test_problem_release(&single);
        }
}

/* Channels in another order, parameters with them; integers, so that any order of the squares gives one sum. */
static void test_channels_may_be_permuted(void **state) {
    (void)state;
    for (int op = 0; op < AT_TEST_NORMS; op++)
        for (int run = 0; run < runs(); run++) {
            const enum at_format dtype = formats[run % 3];
            const uint64_t seed = (uint64_t)run / 3;
            const struct at_op *o = at_test_norm_op(op);
            struct at_test_problem one, two;
            at_norm_make(o->name, dtype, seed, &one);
            at_norm_make(o->name, dtype, seed, &two);
            for (int t = 0; t < o->n_tensors; t++)
                for (int64_t i = 0; o->tensors[t].role != AT_OUT && i < at_tensor_count(&one.problem.tensors[t]); i++) {
                    const char *name = o->tensors[t].name;
                    double x = at_test_get(&one.problem, name, i);
                    x = is_per_token(o, t) ? rint(4 * x) : x;
                    at_test_set(&one.problem, name, i, x);
                    at_test_set(&two.problem, name, i - i % AT_NORM_CHANNELS + (7 * i + 5) % AT_NORM_CHANNELS, x);
                }
            for (int t = 0; t < o->n_tensors; t++) {
                if (o->tensors[t].role == AT_IN)
                    continue;
                struct at_norm_output a = at_norm_run(&one.problem, o->tensors[t].name),
                                      b = at_norm_run(&two.problem, o->tensors[t].name);
                for (int64_t i = 0; i < a.n; i++)
                    at_norm_assert_part(&a, i, &b, i - i % AT_NORM_CHANNELS + (7 * i + 5) % AT_NORM_CHANNELS, 1, 1);
                free(a.value);
                free(b.value);
            }
            at_test_problem_release(&one);
            at_test_problem_release(&two);
        }
}

/* ---- UClip ---- */

/* Without gamma and beta the result is in [lo, hi], grows with x, and clamping it again changes nothing. */
static void test_clamp(void **state) {
    (void)state;
    for (int run = 0; run < runs(); run++) {
        const enum at_format dtype = formats[run % 3];
        const uint64_t seed = (uint64_t)run / 3;
        struct at_test_problem made, again;
        at_norm_make("uclip_norm", dtype, seed, &made);
        struct at_problem *p = &made.problem;
        const float lo = seed % 2 ? -0.5f : -2, hi = seed % 3 ? 0.75f : 0;
        p->params.lo = lo;
        p->params.hi = hi;
        at_test_set_all(p, "gamma", 1);
        at_test_set_all(p, "beta", 0);
        for (int64_t i = 0; i < at_norm_count(p, "alpha"); i++)
            at_test_set(p, "alpha", i, fabs(at_test_get(p, "alpha", i)));
        struct at_norm_output y = at_norm_run(p, "y");
        for (int64_t i = 0; i < (1 + AT_NORM_MODELS) * y.n; i++)
            assert_true((double)lo <= y.value[i] && y.value[i] <= (double)hi);
        at_norm_scale(p, "x", 2); /* away from 0 */
        struct at_norm_output more = at_norm_run(p, "y");
        for (int64_t i = 0; i < (1 + AT_NORM_MODELS) * y.n; i++) {
            int negative = at_test_get(p, "x", i % y.n) < 0;
            assert_true(negative ? more.value[i] <= y.value[i] : more.value[i] >= y.value[i]);
        }
        at_norm_make("uclip_norm", dtype, seed, &again);
        again.problem.params = p->params;
        at_test_set_all(&again.problem, "alpha", 1);
        at_test_set_all(&again.problem, "gamma", 1);
        at_test_set_all(&again.problem, "beta", 0);
        for (int64_t i = 0; i < y.n; i++)
            at_test_set(&again.problem, "x", i, y.value[y.n + i]);
        struct at_norm_output same = at_norm_run(&again.problem, "y");
        for (int m = 0; m <= AT_NORM_MODELS; m++)
            for (int64_t i = 0; i < y.n; i++)
                at_assert_same(same.value[m * y.n + i], y.value[y.n + i]);
        free(y.value);
        free(more.value);
        free(same.value);
        at_test_problem_release(&made);
        at_test_problem_release(&again);
    }
}

/* alpha * 4 is x * 4; gamma * -2 is y * -2 without beta; an odd function when lo = -hi. */
static void test_uclip_parameters(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)runs(); seed++) {
        struct at_test_problem one, two;
        at_norm_make("uclip_norm", AT_F32, seed, &one);
        at_norm_make("uclip_norm", AT_F32, seed, &two);
        at_norm_scale(&one.problem, "x", 4);
        at_norm_scale(&two.problem, "alpha", 4);
        at_norm_assert_outputs(&one.problem, "y", &two.problem, "y", 1);
        at_test_set_all(&one.problem, "beta", 0);
        at_test_set_all(&two.problem, "beta", 0);
        at_norm_scale(&two.problem, "gamma", -2);
        at_norm_assert_outputs(&one.problem, "y", &two.problem, "y", -2);
        at_norm_scale(&two.problem, "gamma", -0.5);
        at_norm_scale(&two.problem, "x", -1);
        at_norm_scale(&one.problem, "alpha", 4);
        at_norm_scale(&one.problem, "x", 0.25);
        at_norm_assert_outputs(&one.problem, "y", &two.problem, "y", -1);
        at_test_problem_release(&one);
        at_test_problem_release(&two);
    }
}

/* q_out is the plain norm of q's heads as tokens, so is k_out; the other tensor and its parameters do not matter, and
 * q and k may change places. */
static void test_q_and_k(void **state) {
    (void)state;
    for (int run = 0; run < runs(); run++) {
        const enum at_format dtype = formats[run % 3];
        const uint64_t seed = (uint64_t)run / 3;
        struct at_test_problem qk, other, plain;
        struct at_test_norm_shape flat = { .tokens = 2 * AT_NORM_TOKENS, .channels = AT_NORM_CHANNELS, .dtype = dtype };
        at_norm_make("qk_uclip_norm", dtype, seed, &qk);
        at_norm_make("qk_uclip_norm", dtype, seed + 100, &other);
        at_test_norm_problem(at_op_find("uclip_norm"), &flat, &plain);
        for (int k = 0; k < 2; k++) {
            at_norm_copy(&plain.problem, "x", &qk.problem, k ? "k" : "q");
            at_norm_copy(&plain.problem, "alpha", &qk.problem, k ? "alpha_k" : "alpha_q");
            at_norm_copy(&plain.problem, "gamma", &qk.problem, k ? "gamma_k" : "gamma_q");
            at_norm_assert_outputs(&plain.problem, "y", &qk.problem, k ? "k_out" : "q_out", 1);
        }
        at_norm_copy(&other.problem, "q", &qk.problem, "q");
        at_norm_copy(&other.problem, "alpha_q", &qk.problem, "alpha_q");
        at_norm_copy(&other.problem, "gamma_q", &qk.problem, "gamma_q");
        at_norm_assert_outputs(&qk.problem, "q_out", &other.problem, "q_out", 1);
        at_norm_copy(&other.problem, "k", &qk.problem, "q");
        at_norm_copy(&other.problem, "alpha_k", &qk.problem, "alpha_q");
        at_norm_copy(&other.problem, "gamma_k", &qk.problem, "gamma_q");
        at_norm_assert_outputs(&qk.problem, "q_out", &other.problem, "k_out", 1);
        at_test_problem_release(&qk);
        at_test_problem_release(&other);
        at_test_problem_release(&plain);
    }
}

/* One gamma for a tensor is that gamma for each channel. */
static void test_one_gamma(void **state) {
    (void)state;
    for (int run = 0; run < runs(); run++) {
        const enum at_format dtype = formats[run % 3];
        const struct at_test_norm_shape shape = {
            .tokens = AT_NORM_TOKENS, .channels = AT_NORM_CHANNELS, .h = 2, .hk = 2, .dtype = dtype, .one_gamma = 1
        };
        struct at_test_problem one, each;
        at_norm_make("qk_uclip_norm", dtype, (uint64_t)run / 3, &each);
        at_test_norm_problem(at_op_find("qk_uclip_norm"), &shape, &one);
        static const char *const same[] = { "q", "k", "alpha_q", "alpha_k" }, *const gammas[] = { "gamma_q",
                                                                                                  "gamma_k" };
        for (int i = 0; i < 4; i++)
            at_norm_copy(&one.problem, same[i], &each.problem, same[i]);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(at_norm_count(&one.problem, gammas[i]), 1);
            at_test_set(&one.problem, gammas[i], 0, at_test_get(&each.problem, gammas[i], 1));
            at_test_set_all(&each.problem, gammas[i], at_test_get(&each.problem, gammas[i], 1));
        }
        at_norm_assert_outputs(&one.problem, "q_out", &each.problem, "q_out", 1);
        at_norm_assert_outputs(&one.problem, "k_out", &each.problem, "k_out", 1);
        at_test_problem_release(&one);
        at_test_problem_release(&each);
    }
}

/* ---- RMS ---- */

/* x * 2^k with eps * 4^k changes nothing; gamma by powers of two and the sign of x go straight through; twice the same
 * channels have the same mean square, integers as before. */
static void test_rms_symmetries(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)runs(); seed++) {
        const int k = (int)(seed % 9) - 4;
        struct at_test_norm_shape shape = { .tokens = 1, .channels = AT_NORM_CHANNELS, .dtype = AT_F32 };
        struct at_test_problem one, two, twice;
        at_norm_make("rms_norm", AT_F32, seed, &one);
        at_norm_make("rms_norm", AT_F32, seed, &two);
        at_norm_scale(&two.problem, "x", exp2(k));
        two.problem.params.eps *= exp2f(2 * (float)k);
        at_norm_assert_outputs(&one.problem, "y", &two.problem, "y", 1);
        at_norm_scale(&two.problem, "gamma", -4);
        at_norm_assert_outputs(&one.problem, "y", &two.problem, "y", -4);
        at_norm_scale(&two.problem, "x", -1);
        at_norm_assert_outputs(&one.problem, "y", &two.problem, "y", 4);
        at_test_problem_release(&two);
        at_test_norm_problem(at_op_find("rms_norm"), &shape, &two);
        shape.channels *= 2;
        at_test_norm_problem(at_op_find("rms_norm"), &shape, &twice);
        for (int i = 0; i < AT_NORM_CHANNELS; i++) {
            double x = rint(8 * at_test_get(&one.problem, "x", i));
            at_test_set(&two.problem, "x", i, x);
            at_test_set(&twice.problem, "x", i, x);
            at_test_set(&twice.problem, "x", AT_NORM_CHANNELS + i, x);
        }
        struct at_norm_output a = at_norm_run(&two.problem, "y"), b = at_norm_run(&twice.problem, "y");
        at_norm_assert_part(&a, 0, &b, 0, AT_NORM_CHANNELS, 1);
        at_norm_assert_part(&a, 0, &b, AT_NORM_CHANNELS, AT_NORM_CHANNELS, 1);
        free(a.value);
        free(b.value);
        at_test_problem_release(&one);
        at_test_problem_release(&two);
        at_test_problem_release(&twice);
    }
}

/* Without eps and gamma the mean square of y is 1; a weight reaches its own channel only. */
static void test_rms_mean_square_and_weights(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)runs(); seed++) {
        struct at_test_problem made;
        at_norm_make("rms_norm", AT_F32, seed, &made);
        struct at_norm_output a = at_norm_run(&made.problem, "y");
        at_test_set(&made.problem, "gamma", 3, 8 * at_test_get(&made.problem, "gamma", 3));
        struct at_norm_output b = at_norm_run(&made.problem, "y");
        for (int64_t i = 0; i < a.n; i++)
            at_norm_assert_part(&a, i, &b, i, 1, i % AT_NORM_CHANNELS == 3 ? 8 : 1);
        at_test_set_all(&made.problem, "gamma", 1);
        made.problem.params.eps = 0;
        struct at_norm_output c = at_norm_run(&made.problem, "y");
        for (int m = 0; m <= AT_NORM_MODELS; m++)
            for (int row = 0; row < AT_NORM_TOKENS; row++) {
                double sum = 0;
                for (int i = 0; i < AT_NORM_CHANNELS; i++)
                    sum += pow(c.value[m * c.n + row * AT_NORM_CHANNELS + i], 2);
                at_assert_within(sum / AT_NORM_CHANNELS, 1, m ? 2 * (AT_NORM_CHANNELS + 8) * 0x1p-24 : 1e-14);
            }
        free(a.value);
        free(b.value);
        free(c.value);
        at_test_problem_release(&made);
    }
}

/* ---- sums ---- */

/* The norm of a sum is the sum, stored, and the norm of that; x and res may change places. */
static void test_add_is_the_norm_of_the_sum(void **state) {
    (void)state;
    for (int rms = 0; rms < 2; rms++)
        for (int run = 0; run < runs(); run++) {
            const enum at_format dtype = formats[run % 3];
            const uint64_t seed = (uint64_t)run / 3;
            struct at_test_problem sum, swapped, plain;
            at_norm_make(rms ? "add_rms_norm" : "add_uclip_norm", dtype, seed, &sum);
            at_norm_make(rms ? "add_rms_norm" : "add_uclip_norm", dtype, seed, &swapped);
            at_norm_make(rms ? "rms_norm" : "uclip_norm", dtype, seed, &plain);
            at_norm_copy(&swapped.problem, "x", &sum.problem, "res");
            at_norm_copy(&swapped.problem, "res", &sum.problem, "x");
            at_norm_assert_outputs(&sum.problem, "y", &swapped.problem, "y", 1);
            at_norm_assert_outputs(&sum.problem, "res_out", &swapped.problem, "res_out", 1);
            struct at_norm_output stored = at_norm_run(&sum.problem, "res_out");
            for (int64_t i = 0; i < stored.n; i++) {
                double x = at_test_get(&sum.problem, "x", i) + at_test_get(&sum.problem, "res", i);
                at_assert_same(stored.value[i], x);
                at_test_set(&plain.problem, "x", i, x); /* rounds, as the sum is */
                for (int m = 1; m <= AT_NORM_MODELS; m++)
                    at_assert_same(stored.value[m * stored.n + i], at_test_get(&plain.problem, "x", i));
            }
            for (int t = 0; t < plain.problem.op->n_tensors; t++)
                if (plain.problem.op->tensors[t].format == AT_FORMAT_F32)
                    at_norm_copy(&plain.problem, plain.problem.op->tensors[t].name, &sum.problem,
                                 plain.problem.op->tensors[t].name);
            at_norm_assert_outputs(&sum.problem, "y", &plain.problem, "y", 1);
            /* a sum that the format holds is the same before and after rounding */
            at_test_set_all(&sum.problem, "res", 0);
            at_norm_copy(&swapped.problem, "x", &sum.problem, "x");
            at_test_set_all(&swapped.problem, "res", 0);
            swapped.problem.params.from = AT_FROM_EXACT;
            at_norm_assert_outputs(&sum.problem, "y", &swapped.problem, "y", 1);
            free(stored.value);
            at_test_problem_release(&sum);
            at_test_problem_release(&swapped);
            at_test_problem_release(&plain);
        }
}

/* Two norms in one are one after the other: UClip, stored as the attention's output, then add and UClip. */
static void test_two_norms_in_one(void **state) {
    (void)state;
    for (int from = 0; from < 2; from++)
        for (int run = 0; run < runs(); run++) {
            const enum at_format dtype = formats[run % 3];
            const uint64_t seed = (uint64_t)run / 3;
            struct at_test_problem both, post, pre;
            at_norm_make(PERI, dtype, seed, &both);
            at_norm_make("uclip_norm", dtype, seed, &post);
            at_norm_make("add_uclip_norm", dtype, seed, &pre);
            both.problem.params.from = pre.problem.params.from = from;
            at_norm_copy(&post.problem, "x", &both.problem, "a");
            at_norm_copy(&pre.problem, "res", &both.problem, "res");
            for (int i = 0; i < 3; i++) {
                const char *const names[] = { "alpha", "gamma", "beta" };
                char name[32];
                snprintf(name, sizeof name, "%s_post", names[i]);
                at_norm_copy(&post.problem, names[i], &both.problem, name);
                snprintf(name, sizeof name, "%s_pre", names[i]);
                at_norm_copy(&pre.problem, names[i], &both.problem, name);
            }
            struct at_norm_output u = at_norm_run(&post.problem, "y"), res = at_norm_run(&both.problem, "res_out"),
                                  y = at_norm_run(&both.problem, "y");
            for (int m = 0; m <= AT_NORM_MODELS; m++) { /* each declaration stores a u of its own */
                for (int64_t i = 0; i < u.n; i++)
                    at_test_set(&pre.problem, "x", i, u.value[m * u.n + i]);
                struct at_norm_output stored = at_norm_run(&pre.problem, "res_out"),
                                      again = at_norm_run(&pre.problem, "y");
                for (int64_t i = 0; i < u.n; i++) {
                    at_assert_same(stored.value[m * u.n + i], res.value[m * u.n + i]);
                    at_assert_same(again.value[m * u.n + i], y.value[m * u.n + i]);
                }
                free(stored.value);
                free(again.value);
            }
            free(u.value);
            free(res.value);
            free(y.value);
            at_test_problem_release(&both);
            at_test_problem_release(&post);
            at_test_problem_release(&pre);
        }
}

static int64_t moved(const struct at_problem *p) {
    int64_t sum = 0;
    for (int t = 0; t < p->op->n_tensors; t++)
        sum += p->op->moved ? p->op->moved(p, t) : at_tensor_count(&p->tensors[t]);
    return sum;
}

/* In place the same numbers lie in another tensor, and as many are moved. */
static void test_in_place(void **state) {
    (void)state;
    for (int run = 0; run < runs(); run++) {
        struct at_test_problem apart, in_place;
        at_norm_make(PERI, formats[run % 3], (uint64_t)run / 3, &apart);
        at_norm_make(PERI "_in_place", formats[run % 3], (uint64_t)run / 3 + 100, &in_place);
        apart.problem.params.from = in_place.problem.params.from = run % 2;
        for (int t = 0; t < apart.problem.op->n_tensors; t++) {
            const char *name = apart.problem.op->tensors[t].name;
            if (apart.problem.op->tensors[t].role == AT_IN)
                at_norm_copy(&in_place.problem, name, &apart.problem, name);
        }
        at_norm_assert_outputs(&in_place.problem, "res", &apart.problem, "res_out", 1);
        at_norm_assert_outputs(&in_place.problem, "y", &apart.problem, "y", 1);
        assert_int_equal(moved(&in_place.problem), moved(&apart.problem));
        at_test_problem_release(&apart);
        at_test_problem_release(&in_place);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_are_independent),
        cmocka_unit_test(test_channels_may_be_permuted),
        cmocka_unit_test(test_clamp),
        cmocka_unit_test(test_uclip_parameters),
        cmocka_unit_test(test_q_and_k),
        cmocka_unit_test(test_one_gamma),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_rms_symmetries),
        cmocka_unit_test(test_rms_mean_square_and_weights),
        cmocka_unit_test(test_add_is_the_norm_of_the_sum),
        cmocka_unit_test(test_two_norms_in_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
