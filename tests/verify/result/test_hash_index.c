/* The index by hashes: what was added is found, what was not is not, even where hashes are alike.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"
#include "verify/result/hash_index.h"

enum { N = 3000 };

static int is_number(const void *context, int64_t number) { return number == *(const int64_t *)context; }

static void check(uint64_t different) {
    struct at_hash_index index = { 0 };
    const int64_t none = N;
    assert_int_equal(at_hash_index_find(&index, 0, is_number, &none), -1);
    for (int64_t i = 0; i < N; i++) {
        assert_int_equal(at_hash_index_find(&index, (uint64_t)i % different, is_number, &i), -1);
        at_assert_ok(at_hash_index_add(&index, (uint64_t)i % different));
        assert_int_equal(index.n, i + 1);
    }
    for (int64_t i = 0; i < N; i++) {
        assert_int_equal(at_hash_index_find(&index, (uint64_t)i % different, is_number, &i), i);
        assert_int_equal(at_hash_index_find(&index, (uint64_t)i % different, is_number, &none), -1);
        /* in the same slot, but under another hash */
        assert_int_equal(at_hash_index_find(&index, (uint64_t)i % different + ((uint64_t)1 << 40), is_number, &i), -1);
    }
    at_hash_index_release(&index);
    assert_true(index.n == 0 && !index.slots);
}

static void test_hashes(void **state) {
    (void)state;
    check(N);
    check(7);
    check(1);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_hashes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
