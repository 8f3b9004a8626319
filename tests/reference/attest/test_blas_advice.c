/* When OpenBLAS's choice of kernels is worth a word.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "fast/fast.h"

/* Advice for old kernels on a newer processor, and only then. */
static void test_core_advice(void **state) {
    (void)state;
    char text[300] = "";
    at_assert_true(at_fast_core_advice("Prescott", 1, 1, text, sizeof text) && strstr(text, "=SkylakeX"), "%s", text);
    at_assert_true(at_fast_core_advice("Sandybridge", 1, 0, text, sizeof text) && strstr(text, "=Haswell"), "%s", text);
    at_assert_true(!at_fast_core_advice("Prescott", 0, 0, text, sizeof text), "an old processor: %s", text);
    at_assert_true(!at_fast_core_advice("Haswell", 1, 1, text, sizeof text), "AVX2 kernels: %s", text);
    at_assert_true(!at_fast_core_advice("A later core", 1, 1, text, sizeof text), "an unknown name: %s", text);
}

/* About the library in use: the same rule, whatever it says here. */
static void test_library_in_use(void **state) {
    (void)state;
    char text[300] = "";
    if (at_fast_blas_advice(text, sizeof text))
        at_assert_true(strstr(text, "set OPENBLAS_CORETYPE=") != NULL, "%s", text);
    print_message("%s\n", text[0] ? text : "OpenBLAS took kernels that fit");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_advice),
        cmocka_unit_test(test_library_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
