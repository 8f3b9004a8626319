/* Loose claims, tallied by what was declared for each problem: what of a variant's cases speaks for which of its claims.
 * SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "tests/at_test.h"
#include "tests/support/sample_record.h"
#include "verify/archive/archive_rows.h"
#include "verify/report/report_summary.h"
#include "verify/report/report_variants.h"
#include "verify/report/reports.h"

#define TIGHT "free_order=1 qk_unit=f64 pv_unit=f64"
#define LOOSE "free_order=1 p=f16 pv_unit=f16_fma"
#define OTHER "free_order=1 p=bf16"

enum { SEEN, BLIND, LOOSE_AND_SEEN, LOOSE_AND_BLIND };

struct row {
    const char *variant, *numerics;
    int output, how;
};

/* One PASS a row, each on a case of its own. */
static void fill(struct at_run_record *record, const struct row *rows, int n) {
    assert_true(at_sample_record(record, n));
    for (int i = 0; i < n; i++) {
        struct at_result *r = &record->results[i];
        r->state = AT_STATE_PASS;
        r->cause[0] = r->required_inert[0] = 0;
        snprintf(r->variant, sizeof r->variant, "%s", rows[i].variant);
        snprintf(r->path, sizeof r->path, "%s.py", rows[i].variant);
        snprintf(r->numerics, sizeof r->numerics, "%s", rows[i].numerics);
        snprintf(r->case_id, sizeof r->case_id, "asynct_decode sk=%d", i);
        r->plan_index = i;
        r->tensor_index = rows[i].output;
        r->ratio_max = 0.5;
        r->looseness = rows[i].how >= LOOSE_AND_SEEN ? 40 : 1;
        r->resolution = rows[i].how & 1 ? 0.05 + 0.01 * i : 0.01;
    }
}

