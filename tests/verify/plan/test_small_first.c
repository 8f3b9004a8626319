/* The order of a run that may end early: cases by their bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"
#include "verify/plan/plan.h"

/* A data set's case has no size of its own, and is not taken for a small one. */
static void small_cases_first(void **state) {
    (void)state;
    static const char *const want[] = { " sk=3 ", " sk=400 ", " sk=500 ", " dataset=minilm " };
    struct at_case_list cases = { 0 };
    at_assert_ok(at_case_parse("asynct_decode dataset=minilm layer=0 page=16", "real", "a test", &cases));
    at_assert_ok(at_case_parse("asynct_decode sk=500,3,400 d=64", "smoke", "a test", &cases));
    assert_int_equal(cases.n, 4);
    struct at_plan_case items[4];
    for (int i = 0; i < 4; i++)
        items[i] = (struct at_plan_case){ .c = &cases.items[i], .first_index = i };
    struct at_plan plan = { .items = items, .n_items = 4 };
    at_plan_small_first(&plan);
    for (int i = 0; i < 4; i++)
        at_assert_true(strstr(items[i].c->id, want[i]) != NULL, "place %d has %s", i, items[i].c->id);
    assert_int_equal(items[0].first_index, 2);
    at_case_list_release(&cases);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(small_cases_first) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
