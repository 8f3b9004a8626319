/* Results as JSON and back: every field, every extreme, and bad input.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"
#include "tests/support/sample_record.h"
#include "verify/result/text.h"

static char *json_of(const struct at_result *r) {
    char *line = NULL;
    at_assert_ok(at_result_to_json(r, &line));
    return line;
}

/* to JSON, back, to JSON again: the same bytes; and every field of the table the same in memory. */
static void test_round_trip(void **state) {
    (void)state;
    struct at_result a, b;
    const struct at_field *field;
    for (int i = 0; i < 40; i++) {
        at_sample_result(&a, i);
        char *line = json_of(&a);
        at_assert_ok(at_result_from_json(line, "here", &b));
        char *again = json_of(&b);
        assert_string_equal(line, again);
        for (int f = 0; (field = at_result_field(f)); f++) {
            if (field->kind == AT_FIELD_TEXT)
                assert_string_equal((const char *)at_field_of(field, &a), (const char *)at_field_of(field, &b));
            else if (field->kind == AT_FIELD_F64)
                at_assert_same(*(const double *)at_field_of(field, &b), *(const double *)at_field_of(field, &a));
            else
                assert_memory_equal(at_field_of(field, &a), at_field_of(field, &b), field->size);
        }
        if (a.has_ledger)
            assert_memory_equal(&a.ledger, &b.ledger, sizeof a.ledger);
        free(line);
        free(again);
    }
}

/* Nothing but padding lies between `end` and the next field, which is so much smaller than a forgotten one. */
static void assert_no_gap(size_t *end, size_t offset, size_t size, size_t align, const char *name) {
    at_assert_true(offset >= *end && offset - *end < align, "%zu bytes without a name before %s", offset - *end, name);
    *end = offset + size;
}

static void assert_no_gap_before(size_t *end, const struct at_field *field) {
    size_t align = 8;
    if (field->kind == AT_FIELD_TEXT)
        align = 1;
    else if (field->kind == AT_FIELD_STATE || field->kind == AT_FIELD_BOOL || field->kind == AT_FIELD_INT)
        align = 4;
    assert_no_gap(end, field->offset, field->size, align, field->name);
}

/* The field tables forget nothing: in the order of the structs, every byte is a field's or padding. */
static void test_tables_cover_the_structs(void **state) {
    (void)state;
    const struct at_field *field;
    size_t end = 0;
    for (int f = 0; (field = at_result_field(f)); f++) {
        if (strcmp(field->name, "ledger_modelled") == 0)
            assert_no_gap(&end, offsetof(struct at_result, ledger), sizeof(struct at_ledger), 8, "ledger");
        assert_no_gap_before(&end, field);
    }
    assert_no_gap(&end, sizeof(struct at_result), 0, 8, "the end of a result");
    end = 0;
    for (int f = 0; (field = at_ledger_row_field(f)); f++)
        assert_no_gap_before(&end, field);
    assert_no_gap(&end, offsetof(struct at_ledger_row, first), sizeof(struct at_place), 8, "first");
    assert_no_gap(&end, sizeof(struct at_ledger_row), 0, 8, "the end of a row");
    end = sizeof(struct at_ledger_row) * AT_STAGE_COUNT;
    for (int f = 0; (field = at_ledger_total_field(f)); f++)
        assert_no_gap_before(&end, field);
    assert_no_gap(&end, offsetof(struct at_ledger, first_laundered), sizeof(struct at_place), 8, "first_laundered");
    assert_no_gap(&end, sizeof(struct at_ledger), 0, 8, "the end of a ledger");
}

static void test_extremes(void **state) {
    (void)state;
    struct at_result a, b;
    at_sample_result(&a, 1);
    a.ulp_max = UINT64_MAX;
    a.ulp_p50 = (uint64_t)INT64_MAX;
    a.total = INT64_MAX;
    a.wrong = INT64_MIN;
    a.err_max = 0x1.fffffffffffffp1023;
    a.err_rms = 0x1p-1074;
    a.rms = -0.0;
    a.worst_got = -INFINITY;
    a.worst_want = 0.1;
    char *line = json_of(&a);
    assert_non_null(strstr(line, "\"ulp_max\":\"18446744073709551615\""));
    assert_non_null(strstr(line, "\"worst_got\":\"-Infinity\""));
    assert_non_null(strstr(line, "\"worst_model\":\"NaN\""));
    assert_null(strchr(line, '\n'));
    at_assert_ok(at_result_from_json(line, "here", &b));
    assert_true(b.ulp_max == UINT64_MAX && b.ulp_p50 == (uint64_t)INT64_MAX);
    assert_true(b.total == INT64_MAX && b.wrong == INT64_MIN);
    at_assert_same(b.err_max, 0x1.fffffffffffffp1023);
    at_assert_same(b.err_rms, 0x1p-1074);
    at_assert_same(b.rms, -0.0);
    at_assert_same(b.worst_got, -INFINITY);
    at_assert_same(b.worst_want, 0.1);
    free(line);
}

