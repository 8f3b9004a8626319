/* Reports: what they say, that they fit, that no text can break their format.
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/at_test.h"
#include "tests/support/sample_record.h"
#include "verify/report/report_summary.h"
#include "verify/report/report_text.h"
#include "verify/report/reports.h"

enum { AS_TABLE, AS_BRIEF, AS_GITHUB };

static char *print(const struct at_run_record *record, int kind, int strict, int colour) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    if (kind == AS_TABLE)
        at_report_table(record, strict, colour, out);
    else if (kind == AS_BRIEF)
        at_report_table_brief(record, strict, colour, out);
    else
        at_assert_ok(at_report_github(record, strict, out));
    assert_int_equal(fclose(out), 0);
    return text;
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

static void assert_says(const char *text, const char *part) {
    at_assert_true(strstr(text, part), "no \"%s\" in:\n%s", part, text);
}

/* No line but the repro lines is wider than 120, none has a control character. */
static void assert_fits(const char *text) {
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = strndup(text, n);
        assert_non_null(line);
        if (strncmp(line, "    repro ", 10) != 0)
            at_assert_true(at_text_width(line) <= 120, "%d columns: %s", at_text_width(line), line);
        for (const char *c = line; *c; c++)
            at_assert_true((unsigned char)*c >= 0x20 && *c != 0x7f, "control character %d in: %s", *c, line);
        free(line);
        text += n + (text[n] == '\n');
    }
}

static void test_table(void **state) {
    (void)state;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 28));
    char *text = print(&record, AS_TABLE, 0, 0);
    assert_fits(text);
    assert_says(
        text,
        "asynct_decode on cpu: every case asynct_decode b=2 h=8 hk=4 sq=1 d=128 page=16 dtype=bf16 data=normal\n");
    assert_says(text, "\nPASS         00_blas_f32       sk=100/17/256 seed=0 out    3.3e-01 4.0e-03  0.25     2");
    assert_says(text, "\n    repro attest replay 'asynct_decode/00_blas_p_bf16 asynct_decode b=2");
    assert_says(text, "got 0.5, want 0.25, limit 0.0012; 9 of 2048 wrong\n");
    assert_says(text, "    cause cause of \xc3\xbc \"2\" & <more>?tab ?[31m\n");
    assert_says(text, "\n28 results: 2 PASS, 2 VACUOUS, 2 WRONG, 2 DIRTY, ");
    assert_says(text, "\ncompared 49,152 of 49,152 elements\n");
    assert_says(text, " passed: last_key\n");
    assert_says(text, "\nexit 1: 20 of 28 results fail the run\n");
    assert_int_equal(count(text, "\n    repro "), 20);
    free(text);
    text = print(&record, AS_TABLE, 1, 1);
    assert_says(text, "\x1b[32mPASS        \x1b[0m 00_blas_f32");
    assert_says(text, "\x1b[31mVACUOUS     \x1b[0m");
    assert_says(text, "\nexit 1: 22 of 28 results fail the run\n");
    free(text);
    text = print(&record, AS_BRIEF, 0, 0);
    assert_fits(text);
    assert_null(strstr(text, "\nPASS "));
    assert_null(strstr(text, "\nSKIPPED "));
    assert_says(text, "\nWRONG ");
    assert_says(text, "\n    2 PASS, 2 VACUOUS, ");
    free(text);
    at_run_record_release(&record);
}

