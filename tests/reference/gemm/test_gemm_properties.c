/* What must hold of a product whatever the reference says: symmetries and independence, to the bit, of the exact value
 * and of declared arithmetic; and what kernels rely on when they fill a step up with zeros.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/gemm_problem.h"

enum { MODELS = 3 };

/* Exact values, then those of three declarations of the problem; m n each. The caller frees. */
static double *run(const struct at_problem *p, uint64_t seed) {
    const int64_t n = at_gemm_own_of(p).m * at_gemm_own_of(p).n;
    double *out = malloc((size_t)((1 + MODELS) * n) * sizeof *out);
    struct at_test_random random = { seed };
    assert_non_null(out);
    for (int i = 0; i <= MODELS; i++) {
        struct at_numerics numerics = at_test_gemm_numerics(&random, p);
        struct at_test_eval eval;
        at_assert_ok(at_test_eval_init(p, 0, &eval));
        at_assert_ok(i ? p->op->model(p, &numerics, 0, at_gemm_own_of(p).m, &eval.eval)
                       : p->op->evaluate(p, NULL, 0, at_gemm_own_of(p).m, &eval.eval));
        memcpy(out + i * n, eval.eval.value[AT_GEMM_D], (size_t)n * sizeof *out);
        at_test_eval_release(&eval);
    }
    return out;
}

/* The problem with other sizes, formats kept, factors 0. */
static void like(const struct at_problem *p, int64_t m, int64_t n, int64_t k, struct at_test_problem *made) {
    struct at_test_gemm_shape shape = {
        m, n, k, p->dtype, (enum at_format)at_gemm_own_of(p).out, (double)p->params.scale
    };
    at_test_gemm_problem(&shape, made);
}

static void copy_row(const struct at_problem *from, int64_t row, struct at_problem *to, int64_t place, const char *of,
                     const char *as) {
    for (int64_t l = 0; l < at_gemm_own_of(from).k; l++)
        at_test_set(to, as, place * at_gemm_own_of(to).k + l, at_test_get(from, of, row * at_gemm_own_of(from).k + l));
}

static long runs(void) { return 150 * at_test_effort(10); }

/* Rows and columns in reverse give the product in reverse; the factors exchanged, its transpose. */
static void test_rows_and_columns(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)runs(); seed++) {
        struct at_test_random random = { seed };
        struct at_test_problem one, reversed, exchanged;
        at_test_gemm_draw(&random, 70, &one);
        const struct at_problem *p = &one.problem;
        const int64_t m = at_gemm_own_of(p).m, n = at_gemm_own_of(p).n;
        like(p, m, n, at_gemm_own_of(p).k, &reversed);
        like(p, n, m, at_gemm_own_of(p).k, &exchanged);
        for (int64_t i = 0; i < m; i++) {
            copy_row(p, i, &reversed.problem, m - 1 - i, "a", "a");
            copy_row(p, i, &exchanged.problem, i, "a", "b");
        }
        for (int64_t j = 0; j < n; j++) {
            copy_row(p, j, &reversed.problem, n - 1 - j, "b", "b");
            copy_row(p, j, &exchanged.problem, j, "b", "a");
        }
        double *x = run(p, seed), *y = run(&reversed.problem, seed), *z = run(&exchanged.problem, seed);
        for (int64_t i = 0; i < (1 + MODELS) * m * n; i++) {
            const int64_t base = i / (m * n) * m * n, row = i % (m * n) / n, column = i % n;
            at_assert_same(y[base + (m - 1 - row) * n + n - 1 - column], x[i]);
            at_assert_same(z[base + column * m + row], x[i]);
        }
        free(x), free(y), free(z);
        at_test_problem_release(&one);
        at_test_problem_release(&reversed);
        at_test_problem_release(&exchanged);
    }
}

/* Zeros behind the last product change no bit, in whatever unit and order: what fills up a step of a kernel. Lanes take
 * their terms by the number of all, so they are left out. */
