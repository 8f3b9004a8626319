/* Selections of cases: a file of globs, each of which must select something.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <unistd.h>

#include "verify/plan/case_globs.h"

static char folder[64];

static void write_selection(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s.selection", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/at_globs_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    char path[128];
    (void)state;
    for (const char *name = "ab"; *name; name++) {
        snprintf(path, sizeof path, "%s/%c.selection", folder, *name);
        remove(path);
    }
    return rmdir(folder);
}

static void a_selection_is_a_file_of_globs(void **state) {
    (void)state;
    struct at_case_globs globs;
    write_selection("a", "# first\nalpha:norm*tokens=3*  # of two\n\n  zeta:*sk=@(2|4) *\r\n");
    at_assert_ok(at_case_globs_open(folder, "@a", &globs));
    assert_int_equal(globs.n, 2);
    assert_string_equal(globs.items[0].text, "alpha:norm*tokens=3*");
    assert_int_equal(globs.items[1].line, 4);
    assert_int_equal(at_case_globs_match(&globs, "zeta:decode sk=4 d=64"), 1);
    assert_int_equal(at_case_globs_match(&globs, "zeta:decode sk=3 d=64"), 0);
    assert_int_equal(globs.items[0].hits, 0);
    assert_int_equal(globs.items[1].hits, 1);
    at_case_globs_close(&globs);
}

static void other_texts_are_globs(void **state) {
    (void)state;
    struct at_case_globs globs;
    at_assert_ok(at_case_globs_open(folder, "@(a|b):*", &globs));
    assert_int_equal(globs.n, 1);
    assert_int_equal(at_case_globs_match(&globs, "b:x"), 1);
    at_case_globs_close(&globs);
}

static void names_what_there_is(void **state) {
    (void)state;
    struct at_case_globs globs;
    write_selection("a", "x:*\n");
    at_assert_fails(at_case_globs_open(folder, "@ab", &globs), AT_NOT_FOUND,
                    "no selection of cases is called '@ab'; nearest is '@a'; there is @a in");
    write_selection("b", "# nothing\n");
    at_assert_fails(at_case_globs_open(folder, "@b", &globs), AT_USAGE, "b.selection: selects nothing");
    at_assert_fails(at_case_globs_open(folder, "@c", &globs), AT_NOT_FOUND, "there are @a, @b in");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_selection_is_a_file_of_globs),
        cmocka_unit_test(other_texts_are_globs),
        cmocka_unit_test(names_what_there_is),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