/* Text that no JSON can hold is replaced byte for byte, also when a character was cut in two. */
static void test_bad_utf8(void **state) {
    (void)state;
    struct at_result a, b;
    at_sample_result(&a, 2);
    snprintf(a.cause, sizeof a.cause,
             "cut \xc3 lone \x80 long \xf0\x9f\x98\x80 over \xc0\xaf sur \xed\xa0\x80 end\xe2\x82");
    char *line = json_of(&a);
    at_assert_ok(at_result_from_json(line, "here", &b));
    assert_string_equal(b.cause, "cut ? lone ? long \xf0\x9f\x98\x80 over ?? sur ??? end??");
    free(line);
}

/* One key of a good line replaced. */
static char *with(const char *line, const char *from, const char *to) {
    const char *at = strstr(line, from);
    assert_non_null(at);
    size_t size = strlen(line) + strlen(to) + 1;
    char *out = malloc(size);
    assert_non_null(out);
    snprintf(out, size, "%.*s%s%s", (int)(at - line), line, to, at + strlen(from));
    return out;
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } bad[] = {
        { "\"compared\":2048", "\"compared\":\"2048\"", "\"compared\"" },
        { "\"compared\":2048", "\"compared\":2048.5", "an integer" },
        { "\"compared\":2048,", "", "missing" },
        { "\"state\":\"PASS\"", "\"state\":\"GOOD\"", "name of a state" },
        { "\"state\":\"PASS\"", "\"state\":0", "name of a state" },
        { "\"within\":true", "\"within\":1", "true or false" },
        { "\"tensor\":\"out\"", "\"tensor\":\"a name that is longer than any tensor has\"", "at most 31 bytes" },
        { "\"ulp_p99\":2", "\"ulp_p99\":-2", "0 to 2^64-1" },
        { "\"ulp_p99\":2", "\"ulp_p99\":\"99999999999999999999\"", "0 to 2^64-1" },
        { "\"worst_rank\":3", "\"worst_rank\":5", "worst_rank is 5" },
        { "\"worst_rank\":3", "\"worst_rank\":4294967296", "32-bit" },
        { "\"n_decoys\":3", "\"n_decoys\":33", "n_decoys is 33" },
        { "\"worst_at\":[3,4,5,-1]", "\"worst_at\":[3,4,5]", "array of 4" },
        { "\"rms\":-0.0", "\"rms\":\"nan\"", "a number" },
        { "\"has_ledger\":true", "\"has_ledger\":false", "null" },
        { "\"inf_made\":7", "\"inf_made\":null", "ledger.inf_made" },
        { "\"case_id\"", "\"role\":1,\"case_id\"", "duplicate" },
        { "\"state\":\"PASS\"", "\"state\":\"PASS\"}", "byte" },
    };
    struct at_result a, b;
    at_sample_result(&a, 0);
    char *line = json_of(&a);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *broken = with(line, bad[i].from, bad[i].to);
        at_assert_fails(at_result_from_json(broken, "run.jsonl:7", &b), AT_USAGE, bad[i].says);
        at_assert_true(strstr(at_error_message(), "run.jsonl:7"), "no place in \"%s\"", at_error_message());
        free(broken);
    }
    char *more = with(line, "\"case_id\"", "\"a_later_key\":[1],\"case_id\"");
    at_assert_ok(at_result_from_json(more, "here", &b));
    free(more);
    for (size_t n = 0; n < strlen(line); n += 97) { /* every torn line is refused */
        char *torn = strndup(line, n);
        at_assert_fails(at_result_from_json(torn, "here", &b), AT_USAGE, "here");
        free(torn);
    }
    at_assert_fails(at_result_from_json("[1]", "here", &b), AT_USAGE, "an object");
    free(line);
}

/* Every state by name and back; which of them fail a run. */
static void test_states(void **state) {
    (void)state;
    enum at_state s;
    for (int i = 0; i < AT_STATE_COUNT; i++) {
        at_assert_ok(at_state_parse(at_state_name((enum at_state)i), &s));
        assert_int_equal(s, i);
        assert_true(strlen(at_state_meaning((enum at_state)i)) > 0);
    }
    at_assert_fails(at_state_parse("pass", &s), AT_USAGE, "pass");
    assert_string_equal(at_state_name((enum at_state)99), "UNKNOWN");
    assert_string_equal(at_state_meaning((enum at_state)99), "not a state of attest");
    static const char *const always = "00111100111001", *const lax = "00111111111001", *const strict = "01111111111001";
    for (int i = 0; i < AT_STATE_COUNT; i++) {
        const char *name = at_state_name((enum at_state)i);
        assert_int_equal(at_state_fails((enum at_state)i, "", 0), lax[i] - '0');
        assert_int_equal(at_state_fails((enum at_state)i, "", 1), strict[i] - '0');
        assert_int_equal(at_state_fails((enum at_state)i, name, 0), always[i] - '0');
    }
    for (int i = 0; i < AT_STATE_COUNT; i++) { /* the classes say the same of them */
        const enum at_state_class class = at_state_class((enum at_state)i);
        assert_int_equal(class == AT_CLASS_GOOD || class == AT_CLASS_DECLINED, strict[i] == '0');
        assert_int_equal(class == AT_CLASS_WRONG || class == AT_CLASS_BROKEN, always[i] == '1');
    }
    assert_int_equal(at_state_class(AT_STATE_HUNG), AT_CLASS_BROKEN);
    assert_int_equal(at_state_class(AT_STATE_SKIPPED), AT_CLASS_DECLINED);
    assert_int_equal(at_state_class((enum at_state)99), AT_CLASS_BROKEN);
    assert_true(at_state_fails((enum at_state)99, "", 0));
    assert_true(at_state_fails(AT_STATE_OVERFLOWED, "LAUNDERED", 0));
    assert_false(at_state_fails(AT_STATE_LAUNDERED, "LAUNDERED,OVERFLOWED", 0));
    assert_false(at_state_fails(AT_STATE_OVERFLOWED, "LAUNDERED,OVERFLOWED", 0));
    assert_true(at_state_fails(AT_STATE_OVERFLOWED, "OVERFLOWEDX,XOVERFLOWED", 0));
}

