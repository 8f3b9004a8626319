/* Command line parsing: values, flags, suggestions, ranges.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/at_test.h"

#include "verify/cli/options.h"
#include "verify/plan/plan.h"

static const struct at_option options[] = { { "--cases", "GLOB", "" },    { "--strict", NULL, "" },
                                            { "--jobs", "N", "" },        { "--x", "X", "" },
                                            { "--golden", "[FILE]", "" }, { NULL, NULL, NULL } };
static const struct at_command command = {
    .name = "verify", .synopsis = "verify [GLOB...]", .options = options, .max_words = 2
};

static at_status parse(struct at_args *args, int *help, int n, const char **words) {
    return at_args_parse(&command, n, (char **)words, args, help);
}

static void values_flags_and_words(void **state) {
    struct at_args args;
    int help;
    int64_t jobs;
    double x;
    (void)state;
    at_assert_ok(
        parse(&args, &help, 7, (const char *[]){ "a/*", "--cases", "s:*", "--strict", "--jobs=3", "--", "--b" }));
    assert_int_equal(help, 0);
    assert_int_equal(args.n_words, 2);
    assert_string_equal(args.words[1], "--b");
    assert_string_equal(at_args_get(&args, "--cases"), "s:*");
    assert_true(at_args_has(&args, "--strict"));
    at_assert_ok(at_args_int(&args, "--jobs", 1, 8, 1, &jobs));
    assert_int_equal(jobs, 3);
    at_assert_ok(at_args_real(&args, "--x", 0, 1, 0.25, &x));
    at_assert_same(x, 0.25);
    at_args_release(&args);
    at_assert_ok(parse(&args, &help, 2, (const char *[]){ "--strict", "--help" }));
    assert_int_equal(help, 1);
    at_args_release(&args);
}

/* A value in brackets may be left out: at the end or before another option. */
static void a_value_may_be_left_out(void **state) {
    static const struct {
        int n;
        const char *words[3], *value;
        int n_words;
    } rows[] = {
        { 1, { "--golden" }, "", 0 },
        { 2, { "--golden", "--strict" }, "", 0 },
        { 2, { "--golden", "file" }, "file", 0 },
        { 1, { "--golden=file" }, "file", 0 },
        { 2, { "word", "--golden" }, "", 1 },
        { 3, { "--golden", "file", "word" }, "file", 1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct at_args args;
        int help;
        at_assert_ok(parse(&args, &help, rows[i].n, (const char **)rows[i].words));
        assert_true(at_args_has(&args, "--golden"));
        assert_string_equal(at_args_get(&args, "--golden"), rows[i].value);
        assert_int_equal(args.n_words, rows[i].n_words);
        at_args_release(&args);
    }
}

/* The command line again, in words that a shell takes as they were typed. */
static void puts_the_command(void **state) {
    struct at_args args;
    int help;
    char *text = NULL;
    size_t size = 0;
    (void)state;
    at_assert_ok(parse(&args, &help, 6, (const char *[]){ "a/b", "it's *", "--jobs=3", "--strict", "--cases", "" }));
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    at_args_put(&command, &args, "--resume", out);
    at_args_put(&command, &args, "", out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "attest verify a/b 'it'\\''s *' --cases '' --strict --jobs 3 --resume\n"
                              "attest verify a/b 'it'\\''s *' --cases '' --strict --jobs 3\n");
    free(text);
    at_args_release(&args);
}

static void every_mistake_is_named(void **state) {
    static const struct {
        int n;
        const char *words[4], *says;
    } rows[] = {
        { 1, { "--casse=1" }, "did you mean --cases" }, { 1, { "--cases" }, "wants a value" },
        { 1, { "--strict=1" }, "takes no value" },      { 2, { "--strict", "--strict" }, "given twice" },
        { 3, { "a", "b", "c" }, "found 3 arguments" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct at_args args;
        int help;
        at_assert_fails(parse(&args, &help, rows[i].n, (const char **)rows[i].words), AT_USAGE, rows[i].says);
        at_args_release(&args);
    }
}

static void numbers_have_ranges(void **state) {
    static const char *const bad[] = { "0", "9", "x", "3x", "", "99999999999999999999", "-1" };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct at_args args;
        int help;
        int64_t value;
        double real;
        at_assert_ok(parse(&args, &help, 4, (const char *[]){ "--jobs", bad[i], "--x", "nan" }));
        at_assert_fails(at_args_int(&args, "--jobs", 1, 8, 1, &value), AT_USAGE, "wanted a whole number from 1 to 8");
        at_assert_fails(at_args_real(&args, "--x", 0, 1, 0, &real), AT_USAGE, "wanted a number");
        at_args_release(&args);
    }
}

static void shards(void **state) {
    int shard, count;
    (void)state;
    unsetenv("TEST_TOTAL_SHARDS");
    unsetenv("SLURM_ARRAY_TASK_COUNT");
    at_assert_ok(at_shard_parse(NULL, &shard, &count));
    assert_int_equal(count, 1);
    at_assert_ok(at_shard_parse("3/5", &shard, &count));
    assert_int_equal(shard, 2);
    assert_int_equal(count, 5);
    static const char *const bad[] = { "0/5", "6/5", "1/0", "a/b", "1/2/3", "", "1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        at_assert_fails(at_shard_parse(bad[i], &shard, &count), AT_USAGE, "wanted i/N");
    setenv("TEST_TOTAL_SHARDS", "4", 1);
    setenv("TEST_SHARD_INDEX", "3", 1);
    at_assert_ok(at_shard_parse(NULL, &shard, &count));
    assert_int_equal(shard * 10 + count, 34);
    setenv("TEST_SHARD_INDEX", "4", 1);
    at_assert_fails(at_shard_parse(NULL, &shard, &count), AT_USAGE, "TEST_SHARD_INDEX");
    setenv("TEST_TOTAL_SHARDS", "0", 1);
    at_assert_ok(at_shard_parse(NULL, &shard, &count));
    assert_int_equal(shard * 10 + count, 1);
    unsetenv("TEST_TOTAL_SHARDS");
    setenv("SLURM_ARRAY_TASK_COUNT", "3", 1);
    setenv("SLURM_ARRAY_TASK_ID", "12", 1);
    setenv("SLURM_ARRAY_TASK_MIN", "10", 1);
    at_assert_ok(at_shard_parse(NULL, &shard, &count));
    assert_int_equal(shard * 10 + count, 23);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_the_command),        cmocka_unit_test(values_flags_and_words),
        cmocka_unit_test(a_value_may_be_left_out), cmocka_unit_test(every_mistake_is_named),
        cmocka_unit_test(numbers_have_ranges),     cmocka_unit_test(shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