/* The cells of one row, by hand. */
static void test_cells(void **state) {
    (void)state;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 1));
    struct at_result *r = &record.results[0];
    r->ledger.stage[AT_STAGE_qk_acc] = (struct at_ledger_row){ 0 };
    r->ledger.stage[AT_STAGE_score].max_abs = 65504.0 / 8;
    r->ledger.stage[AT_STAGE_p].max_abs = 1e30; /* after the clamp: not looked at */
    r->ulp_p99 = UINT64_MAX;
    r->ratio_max = 0.0123;
    r->p_zero_share = 0.7;
    r->model_compared = r->model_equal = 2048;
    snprintf(r->decoy_fate, sizeof r->decoy_fate, "rir");
    char *text = print(&record, AS_TABLE, 0, 0);
    assert_says(text,
                "\nPASS  00_blas_f32 (as above) out    3.3e-01 4.0e-03 0.012   NaN 70.0  3.0 MODEL-WITHIN    2/2\n");
    assert_says(text, "\nexit 0: no result fails the run\n");
    free(text);
    r->state = AT_STATE_CRASHED;
    r->compared = 0;
    text = print(&record, AS_TABLE, 0, 0);
    assert_says(text, "\nCRASHED 00_blas_f32 (as above) out        -     -     -     -    -    - -          -\n");
    assert_says(text, "\ncompared 0 of 2,048 elements; 1 results are not complete\n");
    assert_null(strstr(text, "    worst"));
    free(text);
    r->state = AT_STATE_UNSUPPORTED;
    snprintf(r->cause, sizeof r->cause, "not on a Friday");
    text = print(&record, AS_TABLE, 1, 0);
    assert_says(text, "\nUNSUPPORTED 00_blas_f32 (as above) out    not on a Friday\n");
    assert_says(text, "\nexit 4: nothing was judged\n");
    free(text);
    at_run_record_release(&record);
}

/* NaNs have no sign, wherever a number is shown. */
static void test_nan(void **state) {
    (void)state;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 3));
    struct at_result *r = &record.results[2]; /* WRONG */
    r->worst_got = copysign(NAN, -1);
    r->worst_want = copysign(NAN, -1);
    char *text = print(&record, AS_TABLE, 0, 0);
    assert_says(text, "got nan, want nan, limit 0.0012");
    free(text);
    FILE *out = tmpfile();
    assert_non_null(out);
    at_assert_ok(at_report_junit(&record, 0, out));
    rewind(out);
    text = NULL;
    size_t size = 0;
    assert_true(getdelim(&text, &size, 0, out) > 0);
    assert_says(text, "got nan, want nan");
    assert_null(strstr(text, "-nan"));
    free(text);
    fclose(out);
    at_run_record_release(&record);
}

/* Cases that do not fit beside the numbers stand above their rows, every word of them, and once. */
static void test_long_cases(void **state) {
    (void)state;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 12));
    for (int i = 0; i < 12; i++)
        snprintf(record.results[i].case_id + strlen(record.results[i].case_id), 128,
                 " hot=last_key,hidden_key require=previous_row,last_key_dropped,hidden_key_added%d", i / 6);
    char *text = print(&record, AS_TABLE, 0, 0);
    assert_fits(text);
    assert_int_equal(count(text, "\ncase "), 2);
    assert_says(text, "\ncase sk=100/17/256 seed=0 require=previous_row,last_key_dropped,hidden_key_added0\n");
    assert_says(text, "\nSTATE        VARIANT           TENSOR");
    assert_null(strstr(text, ".."));
    free(text);
    at_run_record_release(&record);
}

