/* The quick reader of results beside the one that reads everything: what it takes, both read alike.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"
#include "tests/support/sample_record.h"
#include "tests/support/attention_problem.h"
#include "verify/result/result_scan.h"

static char *json_of(const struct at_result *r) {
    char *line = NULL;
    at_assert_ok(at_result_to_json(r, &line));
    return line;
}

/* The samples have all that is odd; this is one with plain texts and integers of up to 17 digits, as results mostly have. */
static void make_plain(const struct at_field *(*field_at)(int i), void *base) {
    const struct at_field *field;
    for (int f = 0; (field = field_at(f)); f++) {
        char *text = at_field_at(field, base);
        uint64_t *integers = at_field_at(field, base);
        for (size_t i = 0; field->kind == AT_FIELD_TEXT && text[i]; i++)
            text[i] = text[i] == '"' || text[i] == '\\' || text[i] < 0x20 || text[i] > 0x7e ? 'x' : text[i];
        for (int i = 0; (field->kind == AT_FIELD_U64 || field->kind == AT_FIELD_I64) && i < field->count; i++)
            integers[i] %= 100000000000000000u;
    }
}

static char *plain_line(int i) {
    struct at_result r;
    at_sample_result(&r, i);
    make_plain(at_result_field, &r);
    make_plain(at_ledger_total_field, &r.ledger);
    for (int s = 0; s < AT_STAGE_COUNT; s++)
        make_plain(at_ledger_row_field, &r.ledger.stage[s]);
    return json_of(&r);
}

/* Whether the quick reader takes all of `line`; then the other one does, with the same values. */
static int reads_alike(const char *line) {
    static struct at_result quick, slow;
    const char *end = line;
    if (!at_result_scan(&end, &quick) || *end)
        return 0;
    at_assert_ok(at_result_from_json(line, "here", &slow));
    char *a = json_of(&quick), *b = json_of(&slow);
    assert_string_equal(a, b);
    free(a);
    free(b);
    return 1;
}

static void test_written_lines(void **state) {
    (void)state;
    struct at_result r;
    int taken = 0;
    for (int i = 0; i < 40; i++) {
        at_sample_result(&r, i);
        char *line = json_of(&r), *plain = plain_line(i);
        assert_false(reads_alike(line)); /* texts beyond ASCII, integers beyond 18 digits */
        taken += reads_alike(plain);
        free(line);
        free(plain);
    }
    at_assert_true(taken == 40, "of 40 plain lines %d were taken", taken);
}

/* Of a line with one character changed, lost or new: mostly it is refused, or a value is another one. */
static void test_changed_lines(void **state) {
    (void)state;
    static const char letters[] = "0123456789-+.eE\"\\{}[],:ntfaN \x01\x7f\xc3";
    struct at_test_random random = { 5 };
    long taken = 0, changed = 0;
    for (int i = 0; i < 40; i++) {
        char *line = plain_line(i);
        const size_t n = strlen(line);
        char *other = malloc(n + 2);
        for (long k = 0; k < at_test_effort(1300) + 200; k++) {
            const size_t at = (size_t)at_test_below(&random, (int)n);
            const char letter = letters[at_test_below(&random, sizeof letters - 1)];
            const int how = at_test_below(&random, 3); /* 0: lost, 1: another, 2: new */
            memcpy(other, line, at);
            other[at] = letter;
            memcpy(other + at + (how > 0), line + at + (how < 2), n - at - (how < 2) + 1);
            changed++;
            taken += reads_alike(other);
        }
        free(other);
        free(line);
    }
    at_assert_true(taken > changed / 500 && taken < changed / 2, "%ld of %ld changed lines were taken", taken, changed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_lines),
        cmocka_unit_test(test_changed_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
