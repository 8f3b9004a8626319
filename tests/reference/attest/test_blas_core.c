/* OpenBLAS's kernels: which fit a processor, that they are taken, and never over the user's own word.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/blas_core.h"

#include <cblas.h>
#include <stdlib.h>

#include "attest/blas_alone.h"
#include "tests/at_test.h"

extern void gotoblas_dynamic_quit(void) __attribute__((weak));
extern void gotoblas_dynamic_init(void) __attribute__((weak));

static void expect_fitting(const char *core, int is_amd, int avx2, int avx512, const char *want) {
    const char *got = at_blas_core_fitting(core, is_amd, avx2, avx512);
    at_assert_true(want ? got && strcmp(got, want) == 0 : !got, "for %s: %s, wanted %s", core, got ? got : "nothing",
                   want ? want : "nothing");
}

static void test_rule(void **state) {
    (void)state;
    expect_fitting("Prescott", 0, 1, 1, "SkylakeX");
    expect_fitting("Haswell", 0, 1, 1, "SkylakeX");
    expect_fitting("Sandybridge", 0, 1, 0, "Haswell");
    expect_fitting("Prescott", 1, 1, 1, "Zen");
    expect_fitting("Prescott", 0, 0, 0, NULL); /* an old processor */
    expect_fitting("Haswell", 0, 1, 0, NULL);
    expect_fitting("Zen", 1, 1, 1, NULL); /* its maker's */
    expect_fitting("SkylakeX", 0, 1, 1, NULL);
    expect_fitting("SapphireRapids", 0, 1, 1, NULL);
    expect_fitting("A later core", 0, 1, 1, NULL);
}

/* As on a processor that OpenBLAS does not know. */
static void fall_back_to(const char *core) {
    setenv("OPENBLAS_CORETYPE", core, 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv("OPENBLAS_CORETYPE");
    assert_string_equal(openblas_get_corename(), core);
}

#define NEED_A_CHOICE() \
    do { \
        if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit) { \
            print_message("this OpenBLAS is built for one core\n"); \
            skip(); \
        } \
    } while (0)

static void expect_products(int n) {
    double *a = malloc(3 * sizeof *a * (size_t)n * (size_t)n), *b = a + n * n, *c = b + n * n;
    assert_non_null(a);
    for (int i = 0; i < n * n; i++) {
        a[i] = i % 7;
        b[i] = i % 5;
        c[i] = NAN;
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, n, 1, a, n, b, n, 0, c, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * b[j * n + k];
            assert_true(c[i * n + j] == sum); /* integers: exact in any order */
        }
    free(a);
}

static void test_fitting_kernels_are_taken(void **state) {
    (void)state;
    char text[200], advice[200];
    NEED_A_CHOICE();
    at_blas_alone();
    fall_back_to("Prescott");
    at_blas_core_text(text, sizeof text);
    assert_string_equal(text, "Prescott");
    at_assert_true(at_blas_core_advice(advice, sizeof advice) || !__builtin_cpu_supports("avx2"), "no advice");
    at_blas_core_choose();
    at_blas_core_text(text, sizeof text);
    print_message("%s\n", text);
    assert_null(getenv("OPENBLAS_CORETYPE"));
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        at_assert_true(strstr(text, "chosen by attest for this processor; OpenBLAS took Prescott") != NULL, "%s", text);
        at_assert_true(!at_blas_core_advice(advice, sizeof advice), "%s", advice);
    }
    expect_products(1);
    expect_products(37);
    expect_products(200);
}

static void test_an_explicit_choice_stays(void **state) {
    (void)state;
    char text[200];
    NEED_A_CHOICE();
    fall_back_to("Prescott");
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    at_blas_core_choose();
    at_blas_core_text(text, sizeof text);
    assert_string_equal(text, "Prescott, by OPENBLAS_CORETYPE=Prescott");
    unsetenv("OPENBLAS_CORETYPE");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_an_explicit_choice_stays),
        cmocka_unit_test(test_fitting_kernels_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
