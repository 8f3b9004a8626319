/* Each decoy of a product is the fault that its name says: it equals expectations computed in plain sight, counts
 * there, and is the right result to the bit where the fault cannot show.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/gemm_problem.h"

enum { M = 3, N = 4, K = 27 };

/* Decoy by its name; NULL: the right result. The caller frees. */
static double *run(const struct at_problem *p, const char *decoy) {
    struct at_test_eval eval;
    const int64_t n = at_gemm_own_of(p).m * at_gemm_own_of(p).n;
    int which = decoy ? 0 : -1;
    while (decoy && which < p->op->n_decoys && strcmp(p->op->decoys[which].name, decoy) != 0)
        which++;
    at_assert_true(which < p->op->n_decoys, "no decoy %s", decoy);
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 0, &eval));
    for (int64_t row = 0; row < at_gemm_own_of(p).m; row++) /* rows are independent */
        at_assert_ok(decoy ? p->op->decoy(p, NULL, which, row, row + 1, &eval.eval)
                           : p->op->evaluate(p, NULL, row, row + 1, &eval.eval));
    double *out = malloc((size_t)n * sizeof *out);
    assert_non_null(out);
    memcpy(out, eval.eval.value[AT_GEMM_D], (size_t)n * sizeof *out);
    at_test_eval_release(&eval);
    return out;
}

static double a(int64_t i, int64_t l) { return (double)((7 * i + 3 * l) % 11 - 5); }
static double b(int64_t j, int64_t l) { return (double)((5 * j + 2 * l * l + 1) % 13 - 6) / 4; }

static void make(int64_t m, int64_t n, int64_t k, double scale, enum at_gemm_layout layout,
                 struct at_test_problem *made) {
    struct at_test_gemm_shape shape = { m, n, k, AT_F16, AT_F32, scale, layout };
    at_test_gemm_problem(&shape, made);
    for (int64_t i = 0; i < m * k; i++)
        at_test_set(&made->problem, "a", i, a(i / k, i % k));
    for (int64_t i = 0; i < n * k; i++)
        if (layout == AT_GEMM_NK)
            at_test_set(&made->problem, "b", i, b(i / k, i % k));
        else
            at_test_set(&made->problem, "w", i, b(i % n, i / n));
}

/* sum of a(i, l) b(j, l) over [first, end) */
static double dot(int64_t i, int64_t j, int64_t first, int64_t end) {
    double sum = 0;
    for (int64_t l = first; l < end; l++)
        sum += a(i, l) * b(j, l);
    return sum;
}

static double last_dropped(int64_t i, int64_t j) { return 3 * dot(i, j, 0, K - 1); }
static double tail_dropped(int64_t i, int64_t j) { return 3 * dot(i, j, 0, 16); }
static double hidden_added(int64_t i, int64_t j) {
    return 3 * (dot(i, j, 0, K) + (i < M - 1 && j < N - 1 ? a(i + 1, 0) * b(j + 1, 0) : 0));
}
static double next_column(int64_t i, int64_t j) { return 3 * dot(i, (j + 1) % N, 0, K); }
static double rows_swapped(int64_t i, int64_t j) { return 3 * dot(i, j % 2 ? j - 1 : j + 1, 0, K); }
static double transposed(int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t l = 0; l < K; l++)
        sum += a(i, l) * b((l * N + j) / K, (l * N + j) % K);
    return 3 * sum;
}
static double w_transposed(int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t l = 0; l < K; l++)
        sum += a(i, l) * b((j * K + l) % N, (j * K + l) / N);
    return 3 * sum;
}
static double column_zeroed(int64_t i, int64_t j) { return j == N - 1 ? 0 : 3 * dot(i, j, 0, K); }
static double no_scale(int64_t i, int64_t j) { return dot(i, j, 0, K); }
static double scale_twice(int64_t i, int64_t j) { return 9 * dot(i, j, 0, K); }