/* A cause that is too long keeps how it begins, and how it ends. */
static void test_cause(void **state) {
    (void)state;
    struct at_result r;
    char text[2000];
    at_result_set_cause(&r, "short");
    assert_string_equal(r.cause, "short");
    for (size_t n = sizeof r.cause - 20; n < sizeof text; n += 7) {
        memset(text, '\xc3', n); /* pairs of bytes, which a cut may part */
        for (size_t i = 1; i < n; i += 2)
            text[i] = '\xa9';
        static const char begins[14] = "runner x ended";
        memcpy(text, begins, sizeof begins);
        snprintf(text + n - 14, 14, "ValueError: 7");
        at_result_set_cause(&r, text);
        assert_true(strlen(r.cause) < sizeof r.cause);
        assert_int_equal(strncmp(r.cause, "runner x ended", 14), 0);
        assert_non_null(strstr(r.cause, "alueError: 7"));
        assert_int_equal(strcmp(r.cause + strlen(r.cause) - 12, "ValueError: 7" + 1), 0);
        char clean[sizeof r.cause];
        memcpy(clean, r.cause, sizeof clean);
        at_text_clean(clean);
        assert_string_equal(clean, r.cause);
    }
}

/* The exit code of a run, a part of one, and one that a signal has cut short. */
static void test_exit_codes(void **state) {
    (void)state;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 4)); /* two jobs: PASS VACUOUS, WRONG DIRTY */
    for (int i = 0; i < 4; i++)
        record.results[i].state = i < 2 ? AT_STATE_PASS : AT_STATE_UNSUPPORTED;
    assert_int_equal(at_run_record_jobs(&record), 2);
    assert_int_equal(at_run_record_exit_code(&record, 0), 0);
    assert_int_equal(at_run_record_exit_code(&record, 1), 1); /* the second variant was never judged */
    int64_t at = 0;
    const struct at_result *unjudged;
    at_assert_ok(at_run_record_unjudged(&record, &at, &unjudged));
    assert_ptr_equal(unjudged, &record.results[2]);
    at_assert_ok(at_run_record_unjudged(&record, &at, &unjudged));
    assert_null(unjudged);
    record.is_part = 1;
    assert_int_equal(at_run_record_exit_code(&record, 1), 0);
    record.is_part = 0;
    snprintf(record.results[2].variant, sizeof record.results[2].variant, "%s", record.results[0].variant);
    snprintf(record.results[3].variant, sizeof record.results[3].variant, "%s", record.results[0].variant);
    assert_int_equal(at_run_record_exit_code(&record, 1), 0); /* judged on another case */
    for (int i = 0; i < 4; i++)                               /* and on a later one */
        record.results[i].state = i < 2 ? AT_STATE_UNSUPPORTED : AT_STATE_PASS;
    assert_int_equal(at_run_record_exit_code(&record, 1), 0);
    for (int i = 0; i < 4; i++)
        record.results[i].state = i < 2 ? AT_STATE_PASS : AT_STATE_UNSUPPORTED;
    snprintf(record.results[3].family, sizeof record.results[3].family, "another");
    assert_int_equal(at_run_record_exit_code(&record, 1), 1);
    record.results[3].state = AT_STATE_WRONG;
    assert_int_equal(at_run_record_exit_code(&record, 0), 1);
    record.signal = 2;
    assert_int_equal(at_run_record_exit_code(&record, 0), 130);
    record.signal = 0;
    for (int i = 0; i < 4; i++)
        record.results[i].state = AT_STATE_SKIPPED;
    assert_int_equal(at_run_record_exit_code(&record, 1), 4);
    at_run_record_release(&record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_tables_cover_the_structs),
        cmocka_unit_test(test_extremes),   cmocka_unit_test(test_bad_utf8),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_cause),
        cmocka_unit_test(test_exit_codes), cmocka_unit_test(test_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
