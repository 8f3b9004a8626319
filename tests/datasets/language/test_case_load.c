/* Case files: an id that was there before is dropped, within a line, a file and a folder, and the first one keeps its role.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <unistd.h>

#include "datasets/language/case.h"

enum { MANY = 1500 }; /* more than a table begins with */

static void write_file(const char *folder, const char *name, int from, int to, const char *more) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = from; i < to; i++)
        fprintf(file, "uclip_norm tokens=%d channels=8 dtype=bf16\n", i);
    fputs(more, file);
    assert_int_equal(fclose(file), 0);
}

static void test_duplicates(void **state) {
    (void)state;
    char folder[] = "/tmp/attest-load-XXXXXX", path[256];
    struct at_case_list list = { 0 };
    assert_non_null(mkdtemp(folder));
    write_file(folder, "a.cases", 1, MANY,
               "uclip_norm tokens=2,1,2 channels=8,16 dtype=bf16\nuclip_norm tokens=5 channels=8 dtype=bf16\n");
    write_file(folder, "b.cases", 0, MANY + 2, "uclip_norm tokens=1,2,3 channels=16 dtype=bf16\n");
    at_assert_ok(at_case_load_dir(folder, &list));
    /* a: 1 .. MANY - 1, and 2 and 1 of 16 channels; b: 0, MANY, MANY + 1, and 3 of 16 channels */
    assert_int_equal(list.n, MANY - 1 + 2 + 3 + 1);
    for (int64_t i = 0; i < list.n; i++) {
        const int in_a = i < MANY - 1 + 2;
        at_assert_true(strcmp(list.items[i].role, in_a ? "a" : "b") == 0, "%s is of %s", list.items[i].id,
                       list.items[i].role);
        assert_non_null(list.items[i].keys);
        for (int64_t j = 0; j < i; j++)
            at_assert_true(strcmp(list.items[i].id, list.items[j].id) != 0, "twice: %s", list.items[i].id);
    }
    assert_non_null(strstr(list.items[MANY - 1].id, "tokens=2 channels=16"));
    assert_non_null(strstr(list.items[MANY].id, "tokens=1 channels=16"));
    assert_non_null(strstr(list.items[MANY + 1].id, "tokens=0 channels=8"));
    assert_non_null(strstr(list.items[list.n - 1].id, "tokens=3 channels=16"));
    at_case_list_release(&list);
    for (const char *name = "ab"; *name; name++) {
        snprintf(path, sizeof path, "%s/%c.cases", folder, *name);
        unlink(path);
    }
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_duplicates) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