static const struct {
    const char *name;
    double (*expected)(int64_t i, int64_t j);
} decoys[AT_GEMM_NO_SCALE_A] = {
    { "last_k_dropped", last_dropped },      { "k_tail_dropped", tail_dropped }, { "hidden_k_added", hidden_added },
    { "next_column", next_column },          { "b_rows_swapped", rows_swapped }, { "b_transposed", transposed },
    { "last_column_zeroed", column_zeroed }, { "no_scale", no_scale },           { "scale_twice", scale_twice },
};

/* Integers and quarters: everything is exact. */
static void check_decoys(enum at_gemm_layout layout) {
    struct at_test_problem made;
    make(M, N, K, 3, layout, &made);
    double *right = run(&made.problem, NULL);
    for (int d = 0; d < AT_GEMM_NO_SCALE_A; d++) {
        double *wrong = run(&made.problem, decoys[d].name);
        double (*expected)(int64_t i, int64_t j) =
            layout == AT_GEMM_KN && d == AT_GEMM_B_TRANSPOSED ? w_transposed : decoys[d].expected;
        int counts = 0;
        for (int64_t i = 0; i < M * N; i++) {
            double square = 0;
            for (int64_t j = 0; j < N; j++)
                square += right[i / N * N + j] * right[i / N * N + j];
            at_assert_true(!(wrong[i] < expected(i / N, i % N)) && !(wrong[i] > expected(i / N, i % N)),
                           "%s[%lld]: %g, wanted %g", decoys[d].name, (long long)i, wrong[i], expected(i / N, i % N));
            counts |= fabs(wrong[i] - right[i]) > sqrt(square / N) / 4;
        }
        at_assert_true(counts, "%s changes nothing that counts", decoys[d].name);
        free(wrong);
    }
    free(right);
    at_test_problem_release(&made);
}

static void test_decoys_are_what_they_say(void **state) {
    (void)state;
    check_decoys(AT_GEMM_NK);
    check_decoys(AT_GEMM_KN);
}

/* ---- what follows the sum: scales 3, 2 and -5, a bias, the maximum ---- */

static double bias(int64_t j) { return (double)(3 * j) - 4.5; }
static double with(double factor, double added, int64_t i, int64_t j) { return factor * dot(i, j, 0, K) + added; }
static double largest_of(double (*element)(int64_t i, int64_t j), int64_t rows) {
    double most = 0;
    for (int64_t e = 0; e < rows * N; e++)
        most = fmax(most, fabs(element(e / N, e % N)));
    return most;
}
static double right_of(int64_t i, int64_t j) { return with(-30, bias(j), i, j); }
static double without_a(int64_t i, int64_t j) { return with(-15, bias(j), i, j); }
static double without_b(int64_t i, int64_t j) { return with(6, bias(j), i, j); }
static double a_for_b(int64_t i, int64_t j) { return with(12, bias(j), i, j); }
static double b_for_a(int64_t i, int64_t j) { return with(75, bias(j), i, j); }
static double without_bias(int64_t i, int64_t j) { return with(-30, 0, i, j); }
static double bias_of_next(int64_t i, int64_t j) { return with(-30, bias((j + 1) % N), i, j); }
static double bias_of_row(int64_t i, int64_t j) { return with(-30, bias(i), i, j); }
static double bias_scaled(int64_t i, int64_t j) { return with(-30, -30 * bias(j), i, j); }
static double rounded_of(int64_t i, int64_t j) { return at_round(AT_BF16, right_of(i, j)); }
static double positive_of(int64_t i, int64_t j) { return fmax(right_of(i, j), 0); }
static double negative_of(int64_t i, int64_t j) { return fmin(right_of(i, j), 0); }

