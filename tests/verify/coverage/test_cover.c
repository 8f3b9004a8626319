/* Counts of kernels: how they add up over instances and objects, where lambdas end, what marks say, what the gate asks for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify/coverage/report.h"

/* ---- counts ---- */

static void add(struct at_cover *cover, const char *path, int line, int64_t count, int64_t a, int64_t b) {
    const int64_t taken[2] = { a, b };
    struct at_cover_file *file = at_cover_file(cover, path);
    assert_non_null(file);
    at_assert_ok(at_cover_add_line(file, line, count, taken, 2));
}

/* A branch is taken when some instance took it; lists of other lengths do not mix. */
static void adds_over_instances(void **state) {
    (void)state;
    struct at_cover cover = { 0 };
    struct at_cover_sum sum = { 0 };
    const int64_t four[4] = { 1, 0, 0, 1 };
    int missed;
    add(&cover, "kernels/b.h", 3, 5, 5, 0);
    add(&cover, "kernels/b.h", 3, 0, 0, 0);
    add(&cover, "kernels/a.cu", 1, 2, 1, 1);
    assert_int_equal(cover.n, 2);
    assert_string_equal(cover.files[0].path, "kernels/a.cu");
    assert_int_equal(at_cover_line_branches(&cover.files[1].lines[2], &missed), 2);
    assert_int_equal(missed, 1);
    at_assert_ok(at_cover_add_line(&cover.files[1], 3, 1, four, 4));
    assert_int_equal(at_cover_line_branches(&cover.files[1].lines[2], &missed), 6);
    assert_int_equal(missed, 3);
    add(&cover, "kernels/b.h", 3, 1, 0, 1);
    at_cover_line_branches(&cover.files[1].lines[2], &missed);
    assert_int_equal(missed, 2);
    at_cover_count(&cover.files[1], &sum);
    assert_int_equal(sum.lines, 1);
    assert_int_equal(sum.branches, 6);
    assert_int_equal(sum.taken, 4);
    assert_int_equal(cover.files[1].lines[2].count, 7);
    at_cover_release(&cover);
}

static void merging_is_adding(void **state) {
    (void)state;
    struct at_cover one = { 0 }, other = { 0 }, both = { 0 };
    struct at_cover_sum sum = { 0 };
    add(&one, "kernels/a.cu", 1, 2, 2, 0);
    add(&other, "kernels/a.cu", 1, 3, 0, 3);
    add(&other, "kernels/c.h", 9, 0, 0, 0);
    at_assert_ok(at_cover_add_instance(&one.files[0], "f<1>()", 1, 5, 2));
    at_assert_ok(at_cover_add_instance(&other.files[0], "f<2>()", 1, 5, 0));
    at_assert_ok(at_cover_add_instance(&other.files[0], "f<1>()", 1, 5, 1));
    at_assert_ok(at_cover_add_instance(&other.files[0], "g()", 4, 1, 0));
    at_assert_ok(at_cover_merge(&both, &one));
    at_assert_ok(at_cover_merge(&both, &other));
    assert_int_equal(both.n, 2);
    assert_int_equal(both.files[0].lines[0].count, 5);
    at_cover_count(&both.files[0], &sum);
    assert_int_equal(sum.taken, 2);
    assert_int_equal(sum.instances, 2); /* of f; g has no other */
    assert_int_equal(sum.instances_run, 1);
    assert_int_equal(sum.functions, 2);
    assert_int_equal(sum.functions_run, 1);
    assert_int_equal(both.files[0].instances[0].calls, 3);
    at_cover_release(&one);
    at_cover_release(&other);
    at_cover_release(&both);
}

/* ---- sources ---- */

static char folder[] = "/tmp/attest-cover-XXXXXX";

static struct at_cover_source source_of(const char *text) {
    char path[64];
    struct at_cover_source source;
    snprintf(path, sizeof path, "%s/x.h", folder);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    at_assert_ok(at_cover_source_open(folder, "x.h", &source));
    return source;
}

static void finds_the_end_of_lambdas(void **state) {
    (void)state;
    struct at_cover_source s = source_of("f([a = b[0]](int x) { return x; });\n"
                                         "const auto put = [k, v]<int D>(int (&c)[D]) -> int {\n"
                                         "    for (;;) {\n"
                                         "        g([&] { h(); });\n"
                                         "    }\n"
                                         "};\n"
                                         "void f() {}\n");
    assert_int_equal(s.n, 7);
    assert_int_equal(at_cover_lambda_end(&s, 1, 3), 1);
    assert_int_equal(at_cover_lambda_end(&s, 2, 18), 6);
    assert_int_equal(at_cover_lambda_end(&s, 4, 11), 4);
    assert_int_equal(at_cover_lambda_end(&s, 7, 6), 7); /* no lambda */
    assert_int_equal(at_cover_lambda_end(&s, 9, 1), 9);
    assert_int_equal(at_cover_lambda_end(&s, 1, 99), 1);
    at_cover_source_close(&s);
}