static void test_zeros_behind_the_last_product(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)(2 * runs()); seed++) {
        struct at_test_random random = { seed };
        struct at_test_problem one, longer;
        at_test_gemm_draw(&random, 70, &one);
        const struct at_problem *p = &one.problem;
        struct at_numerics numerics = at_test_gemm_numerics(&random, p);
        struct at_test_eval x, y;
        numerics.qk_lanes = 1;
        like(p, at_gemm_own_of(p).m, at_gemm_own_of(p).n, at_gemm_own_of(p).k + 1 + at_test_below(&random, 130),
             &longer);
        for (int64_t i = 0; i < at_gemm_own_of(p).m; i++)
            copy_row(p, i, &longer.problem, i, "a", "a");
        for (int64_t j = 0; j < at_gemm_own_of(p).n; j++)
            copy_row(p, j, &longer.problem, j, "b", "b");
        at_assert_ok(at_test_eval_init(p, 0, &x));
        at_assert_ok(at_test_eval_init(p, 0, &y));
        at_assert_ok(p->op->model(p, &numerics, 0, at_gemm_own_of(p).m, &x.eval));
        at_assert_ok(p->op->model(&longer.problem, &numerics, 0, at_gemm_own_of(p).m, &y.eval));
        for (int64_t i = 0; i < at_gemm_own_of(p).m * at_gemm_own_of(p).n; i++) {
            /* chains of fma may end in -0, which + 0 makes +0 */
            const double was = x.eval.value[AT_GEMM_D][i], is = y.eval.value[AT_GEMM_D][i];
            at_assert_true((isnan(was) && isnan(is)) || was == is, "%a became %a", was, is);
        }
        at_test_eval_release(&x);
        at_test_eval_release(&y);
        at_test_problem_release(&one);
        at_test_problem_release(&longer);
    }
}

/* How the second factor is stored changes no bit. */
static void test_layouts(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)runs(); seed++) {
        struct at_test_random random = { seed };
        struct at_test_problem one, turned;
        at_test_gemm_draw(&random, 70, &one);
        at_test_gemm_turned(&one.problem, &turned);
        const int64_t n = at_gemm_own_of(&one.problem).m * at_gemm_own_of(&one.problem).n;
        double *x = run(&one.problem, seed), *y = run(&turned.problem, seed);
        for (int64_t i = 0; i < (1 + MODELS) * n; i++)
            at_assert_same(y[i], x[i]);
        free(x), free(y);
        at_test_problem_release(&one);
        at_test_problem_release(&turned);
    }
}

/* Integers whose sums all units hold: any order of k, any unit and any split gives the bits of the exact value. */
static void test_exact_data_have_one_result(void **state) {
    (void)state;
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16, AT_E4M3, AT_E5M2 };
    for (uint64_t seed = 0; seed < (uint64_t)runs(); seed++) {
        struct at_test_random random = { seed };
        const int64_t k = 1 + at_test_below(&random, 200);
        struct at_test_gemm_shape shape = { 3, 4, k, formats[seed % 5], AT_F32, seed % 2 ? 0.5 : 1 };
        struct at_test_problem one, turned;
        at_test_gemm_problem(&shape, &one);
        at_test_gemm_problem(&shape, &turned);
        for (int64_t i = 0; i < 7 * k; i++) {
            const char *name = i < 3 * k ? "a" : "b";
            const int64_t at = i < 3 * k ? i : i - 3 * k;
            const double x = at_test_below(&random, 7) - 3;
            at_test_set(&one.problem, name, at, x);
            at_test_set(&turned.problem, name, at - at % k + (k - 1 - at % k), x);
        }
        double *x = run(&one.problem, seed), *y = run(&turned.problem, seed + 1);
        for (int64_t i = 0; i < (1 + MODELS) * 12; i++) {
            at_assert_true(x[i] == x[i % 12], "model %lld: %g, exact %g", (long long)(i / 12), x[i], x[i % 12]);
            at_assert_true(y[i] == x[i % 12], "model %lld: %g, exact %g", (long long)(i / 12), y[i], x[i % 12]);
        }
        free(x), free(y);
        at_test_problem_release(&one);
        at_test_problem_release(&turned);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_and_columns),
        cmocka_unit_test(test_zeros_behind_the_last_product),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_exact_data_have_one_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