/* d of bf16: sums are small enough to be numbers of it before the scale. */
static void test_decoys_behind_the_sum(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double (*d)(int64_t i, int64_t j), (*counted)(int64_t i, int64_t j);
        int64_t rows;
    } of[] = { { NULL, right_of, right_of, M },
               { "no_scale_a", without_a, without_a, M },
               { "no_scale_b", without_b, without_b, M },
               { "scale_a_for_b", a_for_b, a_for_b, M },
               { "scale_b_for_a", b_for_a, b_for_a, M },
               { "no_bias", without_bias, without_bias, M },
               { "next_bias", bias_of_next, bias_of_next, M },
               { "bias_by_row", bias_of_row, bias_of_row, M },
               { "bias_scaled", bias_scaled, bias_scaled, M },
               { "amax_rounded", right_of, rounded_of, M },
               { "amax_signed", right_of, positive_of, M },
               { "amax_of_negatives", right_of, negative_of, M },
               { "amax_before_bias", right_of, without_bias, M },
               { "amax_last_row_left_out", right_of, right_of, M - 1 } };
    assert_int_equal(sizeof of / sizeof *of, 1 + AT_GEMM_FAULTS - AT_GEMM_NO_SCALE_A);
    struct at_test_gemm_shape shape = { M, N, K, AT_F16, AT_BF16, 3, .scales = 1, .amax = 1, .bias = AT_GEMM_BIAS_F32 };
    struct at_test_problem made;
    int shows = 0;
    at_test_gemm_problem(&shape, &made);
    struct at_problem *p = &made.problem;
    for (int64_t i = 0; i < M * K; i++)
        at_test_set(p, "a", i, a(i / K, i % K));
    for (int64_t i = 0; i < N * K; i++)
        at_test_set(p, "b", i, b(i / K, i % K));
    for (int64_t j = 0; j < N; j++)
        at_test_set(p, "bias", j, bias(j));
    at_test_set(p, "scale_a", 0, 2);
    at_test_set(p, "scale_b", 0, -5);
    at_assert_ok(p->op->check(p));
    for (size_t d = 0; d < sizeof of / sizeof *of; d++) {
        struct at_test_eval eval;
        at_assert_ok(at_test_eval_init(p, 0, &eval));
        if (d)
            assert_string_equal(p->op->decoys[AT_GEMM_NO_SCALE_A + d - 1].name, of[d].name);
        for (int64_t row = 0; row < p->op->rows(p); row++)
            at_assert_ok(d ? p->op->decoy(p, NULL, AT_GEMM_NO_SCALE_A + (int)d - 1, row, row + 1, &eval.eval)
                           : p->op->evaluate(p, NULL, row, row + 1, &eval.eval));
        for (int64_t e = 0; e < M * N; e++)
            at_assert_same(eval.eval.value[AT_GEMM_D][e], of[d].d(e / N, e % N));
        at_assert_same(eval.eval.value[AT_GEMM_AMAX][0], largest_of(of[d].counted, of[d].rows));
        shows += eval.eval.value[AT_GEMM_AMAX][0] < largest_of(right_of, M) ||
                 eval.eval.value[AT_GEMM_AMAX][0] > largest_of(right_of, M);
        at_test_eval_release(&eval);
    }
    /* of one sign alone the largest is the right one or not, and the last row may not have it */
    at_assert_true(shows >= AT_GEMM_FAULTS - AT_GEMM_NO_SCALE_A - 2, "%d faults show in the maximum", shows);
    at_test_problem_release(&made);
}

/* No tail in whole sixteens, nothing behind the only row, one column to take, no scale but 1. */
static void test_decoys_that_cannot_show(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t m, n, k;
    } inert[] = { { "k_tail_dropped", 3, 4, 32 }, { "hidden_k_added", 1, 4, 18 }, { "hidden_k_added", 3, 1, 18 },
                  { "next_column", 3, 1, 18 },    { "b_rows_swapped", 3, 1, 18 }, { "b_transposed", 3, 1, 18 },
                  { "b_transposed", 3, 4, 1 },    { "no_scale", 3, 4, 18 },       { "scale_twice", 3, 4, 18 } };
    for (size_t d = 0; d < sizeof inert / sizeof *inert; d++) {
        struct at_test_problem made;
        make(inert[d].m, inert[d].n, inert[d].k, 1, d % 2 ? AT_GEMM_KN : AT_GEMM_NK, &made);
        double *wrong = run(&made.problem, inert[d].name), *right = run(&made.problem, NULL);
        for (int64_t i = 0; i < inert[d].m * inert[d].n; i++)
            at_assert_same(wrong[i], right[i]);
        free(wrong);
        free(right);
        at_test_problem_release(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoys_are_what_they_say),
        cmocka_unit_test(test_decoys_behind_the_sum),
        cmocka_unit_test(test_decoys_that_cannot_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
