/* Hostile case lines: mutated lines of the suite's own files, random keys with random values, random bytes. Whatever
 * comes in, the parser gives cases whose ids read back as themselves, or one line that says what is wrong.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/env.h"
#include "datasets/language/case.h"
#include "datasets/fill/random.h"

#include "tests/at_test.h"

enum { LINE = 600, CORPUS = 400 };

static struct at_random numbers = { 20, 0 };
static uint64_t drawn;
static char corpus[CORPUS][LINE];
static int corpus_size, keys;

static int64_t below(int64_t n) { return at_random_below(&numbers, drawn++, n); }

static void load_corpus(void) {
    static const char *const files[] = { "smoke", "shapes", "edge", "exact", "nonfinite", "long", "real" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/cases/%s.cases", at_datasets_dir(), files[i]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        while (corpus_size < CORPUS && fgets(corpus[corpus_size], LINE, file)) {
            corpus[corpus_size][strcspn(corpus[corpus_size], "\n")] = 0;
            corpus_size += corpus[corpus_size][0] != '#' && corpus[corpus_size][0] != 0;
        }
        fclose(file);
    }
    assert_true(corpus_size > 100);
    while (at_case_key_help(keys))
        keys++;
}

/* One line: its cases are consistent, or the message is one line that begins with the place. Returns accepted cases. */
static int64_t judge(const char *line) {
    struct at_case_list list = { 0 }, again = { 0 };
    at_status status = at_case_parse(line, "fuzz", "fuzz:1", &list);
    if (status != AT_OK) {
        const char *message = at_error_message();
        at_assert_true(status == AT_USAGE, "%s for '%s'", at_status_name(status), line);
        at_assert_true(strncmp(message, "fuzz:1: ", 8) == 0 && !strchr(message, '\n'), "'%s' gave '%s'", line, message);
        at_assert_true(list.n == 0, "'%s' failed and left %lld cases", line, (long long)list.n);
        at_case_list_release(&list); /* room for cases may have been made */
        return 0;
    }
    int64_t n = list.n;
    for (int64_t i = 0; i < n; i += 1 + n / 4) {
        at_assert_ok(at_case_parse(list.items[i].id, "fuzz", "id", &again));
        assert_int_equal(again.n, 1);
        assert_string_equal(again.items[0].id, list.items[i].id);
        at_case_list_release(&again);
    }
    at_case_list_release(&list);
    return n;
}

static const char *const values[] = { "0",     "1",    "-1",      "2",        "16",         "65536",
                                      "1/2/3", "nan",  "-inf",    "1e400",    "0x10",       "9223372036854775808",
                                      "1..9",  "9..1", "0.5:0.5", "1,2,3",    "a",          "",
                                      "=",     "0:1",  "auto",    "exact",    "..",         "1...3",
                                      ":::",   "///",  ",,",      "bf16,f16", "2147483648", "shrink" };

/* Changes one place of the line. */
static void mutate(char *line) {
    size_t length = strlen(line), at = (size_t)below((int64_t)length + 1);
    char *equals = strchr(line + at, '=');
    switch (below(6)) {
    case 0: /* another byte */
        line[at < length ? at : 0] = (char)(1 + below(255));
        break;
    case 1: /* one less */
        if (at < length)
            memmove(line + at, line + at + 1, length - at);
        break;
    case 2: /* a piece twice */
        if (length + 20 < LINE && at + 20 < length)
            memmove(line + at + 20, line + at, length - at + 1);
        break;
    case 3: /* another value */
        if (equals) {
            char rest[LINE];
            const char *end = equals + strcspn(equals, " ");
            snprintf(rest, sizeof rest, "%s", end);
            snprintf(equals + 1, LINE - (size_t)(equals + 1 - line), "%s%s",
                     values[below(sizeof values / sizeof *values)], rest);
        }
        break;
    case 4: /* the end missing */
        line[at] = 0;
        break;
    default: /* a piece of another line */
        snprintf(line + at, LINE - at, "%s", corpus[below(corpus_size)] + below(10));
        break;
    }
}

/* Runs `make` until the time is up, and 2,000 times at least; the same lines for the same count on any machine. */
static void fuzz(void (*make)(char *line), uint64_t stream, double seconds, int64_t least_accepted) {
    double end = at_seconds() + seconds;
    int64_t lines = 0, accepted = 0;
    char line[LINE];
    numbers.stream = stream;
    drawn = 0;
    while (lines <= 2000 || at_seconds() < end) {
        make(line);
        accepted += judge(line) > 0;
        lines++;
    }
    print_message("%lld lines, %lld accepted\n", (long long)lines, (long long)accepted);
    at_assert_true(lines > 2000 && accepted >= least_accepted, "%lld lines, %lld accepted", (long long)lines,
                   (long long)accepted);
}

static void make_mutated(char *line) {
    snprintf(line, LINE, "%s", corpus[below(corpus_size)]);
    for (int64_t n = below(4); n >= 0; n--)
        mutate(line);
}

static void make_keys(char *line) {
    int used = snprintf(line, LINE, "%s", at_family_at((int)below(at_family_count()))->name);
    for (int64_t n = below(5); n >= 0; n--) {
        char key[16];
        const char *help = at_case_key_help((int)below(keys));
        snprintf(key, sizeof key, "%.*s", (int)strcspn(help, " "), help);
        used +=
            snprintf(line + used, (size_t)(LINE - used), " %s=%s", key, values[below(sizeof values / sizeof *values)]);
    }
}

static void make_bytes(char *line) {
    int64_t n = below(LINE - 1);
    for (int64_t i = 0; i < n; i++)
        line[i] = (char)(1 + below(255));
    line[n] = 0;
}

static double seconds(void) { return at_test_effort(4) == 1 ? 0.4 : 2; }

static void test_mutated_lines(void **state) {
    (void)state;
    fuzz(make_mutated, 1, seconds(), 10);
}

static void test_random_keys(void **state) {
    (void)state;
    fuzz(make_keys, 2, seconds(), 10);
}

static void test_random_bytes(void **state) {
    (void)state;
    fuzz(make_bytes, 3, seconds() / 3, 0);
}

static int load(void **state) {
    (void)state;
    load_corpus();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutated_lines),
        cmocka_unit_test(test_random_keys),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