static char *table_of(const struct at_run_record *record, int strict) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    at_report_table(record, strict, 0, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* As one line: where a table breaks it is of no account here. */
static char *unwrapped(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (strncmp(from, "\n    ", 5) == 0) {
            *to++ = ' ';
            from += 4;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
    return text;
}

static void assert_says(const char *text, const char *part) {
    at_assert_true(strstr(text, part), "no \"%s\" in:\n%s", part, text);
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

static void test_whose_cases_count(void **state) {
    (void)state;
    enum { MAX_ROWS = 4 };
    static const struct {
        const char *what;
        struct row rows[MAX_ROWS];
        int n, blind;
    } of[] = {
        { "a sharp case of a tight claim says nothing of a loose one",
          { { "1", TIGHT, 0, SEEN }, { "1", LOOSE, 0, LOOSE_AND_BLIND } },
          2,
          1 },
        { "nor does one of another loose claim",
          { { "1", OTHER, 0, LOOSE_AND_SEEN }, { "1", LOOSE, 0, LOOSE_AND_BLIND } },
          2,
          1 },
        { "one of the same claim does, whichever comes first",
          { { "1", TIGHT, 0, SEEN }, { "1", LOOSE, 0, LOOSE_AND_BLIND }, { "1", LOOSE, 0, LOOSE_AND_SEEN } },
          3,
          0 },
        { "also where its limits there are as tight as any",
          { { "1", LOOSE, 0, SEEN }, { "1", LOOSE, 0, LOOSE_AND_BLIND } },
          2,
          0 },
        { "of another variant with the same words it does not",
          { { "1", LOOSE, 0, LOOSE_AND_SEEN }, { "2", LOOSE, 0, LOOSE_AND_BLIND } },
          2,
          1 },
        { "nor of another output", { { "1", LOOSE, 0, LOOSE_AND_SEEN }, { "1", LOOSE, 1, LOOSE_AND_BLIND } }, 2, 1 },
        { "a claim for each problem has each tested by its own case",
          { { "1", LOOSE, 0, LOOSE_AND_BLIND },
            { "1", LOOSE " qk_lanes=2", 0, LOOSE_AND_BLIND },
            { "1", LOOSE " qk_lanes=4", 0, LOOSE_AND_SEEN },
            { "1", LOOSE " qk_lanes=8", 0, LOOSE_AND_BLIND } },
          4,
          3 },
        { "a tight claim may be blind", { { "1", TIGHT, 0, BLIND }, { "1", LOOSE, 0, LOOSE_AND_SEEN } }, 2, 0 },
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct at_run_record record;
        struct at_tallies tallies;
        fill(&record, of[i].rows, of[i].n);
        at_assert_ok(at_tallies_open(&record, 1, &tallies));
        at_assert_true(at_tallies_blind(&tallies) == of[i].blind, "%s: %d, wanted %d", of[i].what,
                       (int)at_tallies_blind(&tallies), of[i].blind);
        assert_int_equal(at_report_exit_code(&record, 1), of[i].blind > 0);
        assert_int_equal(at_report_exit_code(&record, 0), 0);
        at_tallies_release(&tallies);
        at_run_record_release(&record);
    }
}

/* More claims than the table begins with: none is lost, none taken for another. */
static void test_many(void **state) {
    (void)state;
    enum { MANY = 700 };
    struct at_tallies tallies = { 0 };
    struct at_result r;
    at_sample_result(&r, 0);
    r.looseness = 40;
    r.resolution = 0.05;
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < MANY; i++) {
            snprintf(r.numerics, sizeof r.numerics, "free_order=1 split=%d", 16 * i);
            at_assert_ok(at_tallies_add(&tallies, &r, 1));
        }
    assert_int_equal(tallies.n, 1);
    assert_int_equal(tallies.claims.n, MANY);
    assert_int_equal(at_tallies_blind(&tallies), MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(tallies.claims.list[i].judged, 2);
    at_tallies_release(&tallies);
}

static const struct row mixed[] = {
    { "1", TIGHT, 0, SEEN },           { "1", LOOSE, 0, LOOSE_AND_BLIND }, { "1", LOOSE, 0, LOOSE_AND_BLIND },
    { "1", OTHER, 0, LOOSE_AND_SEEN }, { "2", LOOSE, 0, LOOSE_AND_BLIND }, { "3", TIGHT, 0, BLIND }
};
enum { MIXED = sizeof mixed / sizeof *mixed };

static void test_text(void **state) {
    (void)state;
    struct at_run_record record;
    fill(&record, mixed, MIXED);
    char *text = unwrapped(table_of(&record, 1));
    assert_says(
        text,
        "loose claim: asynct_decode/1, 2 of 4 results, declared free_order=1 p=f16 pv_unit=f16_fma: limits up to 40 "
        "times those of f32 arithmetic in any order, in 2 results that PASS: that proves so much less; on no case of "
        "these would an output times 1.06 have been seen, which --strict does not let pass");
    assert_says(text, "loose claim: asynct_decode/1, 1 of 4 results, declared free_order=1 p=bf16: limits");
    assert_says(text, "loose claim: asynct_decode/2: limits up to 40 times"); /* its only one */
    assert_says(text, "that proves so much less; on no case would an output times 1.09 have been seen, which");
    assert_says(text, "exit 1: 0 of 6 results fail the run, 2 claims are so loose that nothing was tested\n");
    /* A row a variant; what it resolves is no better than what the worst of its loose claims does. */
    assert_int_equal(count(text, "\nasynct_decode/"), 3);
    assert_says(text, "\nasynct_decode/1       4     4       0       0        0         0.5  6.0e-02\n");
    assert_says(text, "\nasynct_decode/2       1     1       0       0        0         0.5  9.0e-02\n");
    assert_says(text, "\nasynct_decode/3       1     1       0       0        0         0.5  1.0e-01\n");
    free(text);
    at_run_record_release(&record);
}

/* Of one that declares something else on each problem there are not as many lines. */
static void test_many_lines(void **state) {
    (void)state;
    enum { N = 13 };
    struct at_run_record record;
    struct row rows[N];
    char words[N][64];
    for (int i = 0; i < N; i++) {
        snprintf(words[i], sizeof words[i], "free_order=1 split=%d", 16 * i);
        rows[i] = (struct row){ i == N - 1 ? "2" : "1", words[i], 0, i == N - 2 ? LOOSE_AND_SEEN : LOOSE_AND_BLIND };
    }
    fill(&record, rows, N);
    char *text = unwrapped(table_of(&record, 1));
    assert_int_equal(count(text, "loose claim: asynct_decode/1, 1 of 12 results, declared free_order=1"), 10);
    assert_says(text, "\nloose claim: asynct_decode/1: 2 more of its declarations, 1 of which no case tests\n");
    assert_int_equal(count(text, "loose claim: asynct_decode/2: limits"), 1);
    assert_int_equal(count(text, "loose claim: "), 12);
    assert_says(text, "12 claims are so loose that nothing was tested");
    free(text);
    at_run_record_release(&record);
}

/* Of a variant that declines: the numerics of its line in the greeting are no claim of a result. */
static void test_declined(void **state) {
    (void)state;
    static const struct row rows[] = { { "1", "free_order=1", 0, BLIND }, { "1", LOOSE, 0, LOOSE_AND_SEEN } };
    struct at_run_record record;
    fill(&record, rows, 2);
    record.results[0].state = AT_STATE_UNSUPPORTED;
    record.results[0].compared = 0;
    char *text = table_of(&record, 1);
    assert_says(text, "loose claim: asynct_decode/1: limits");
    assert_says(text, "exit 0");
    free(text);
    at_run_record_release(&record);
}

static at_status add_to(void *context, int64_t row, const struct at_result *r) {
    (void)row;
    return at_summary_add(context, r);
}

/* A record that was written and read, whole or by the fields that a large one is summed up by, says what it said. */
static void test_archive(void **state) {
    (void)state;
    char path[] = "/tmp/at_claims_XXXXXX";
    struct at_run_record record, back;
    const struct at_run_record whole = { 0 };
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (int n = 1; n <= 2; n++) {
        fill(&record, mixed, n);
        const int code = at_report_exit_code(&record, 1);
        assert_int_equal(code, n == 2);
        at_assert_ok(at_archive_write(&record, path));
        at_run_record_init(&back);
        at_assert_ok(at_archive_read(path, &back));
        assert_int_equal(at_report_exit_code(&back, 1), code);
        struct at_summary *summary = at_summary_create(1);
        at_assert_ok(at_archive_scan(path, at_summary_fields, add_to, summary));
        assert_int_equal(at_summary_exit_code(summary, &whole), code);
        at_summary_destroy(summary);
        at_run_record_release(&back);
        at_run_record_release(&record);
    }
    unlink(path);
}

static char *written(enum at_report report, const struct at_run_record *record, int strict) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    at_assert_ok(report == AT_REPORT_junit ? at_report_junit(record, strict, out)
                                           : at_report_github(record, strict, out));
    assert_int_equal(fclose(out), 0);
    return text;
}

/* Who sees one of these reports alone sees a run fail when it fails. */
static void test_junit_and_github(void **state) {
    (void)state;
    struct at_run_record record;
    fill(&record, mixed, MIXED);
    record.results[5].state = AT_STATE_UNSUPPORTED; /* 3 is never judged */
    snprintf(record.results[5].cause, sizeof record.results[5].cause, "not on a Friday");
    char *text = written(AT_REPORT_junit, &record, 1);
    assert_says(text, "<testsuites name=\"attest\" tests=\"9\" failures=\"3\" errors=\"0\" skipped=\"1\"");
    assert_says(text, "<testsuite name=\"asynct_decode\" tests=\"9\" failures=\"3\" errors=\"0\" skipped=\"1\"");
    assert_int_equal(count(text, "<testcase "), 9);
    assert_int_equal(count(text, "<failure "), 3);
    assert_says(text, "<testcase classname=\"1\" name=\"UNTESTED: free_order=1 p=f16 pv_unit=f16_fma\" file=\"1.py\"");
    assert_says(text, "<failure type=\"UNTESTED\" message=\"loose claim, 2 of 4 results, declared free_order=1 p=f16");
    assert_says(text, "<testcase classname=\"2\" name=\"UNTESTED: free_order=1 p=f16 pv_unit=f16_fma\" file=\"2.py\"");
    assert_says(text, "<testcase classname=\"3\" name=\"UNJUDGED\" file=\"3.py\"");
    assert_says(text, "<failure type=\"UNJUDGED\" message=\"not on a Friday\"/>");
    free(text);
    text = written(AT_REPORT_github, &record, 1);
    assert_int_equal(count(text, "::error file="), 3);
    assert_says(text, "::error file=3.py,title=UNJUDGED 3::not on a Friday\n");
    assert_says(text, "::error file=1.py,title=UNTESTED 1::loose claim, 2 of 4 results, declared free_order=1 p=f16");
    free(text);
    for (int i = 0; i < 3; i++) { /* not asked for; a part, which the rest may test; cut short */
        record.is_part = i == 1;
        record.signal = i == 2 ? 2 : 0;
        text = written(AT_REPORT_junit, &record, i > 0);
        assert_int_equal(count(text, "<failure "), 0);
        free(text);
        text = written(AT_REPORT_github, &record, i > 0);
        assert_int_equal(count(text, "::error "), 0);
        free(text);
    }
    at_run_record_release(&record);
}

/* Beside results that fail they share the annotations that GitHub shows. */
static void test_github_has_ten(void **state) {
    (void)state;
    enum { N = 20 };
    for (int wrong = 0; wrong <= N; wrong += 4) {
        struct at_run_record record;
        struct row rows[N];
        char name[N][8];
        for (int i = 0; i < N; i++) {
            snprintf(name[i], sizeof name[i], "%d", i);
            rows[i] = (struct row){ name[i], LOOSE, 0, LOOSE_AND_BLIND };
        }
        fill(&record, rows, N);
        for (int i = 0; i < wrong; i++)
            record.results[i].state = AT_STATE_WRONG;
        char *text = written(AT_REPORT_github, &record, 1);
        assert_int_equal(count(text, "::error file="), 9);
        assert_int_equal(count(text, "title=WRONG"), wrong > 9 ? 9 : wrong);
        assert_says(text, "::error title=attest::11 more results like these");
        free(text);
        at_run_record_release(&record);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_cases_count),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_declined),
        cmocka_unit_test(test_archive),
        cmocka_unit_test(test_junit_and_github),
        cmocka_unit_test(test_github_has_ten),
        cmocka_unit_test(test_many_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
