/* The bytes that a time of a product is set against: each factor once, whichever way the second is stored, and the product.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/built_case.h"
#include "verify/bench/bench.h"

static double bytes_of(const char *line) {
    struct at_built_case built = at_build_line(line);
    const double bytes = at_bench_bytes(&built.data.problem);
    at_drop_case(&built);
    return bytes;
}

static void test_products(void **state) {
    (void)state;
    at_assert_same(bytes_of("gemv m=8 n=72 k=40 layout=kn dtype=bf16 data=normal"), 2.0 * (8 * 40 + 40 * 72 + 8 * 72));
    at_assert_same(bytes_of("gemm m=8 n=72 k=40 dtype=bf16 data=normal"), 2.0 * (8 * 40 + 40 * 72 + 8 * 72));
    at_assert_same(bytes_of("gemv m=1 n=72 k=40 layout=kn dtype=f16 out=f32 data=normal"),
                   2.0 * (40 + 40 * 72) + 4.0 * 72);
    at_assert_same(bytes_of("gemv m=2 n=72 k=0 layout=kn dtype=f16 data=normal"), 2.0 * 2 * 72);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
