/* OpenBLAS has no threads of its own after at_blas_alone, and still multiplies.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/blas_alone.h"

#include <cblas.h>
#include <dirent.h>
#include <stdlib.h>

#include "tests/at_test.h"

enum { N = 300 }; /* OpenBLAS would give such a product to several threads */

/* ThreadSanitizer has one of its own. */
#ifdef __SANITIZE_THREAD__
enum { THREADS = 2 };
#else
enum { THREADS = 1 };
#endif

static int count_threads(void) {
    DIR *dir = opendir("/proc/self/task");
    int n = 0;
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void test_threads_end(void **state) {
    (void)state;
    double *a = malloc(3 * sizeof *a * N * N), *b = a + N * N, *c = b + N * N;
    assert_non_null(a);
    print_message("%d threads at first\n", count_threads());
    at_blas_alone();
    assert_int_equal(count_threads(), THREADS);
    for (int i = 0; i < N * N; i++) {
        a[i] = i % 7;
        b[i] = i % 5;
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, N, N, 1, a, N, b, N, 0, c, N);
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int k = 0; k < N; k++)
            sum += a[i * N + k] * b[(N - 1 - i) * N + k];
        assert_true(c[i * N + N - 1 - i] == sum); /* integers: exact in any order */
    }
    at_blas_alone();
    assert_int_equal(count_threads(), THREADS);
    free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