static void reads_marks(void **state) {
    (void)state;
    struct at_cover cover = { 0 };
    struct at_cover_source s = source_of("if (a) /* not reached: the first reason */\n"
                                         "    /* not reached: the second,\n"
                                         "     * which goes on */\n"
                                         "    if (b)\n");
    add(&cover, "x.h", 1, 1, 1, 0);
    add(&cover, "x.h", 4, 1, 1, 0);
    at_assert_ok(at_cover_mark(&s, 1, &cover.files[0]));
    assert_string_equal(cover.files[0].lines[0].reason, "the first reason");
    assert_null(cover.files[0].lines[1].reason);
    assert_string_equal(cover.files[0].lines[3].reason, "the second, which goes on");
    at_cover_source_close(&s);
    at_cover_release(&cover);
}

static void refuses_marks(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = { { "if (a) /* not reached: */\n", "gives no reason" },
                  { "if (a) /* not reached: but where does it end\n", "has no end" },
                  { "\n/* not reached: nothing follows */\n", "has no code" },
                  { "/* not reached: one */\nif (a) /* not reached: two */\n", "has no code or a mark already" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct at_cover cover = { 0 };
        struct at_cover_source s = source_of(wrong[i].text);
        add(&cover, "x.h", i == 3 ? 2 : 1, 1, 1, 0);
        assert_int_equal(at_cover_mark(&s, 1, &cover.files[0]), AT_USAGE);
        assert_non_null(strstr(at_error_message(), wrong[i].says));
        if (i == 2) /* another selection of variants may have code there */
            at_assert_ok(at_cover_mark(&s, 0, &cover.files[0]));
        at_cover_source_close(&s);
        at_cover_release(&cover);
    }
}

/* ---- the gate ---- */

/* A file of 1000 branches, of which the first `missed` are not taken and the first `marked` lines have a reason. */
static void gate_of(int missed, int marked, int calls, int64_t *faults, int *gate) {
    enum { LINES = 500 };
    struct at_cover_report r = { .cases = "", .is_whole = (char[]){ 1 } };
    for (int l = 0; l < LINES; l++)
        add(&r.cover, "kernels/a.cu", l + 1, 1, 1, l >= missed);
    for (int l = 0; l < marked; l++)
        r.cover.files[0].lines[l].reason = strdup("no case can");
    at_assert_ok(at_cover_add_instance(&r.cover.files[0], "f()", 400, 1, calls));
    *faults = at_cover_faults(&r, NULL, NULL);
    *gate = at_cover_gate(&r);
    at_cover_release(&r.cover);
}

static void gate_opens_and_shuts(void **state) {
    (void)state;
    static const struct {
        int missed, marked, calls;
        int64_t faults;
        int gate;
    } wanted[] = {
        { 0, 0, 1, 0, 1 },   /* all taken */
        { 1, 0, 1, 1, 0 },   /* one is not */
        { 1, 1, 1, 0, 1 },   /* and says why */
        { 0, 1, 1, 1, 0 },   /* one says why, and is taken */
        { 9, 9, 1, 0, 1 },   /* 0.9 % explained */
        { 10, 10, 1, 0, 0 }, /* 1.0 % */
        { 0, 0, 0, 1, 0 },   /* a function that nothing calls */
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        int64_t faults;
        int gate;
        gate_of(wanted[i].missed, wanted[i].marked, wanted[i].calls, &faults, &gate);
        assert_int_equal(faults, wanted[i].faults);
        assert_int_equal(gate, wanted[i].gate);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_over_instances),
        cmocka_unit_test(merging_is_adding),
        cmocka_unit_test(finds_the_end_of_lambdas),
        cmocka_unit_test(reads_marks),
        cmocka_unit_test(refuses_marks),
        cmocka_unit_test(gate_opens_and_shuts),
    };
    if (!mkdtemp(folder))
        return 1;
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    char path[64];
    snprintf(path, sizeof path, "%s/x.h", folder);
    unlink(path);
    rmdir(folder);
    return code;
}
