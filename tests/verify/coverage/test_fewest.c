/* Few cases that reach what all of them do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "verify/coverage/fewest.h"

enum { CASES = 6, BRANCHES = 6 };

/* One file with a line of so many branches: bit k of taken: branch k; and a function on line 2, called or not. */
static void fill(struct at_cover *cover, unsigned taken, int calls) {
    int64_t counts[BRANCHES];
    for (int k = 0; k < BRANCHES; k++)
        counts[k] = taken >> k & 1 ? 7 : 0;
    struct at_cover_file *file = at_cover_file(cover, "kernels/any/any.h");
    assert_non_null(file);
    at_assert_ok(at_cover_add_line(file, 1, 1, counts, BRANCHES));
    at_assert_ok(at_cover_add_instance(file, "any", 2, 1, calls));
    at_assert_ok(at_cover_add_instance(file, "any<int>", 2, 1, 0));
}

static void choose(const unsigned *taken, const int *calls, const double *seconds, const char *want) {
    struct at_cover each[CASES] = { 0 };
    char chosen[CASES], got[CASES + 1] = "";
    for (int i = 0; i < CASES; i++)
        fill(&each[i], taken[i], calls[i]);
    at_assert_ok(at_cover_fewest(each, seconds, CASES, chosen));
    for (int i = 0; i < CASES; i++)
        got[i] = chosen[i] ? '1' : '0';
    assert_string_equal(got, want);
    for (int i = 0; i < CASES; i++)
        at_cover_release(&each[i]);
}

static const double even[CASES] = { 1, 1, 1, 1, 1, 1 };
static const int none[CASES] = { 0 };

static void takes_most_first_and_nothing_twice(void **state) {
    (void)state;
    choose((const unsigned[]){ 0x01, 0x02, 0x1f, 0x20, 0x21, 0 }, none, even, "001100");
    choose((const unsigned[]){ 0, 0, 0, 0, 0, 0 }, none, even, "000000");
}

static void takes_out_what_others_have_made_superfluous(void **state) {
    (void)state;
    /* The first has four of six; the next two have all of them. */
    choose((const unsigned[]){ 0x1e, 0x07, 0x38, 0, 0, 0 }, none, even, "011000");
}

static void a_cheap_case_goes_before_a_dear_one(void **state) {
    (void)state;
    choose((const unsigned[]){ 0x3f, 0x07, 0x38, 0, 0, 0 }, none, (const double[]){ 9, 1, 1, 1, 1, 1 }, "011000");
    choose((const unsigned[]){ 0x3f, 0x07, 0x38, 0, 0, 0 }, none, (const double[]){ 1, 1, 1, 1, 1, 1 }, "100000");
    /* The first or the second could go, once the others are there: the dearer one goes. */
    choose((const unsigned[]){ 0x03, 0x05, 0x0a, 0x14, 0, 0 }, none, (const double[]){ 1, 1.2, 10, 10, 1, 1 },
           "101100");
}

static void functions_are_called_too(void **state) {
    (void)state;
    choose((const unsigned[]){ 0x3f, 0x01, 0x01, 0, 0, 0 }, (const int[]){ 0, 0, 3, 0, 0, 0 }, even, "101000");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_most_first_and_nothing_twice),
        cmocka_unit_test(takes_out_what_others_have_made_superfluous),
        cmocka_unit_test(a_cheap_case_goes_before_a_dear_one),
        cmocka_unit_test(functions_are_called_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