/* A line for each of three variants, none for two. */
static void test_by_variant(void **state) {
    (void)state;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 28));
    char *text = print(&record, AS_TABLE, 0, 0);
    assert_says(text,
                "\nBY VARIANT                       JUDGED    OK FAILING VACUOUS DECLINED WORST RATIO RESOLVES\n");
    int64_t judged[3] = { 0 }, declined[3] = { 0 };
    for (int i = 0; i < 28; i++) {
        const int is_declined = at_state_class(record.results[i].state) == AT_CLASS_DECLINED;
        judged[i / 2 % 3] += !is_declined;
        declined[i / 2 % 3] += is_declined;
    }
    for (int v = 0; v < 3; v++) {
        char name[192], *line, want[32];
        snprintf(name, sizeof name, "\nasynct_decode/%s ", record.results[2 * v].variant);
        line = strstr(text, name);
        assert_non_null(line);
        long long n[5];
        assert_int_equal(
            sscanf(line + strlen(name), "%lld %lld %lld %lld %lld %31s", &n[0], &n[1], &n[2], &n[3], &n[4], want), 6);
        assert_int_equal(n[0], judged[v]);
        assert_int_equal(n[1] + n[2] + n[3], n[0]);
        assert_int_equal(n[4], declined[v]);
        assert_true(strtod(want, NULL) >= 0.25);
    }
    free(text);
    record.n = 4;
    text = print(&record, AS_TABLE, 0, 0);
    assert_null(strstr(text, "BY VARIANT"));
    free(text);
    record.n = 28;
    record.signal = 2;
    record.planned = 20;
    text = print(&record, AS_TABLE, 1, 0);
    assert_says(text, "\nexit 130: interrupted: 14 of 20 jobs judged, 22 results fail the run\n");
    free(text);
    at_run_record_release(&record);
}

static void test_worst_names(void **state) {
    (void)state;
    struct at_result r;
    char text[256];
    at_sample_result(&r, 0);
    snprintf(r.tensor, sizeof r.tensor, "o");
    at_result_worst(&r, text, sizeof text);
    assert_string_equal(text, "o[token 3, head 4, channel 5]");
    snprintf(r.op, sizeof r.op, "no_such_operator");
    at_result_worst(&r, text, sizeof text);
    assert_string_equal(text, "o[index 3, index 4, index 5]");
    r.worst_rank = 0;
    at_result_worst(&r, text, sizeof text);
    assert_string_equal(text, "o[]");
}

static void test_empty_and_many(void **state) {
    (void)state;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 0));
    char *text = print(&record, AS_TABLE, 0, 0);
    assert_string_equal(text, "0 results\ncompared 0 of 0 elements\nexit 4: nothing was judged\n");
    free(text);
    text = print(&record, AS_GITHUB, 0, 0);
    assert_string_equal(text, "");
    free(text);
    at_run_record_release(&record);
    assert_true(at_sample_record(&record, 3000));
    text = print(&record, AS_TABLE, 0, 0);
    assert_fits(text);
    assert_int_equal(count(text, "\nPASS "), 3000 / AT_STATE_COUNT + 1);
    assert_says(text, "  and 195 more\n"); /* 215 VACUOUS, 20 are listed */
    free(text);
    at_run_record_release(&record);
}

/* Names as long as they can be, of characters of every length. */
static void test_long_names(void **state) {
    (void)state;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 8));
    for (int i = 0; i < 8; i++) {
        struct at_result *r = &record.results[i];
        for (size_t k = 14; k + 4 < sizeof r->case_id - 1; k += 4)
            memcpy(r->case_id + k, k % 28 == 14 ? "\xf0\x9f\x98\x80" : k % 12 == 2 ? " a=b" : "\xe6\xbc\xa2 ", 4);
        r->case_id[sizeof r->case_id - 10] = 0;
        at_text_clean(r->case_id);
        memset(r->variant, 'v', sizeof r->variant - 1);
        memset(r->tensor, 't', sizeof r->tensor - 1);
        memset(r->family, 'f', sizeof r->family - 1);
        memset(r->cause, 'c', sizeof r->cause - 1);
        for (size_t k = 50; k < sizeof r->cause; k += 50)
            r->cause[k] = ' ';
        r->cause[sizeof r->cause - 1] = 0;
    }
    char *text = print(&record, AS_TABLE, 1, 0);
    assert_fits(text);
    free(text);
    at_run_record_release(&record);
}

