/* Declarations by problem: which answer counts when a runner changes its mind or dies between two questions, and what is
 * part of a question.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started with --serve, this program is itself a runner of dispatchers. */
#include "tests/at_test.h"

#include <unistd.h>

#include "tests/support/built_case.h"
#include "tests/support/runner_rig.h"
#include "verify/runner/launch.h"

/* ---- the runner ---- */

enum { BY_WORD, BY_LENGTHS, DISPATCHERS, A = 16, B = 32 };

static int launch_none(const struct at_launch *launch) {
    (void)launch;
    return 7;
}

#define SPLIT(keys) \
    { .free_order = 1, .qk_lanes = 1, .pv_chunk = 1, .repeats = 1, .split = keys }
static const struct at_kernel kernel_a = { .summary = "a", .numerics = SPLIT(A), .launch = launch_none },
                              kernel_b = { .summary = "b", .numerics = SPLIT(B), .launch = launch_none };
static const struct at_kernel_entry entry_a = { "asynct_prefill", "10_a", "", &kernel_a, "" },
                                    entry_b = { "asynct_prefill", "11_b", "", &kernel_b, "" };

/* What the file AT_TEST_DECLARED says: a, b, or x, at which the runner dies. */
static const struct at_kernel_entry *by_word(const struct at_problem *problem, const char **reason) {
    FILE *file = fopen(getenv("AT_TEST_DECLARED"), "re");
    const int word = file ? fgetc(file) : EOF;
    (void)problem;
    if (file)
        fclose(file);
    *reason = word == 'a' || word == 'b' ? NULL : "the file has no word";
    if (word == 'x')
        abort();
    return word == 'a' ? &entry_a : word == 'b' ? &entry_b : NULL;
}

/* By the keys of the first request. */
static const struct at_kernel_entry *by_lengths(const struct at_problem *problem, const char **reason) {
    *reason = NULL;
    return at_tensor_i32(&problem->tensors[AT_ATTN_SEQ_LENS], 0) > 6 ? &entry_a : &entry_b;
}

static const struct at_kernel_entry *entry_at(int i) {
    static const struct at_kernel dispatchers[] = {
        { .summary = "by_word", .numerics = SPLIT(0), .choose = by_word },
        { .summary = "by_lengths", .numerics = SPLIT(0), .choose = by_lengths },
    };
    static struct at_kernel_entry entry;
    entry = (struct at_kernel_entry){ "asynct_prefill", i == BY_WORD ? "00_by_word" : "01_by_lengths", "",
                                      &dispatchers[i], "" };
    return &entry;
}

/* ---- the tests ---- */

static char path[] = "/tmp/at_declared_XXXXXX";
static struct at_runner *runner;

static void say(char word) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputc(word, file);
    assert_int_equal(fclose(file), 0);
}

static int open_runner(void **state) {
    (void)state;
    say('a');
    at_assert_ok(at_rig_open_self(&runner));
    assert_int_equal(at_runner_variant_count(runner), DISPATCHERS);
    return 0;
}

static int close_runner(void **state) {
    (void)state;
    at_runner_close(runner);
    return 0;
}

static at_status declared_on(int variant, const char *line, int *split) {
    struct at_built_case built = at_build_line(line);
    struct at_numerics numerics;
    const at_status status = at_declared_on(runner, variant, &built.data.problem, &numerics);
    *split = numerics.split;
    at_drop_case(&built);
    return status;
}

static void expect(int variant, const char *line, int want) {
    int split;
    at_assert_ok(declared_on(variant, line, &split));
    at_assert_true(split == want, "%s: split=%d, wanted %d", line, split, want);
}

#define FIRST "asynct_prefill b=1 h=2 hk=1 sq=3 sk=9 d=8 page=0 dtype=f32"
#define SECOND "asynct_prefill b=1 h=2 hk=1 sq=3 sk=10 d=8 page=0 dtype=f32"

/* It is asked once: what it would say later, on other data, too, is not heard. (Where keys lie in pages, another seed has other pages.) */
static void test_asked_once(void **state) {
    (void)state;
    expect(BY_WORD, FIRST, A);
    say('b');
    expect(BY_WORD, FIRST, A);
    expect(BY_WORD, FIRST " seed=5 data=heavy_tail", A);
    expect(BY_WORD, SECOND, B);
}

static void test_dies_between_two_questions(void **state) {
    (void)state;
    int split;
    expect(BY_WORD, FIRST, A);
    say('x');
    at_assert_fails(declared_on(BY_WORD, SECOND, &split), AT_CRASHED, "");
    say('b'); /* the child that is started for the next question would say this of both */
    expect(BY_WORD, SECOND, B);
    expect(BY_WORD, FIRST, A);
}

/* No answer is none: the question is asked again. */
static void test_dies_at_the_first(void **state) {
    (void)state;
    int split;
    say('x');
    at_assert_fails(declared_on(BY_WORD, FIRST, &split), AT_CRASHED, "");
    say('b');
    expect(BY_WORD, FIRST, B);
    say('a');
    expect(BY_WORD, FIRST, B);
}

/* Two batches with the same sizes, whose requests have each other's lengths. */
static void test_lengths_are_part_of_it(void **state) {
    (void)state;
    static const char *const lines[] = { "asynct_prefill b=2 h=2 hk=1 sq=3 sk=5/9 d=8 page=4 dtype=f32",
                                         "asynct_prefill b=2 h=2 hk=1 sq=3 sk=9/5 d=8 page=4 dtype=f32" };
    struct at_built_case one = at_build_line(lines[0]), other = at_build_line(lines[1]);
    assert_memory_equal(&one.data.problem.sizes, &other.data.problem.sizes, sizeof one.data.problem.sizes);
    at_drop_case(&one);
    at_drop_case(&other);
    for (int turn = 0; turn < 2; turn++) { /* the second time by what was kept */
        expect(BY_LENGTHS, lines[0], B);
        expect(BY_LENGTHS, lines[1], A);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--serve") == 0)
        return at_rig_serve_list(&(struct at_kernel_list){ DISPATCHERS, entry_at });
    const int fd = mkstemp(path);
    if (fd < 0 || setenv("AT_TEST_DECLARED", path, 1) != 0)
        return 1;
    close(fd);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_asked_once, open_runner, close_runner),
        cmocka_unit_test_setup_teardown(test_dies_between_two_questions, open_runner, close_runner),
        cmocka_unit_test_setup_teardown(test_dies_at_the_first, open_runner, close_runner),
        cmocka_unit_test_setup_teardown(test_lengths_are_part_of_it, open_runner, close_runner),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
