/* What a variant's kernels got: added up by name, the one with the most tokens first, no way more than there is room for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "verify/study/ways/study_ways.h"

static void test_added_by_name(void **state) {
    (void)state;
    struct at_ways ways = { 0 };
    at_assert_ok(at_ways_add(&ways, "few", 2, 9));
    at_assert_ok(at_ways_add(&ways, "many", 1, 20));
    at_assert_ok(at_ways_add(&ways, "also-9", 3, 9));
    at_assert_ok(at_ways_add(&ways, "many", 4, 100));
    at_ways_sort(&ways);
    static const struct at_way wanted[] = { { "many", 2, 5, 120 }, { "also-9", 1, 3, 9 }, { "few", 1, 2, 9 } };
    assert_int_equal(ways.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(ways.items[i].name, wanted[i].name);
        assert_int_equal(ways.items[i].cases, wanted[i].cases);
        assert_int_equal(ways.items[i].requests, wanted[i].requests);
        assert_int_equal(ways.items[i].tokens, wanted[i].tokens);
    }
}

static void test_full(void **state) {
    (void)state;
    struct at_ways ways = { 0 };
    char name[32];
    for (int i = 0; i < AT_WAYS_MAX; i++) {
        snprintf(name, sizeof name, "way-%d", i);
        at_assert_ok(at_ways_add(&ways, name, 1, 1));
    }
    at_assert_ok(at_ways_add(&ways, "way-0", 1, 1));
    at_assert_fails(at_ways_add(&ways, "another", 1, 1), AT_UNSUPPORTED, "one kernel more than");
    assert_int_equal(ways.n, AT_WAYS_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_added_by_name), cmocka_unit_test(test_full) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