static void test_text(void **state) {
    (void)state;
    char text[64];
    snprintf(text, sizeof text,
             "a\xc3\xa9\xff\xe2\x82"
             "b");
    at_text_clean(text);
    assert_string_equal(text, "a\xc3\xa9?"
                              "??b");
    assert_int_equal(at_text_width(text), 6);
    struct at_result r;
    at_sample_result(&r, 0);
    int rejected, counted;
    at_result_decoys(&r, &rejected, &counted);
    assert_int_equal(rejected, 1);
    assert_int_equal(counted, 2);
    at_result_decoys_of(&r, AT_DECOY_PASSED, text, sizeof text);
    assert_string_equal(text, "last_key");
    at_result_decoys_of(&r, AT_DECOY_INERT, text, sizeof text);
    assert_string_equal(text, "sign");
    snprintf(r.decoy_fate, sizeof r.decoy_fate, "ppp");
    at_result_decoys_of(&r, AT_DECOY_PASSED, text, sizeof text);
    assert_string_equal(text, "zeros, sign, last_key");
    char tiny[8];
    at_result_decoys_of(&r, AT_DECOY_PASSED, tiny, sizeof tiny);
    assert_string_equal(tiny, "zeros");
}

static void test_github(void **state) {
    (void)state;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 130));
    snprintf(record.results[2].cause, sizeof record.results[2].cause, "100%% wrong\nsecond line\r::error::no \x1b[0m");
    snprintf(record.results[2].path, sizeof record.results[2].path, "odd,path:%%.c");
    char *text = print(&record, AS_GITHUB, 0, 0);
    assert_int_equal(count(text, "::error file="), 9);
    assert_int_equal(count(text, "\n::error title="), 1);
    assert_says(text, "::error title=attest::83 more results like these; the table has all of them\n");
    assert_int_equal(count(text, "::warning "), 10);
    assert_says(text, "::error file=odd%2Cpath%3A%25.c,title=WRONG 00_blas_p_bf16 [out]::asynct_decode b=2");
    assert_says(text, ": 100%25 wrong%0Asecond line%0D::error::no \\x1b[0m%0Aattest replay '");
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        at_assert_true(strncmp(line, "::error ", 8) == 0 || strncmp(line, "::warning ", 10) == 0, "line: %s", line);
    free(text);
    text = print(&record, AS_GITHUB, 1, 0);
    assert_int_equal(count(text, "::warning "), 0);
    free(text);
    at_run_record_release(&record);
}

static char *load(const char *path) {
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    char *text = NULL;
    size_t size = 0;
    assert_true(getdelim(&text, &size, 0, in) >= 0);
    fclose(in);
    return text;
}

/* 0 when the command succeeds; -1 when its program is not installed. */
static int shell(const char *command) {
    int status = system(command);
    return WIFEXITED(status) ? (WEXITSTATUS(status) == 127 ? -1 : WEXITSTATUS(status)) : 1;
}

static void test_junit(void **state) {
    (void)state;
    static const int sizes[] = { 0, 1, 130 };
    char path[64] = "/tmp/at_junit_XXXXXX", command[256];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct at_run_record record;
        assert_true(at_sample_record(&record, sizes[i]));
        if (sizes[i] > 3)
            snprintf(record.results[3].cause, sizeof record.results[3].cause, "]]> \x02 \x7f \xef\xbf\xbf &amp; 'q'");
        at_assert_ok(at_report_write(AT_REPORT_junit, &record, 0, path));
        char *text = load(path);
        char want[160];
        int states[AT_STATE_COUNT] = { 0 };
        for (int k = 0; k < sizes[i]; k++)
            states[record.results[k].state]++;
        int broken = states[AT_STATE_CRASHED] + states[AT_STATE_HUNG] + states[AT_STATE_ERROR];
        int skipped = states[AT_STATE_UNSUPPORTED] + states[AT_STATE_SKIPPED];
        int failed = sizes[i] - broken - skipped - states[AT_STATE_PASS] - states[AT_STATE_VACUOUS];
        snprintf(want, sizeof want,
                 "<testsuites name=\"attest\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\"", sizes[i],
                 failed, broken, skipped);
        assert_says(text, want);
        assert_int_equal(count(text, "<testcase "), sizes[i]);
        assert_int_equal(count(text, "<failure "), failed);
        assert_int_equal(count(text, "<error "), broken);
        if (sizes[i] > 3)
            assert_says(text, "message=\"]]&gt; \\x02 \\x7f ? &amp;amp; 'q'\"");
        free(text);
        snprintf(command, sizeof command, "xmllint --noout --schema tests/golden/junit.xsd %s 2>/dev/null", path);
        int valid = shell(command);
        at_assert_true(valid <= 0, "xmllint says %d of %d results", valid, sizes[i]);
        if (valid < 0)
            print_message("xmllint is not installed: the schema was not tried\n");
        at_run_record_release(&record);
    }
    unlink(path);
}

