/* Selections of cases: a file of globs, each of which must select something.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <unistd.h>

#include "datasets/language/case.h"
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

/* Both leave the name that was matched last to the same variants. */
static int alike_restricted(struct at_case_globs *a, struct at_case_globs *b) {
    int of_a = 0, of_both = 0, of_b = 0;
    for (int i = 0; i < a->n; i++)
        of_a += a->items[i].only && a->items[i].is_here;
    for (int k = 0; k < b->n; k++) {
        if (!b->items[k].only || !b->items[k].is_here)
            continue;
        of_b++;
        for (int i = 0; i < a->n; i++)
            of_both += a->items[i].only && a->items[i].is_here && strcmp(a->items[i].only, b->items[k].only) == 0;
    }
    return of_a == of_both && of_b == of_both;
}

/* `attest coverage --gate` and test_declarations.sh answer for the cases of @check by fewer of them. `several`: lines that
 * match more than one case, at the top. */
static void some_of_check(const char *selection, int several, int least) {
    char dir[1100];
    struct at_case_list cases = { 0 };
    struct at_case_globs check, fewer;
    int n = 0;
    snprintf(dir, sizeof dir, "%s/cases", at_datasets_dir());
    at_assert_ok(at_case_load_dir(dir, &cases));
    at_assert_ok(at_case_globs_open(dir, "@check", &check));
    at_assert_ok(at_case_globs_open(dir, selection, &fewer));
    for (int64_t i = 0; i < cases.n; i++) {
        char name[sizeof cases.items[i].role + sizeof cases.items[i].id];
        snprintf(name, sizeof name, "%s:%s", cases.items[i].role, cases.items[i].id);
        if (!at_case_globs_match(&fewer, name))
            continue;
        n++;
        if (!at_case_globs_match(&check, name))
            fail_msg("%s has a case that @check has not: %s", selection, name);
        if (!alike_restricted(&fewer, &check))
            fail_msg("%s and @check have lines `only` for other variants of %s", selection, name);
    }
    for (int i = 0; i < fewer.n; i++)
        if (fewer.items[i].hits < 1 || (i >= several && fewer.items[i].hits > 1))
            fail_msg("%s, line %d, matches %d cases", selection, fewer.items[i].line, fewer.items[i].hits);
    assert_true(n > least);
    at_case_globs_close(&check);
    at_case_globs_close(&fewer);
    at_case_list_release(&cases);
}

static void what_covers_is_checked(void **state) {
    (void)state;
    some_of_check("@coverage", 0, 100);
}

static void what_tests_fields_is_checked(void **state) {
    (void)state;
    some_of_check("@fields", 1, 150);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_selection_is_a_file_of_globs),
        cmocka_unit_test(other_texts_are_globs),
        cmocka_unit_test(names_what_there_is),
        cmocka_unit_test(what_covers_is_checked),
        cmocka_unit_test(what_tests_fields_is_checked),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