static void test_jsonl(void **state) {
    (void)state;
    struct at_run_record record;
    struct at_result back;
    char path[64] = "/tmp/at_jsonl_XXXXXX";
    int fd = mkstemp(path), n = 0;
    assert_true(fd >= 0 && at_sample_record(&record, 26));
    close(fd);
    at_assert_ok(at_report_write(AT_REPORT_json, &record, 0, path));
    char *text = load(path), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), n++) {
        at_assert_ok(at_result_from_json(line, path, &back));
        assert_string_equal(back.repro, record.results[n].repro);
        at_assert_same(back.seconds, record.results[n].seconds);
    }
    assert_int_equal(n, 26);
    free(text);
    unlink(path);
    at_assert_fails(at_report_write(AT_REPORT_json, &record, 0, "/dev/full"), AT_IO, "/dev/full");
    at_assert_fails(at_report_write(AT_REPORT_junit, &record, 0, "/dev/full"), AT_IO, "No space left");
    at_assert_fails(at_report_write(AT_REPORT_junit, &record, 0, "/nowhere/x.xml"), AT_IO, "/nowhere/x.xml");
    at_run_record_release(&record);
}

/* Two outputs of one variant, each on one case: the first with a loose claim, or the second, and what it would have shown. */
static void test_blind_claims(void **state) {
    (void)state;
    static const struct {
        double looseness[2], resolution[2];
        int code;
    } of[] = { { { 40, 1 }, { 0.01, 0.05 }, 0 }, /* the blind one is tight, the loose one sees */
               { { 1, 40 }, { 0.01, 0.05 }, 1 },
               { { 40, 40 }, { 0.01, 0.01 }, 0 },
               { { 40, 40 }, { NAN, NAN }, 0 } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct at_run_record record;
        assert_true(at_sample_record(&record, 2));
        for (int o = 0; o < 2; o++) {
            struct at_result *r = &record.results[o];
            r->state = AT_STATE_PASS;
            snprintf(r->variant, sizeof r->variant, "50_mine");
            snprintf(r->family, sizeof r->family, "asynct_decode");
            r->tensor_index = o;
            r->compared = 10;
            r->ratio_max = 0.5;
            r->looseness = of[i].looseness[o];
            r->resolution = of[i].resolution[o];
        }
        assert_int_equal(at_report_exit_code(&record, 1), of[i].code);
        assert_int_equal(at_report_exit_code(&record, 0), 0);
        record.is_part = 1;
        assert_int_equal(at_report_exit_code(&record, 1), 0);
        at_run_record_release(&record);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),          cmocka_unit_test(test_cells),
        cmocka_unit_test(test_worst_names),    cmocka_unit_test(test_nan),
        cmocka_unit_test(test_long_cases),     cmocka_unit_test(test_by_variant),
        cmocka_unit_test(test_empty_and_many), cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_text),           cmocka_unit_test(test_github),
        cmocka_unit_test(test_blind_claims),   cmocka_unit_test(test_junit),
        cmocka_unit_test(test_jsonl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
