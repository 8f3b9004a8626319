/* JUnit XML: a suite per kernel family, a test case per result. tests/golden/junit.xsd describes it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A state that fails the run is a <failure>, or an <error> when the variant gave no result (CRASHED, HUNG,
 * ERROR); UNSUPPORTED and SKIPPED are <skipped>. What fails a strict run beside its results is a test case, too: who
 * reads this file alone must not see a run pass that ended with 1. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "verify/report/report_families.h"
#include "verify/report/report_text.h"
#include "verify/report/report_variants.h"
#include "verify/report/reports.h"

/* XML 1.0 has no control characters but tab, newline and return: they are shown as \xNN. U+FFFE and U+FFFF are
 * no characters either. */
static void put_xml(FILE *out, const char *text) {
    while (*text) {
        unsigned char c = (unsigned char)*text;
        size_t n = at_text_char(text);
        int excluded = n == 3 && c == 0xef && (unsigned char)text[1] == 0xbf && (unsigned char)text[2] >= 0xbe;
        if (c == '&')
            fputs("&amp;", out);
        else if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else if (c < 0x20 || c == 0x7f || n == 0)
            fprintf(out, "\\x%02x", c);
        else if (excluded)
            fputs("?", out);
        else
            fwrite(text, 1, n, out);
        text += n ? n : 1;
    }
}

static void put_attribute(FILE *out, const char *name, const char *text) {
    fprintf(out, " %s=\"", name);
    put_xml(out, text);
    fputc('"', out);
}

enum outcome { GOOD, FAILED, BROKEN, NOT_RUN };

static enum outcome outcome_of(const struct at_result *r, int strict) {
    const enum at_state_class class = at_state_class(r->state);
    if (class == AT_CLASS_DECLINED)
        return NOT_RUN;
    if (!at_state_fails(r->state, r->expect, strict))
        return GOOD;
    return class == AT_CLASS_BROKEN ? BROKEN : FAILED;
}

struct totals {
    int64_t tests, failures, errors, skipped;
    double seconds;
};

/* What at_tallies_untested() has of one family, or with NULL of all: counted, and written where there is an `out`. */
struct untested {
    const char *family;
    FILE *out;
    int64_t n;
};

static at_status put_untested(void *context, const struct at_untested *u) {
    struct untested *these = context;
    char name[sizeof(((struct at_result *)0)->numerics) + 32]; /* of a variant each has its own */
    if (these->family && strcmp(these->family, u->family) != 0)
        return AT_OK;
    these->n++;
    if (!these->out)
        return AT_OK;
    snprintf(name, sizeof name, "%s%s%s", u->what, u->declared[0] ? ": " : "", u->declared);
    fputs("    <testcase", these->out);
    put_attribute(these->out, "classname", u->variant);
    put_attribute(these->out, "name", name);
    put_attribute(these->out, "file", u->path);
    fputs(" time=\"0.000000\">\n      <failure", these->out);
    put_attribute(these->out, "type", u->what);
    put_attribute(these->out, "message", u->text);
    fputs("/>\n    </testcase>\n", these->out);
    return AT_OK;
}

/* family NULL: all. */
static struct totals count(const struct at_run_record *record, const struct at_tallies *tallies,
                           const struct at_family_rows *family, int strict) {
    struct untested untested = { .family = family ? family->name : NULL };
    (void)at_tallies_untested(tallies, put_untested, &untested);
    struct totals t = { .tests = untested.n, .failures = untested.n };
    for (int64_t i = 0; i < (family ? family->n : record->n); i++) {
        const struct at_result *r = at_run_record_at(record, family ? family->rows[i] : i);
        enum outcome outcome = outcome_of(r, strict);
        t.tests++;
        t.failures += outcome == FAILED;
        t.errors += outcome == BROKEN;
        t.skipped += outcome == NOT_RUN;
        if (isfinite(r->seconds))
            t.seconds += r->seconds;
    }
    return t;
}

static void put_totals(FILE *out, const struct totals *t) {
    fprintf(out,
            " tests=\"%" PRId64 "\" failures=\"%" PRId64 "\" errors=\"%" PRId64 "\" skipped=\"%" PRId64
            "\" time=\"%.6f\"",
            t->tests, t->failures, t->errors, t->skipped, t->seconds);
}

static void put_details(FILE *out, const struct at_result *r) {
    char place[256];
    at_result_worst(r, place, sizeof place);
    fprintf(out, "compared %" PRId64 " of %" PRId64 ", wrong %" PRId64 "\n", r->compared, r->total, r->wrong);
    if (r->compared > 0 && r->worst_index >= 0) {
        fputs("worst ", out);
        put_xml(out, place);
        fprintf(out, ": got %.9g, want %.9g, limit %.3g\n", at_text_nan(r->worst_got), at_text_nan(r->worst_want),
                at_text_nan(r->worst_limit));
    }
    put_xml(out, r->repro);
    fputc('\n', out);
}

static void put_outcome(FILE *out, const struct at_result *r, enum outcome outcome) {
    static const char *const tags[] = { [GOOD] = "", [FAILED] = "failure", [BROKEN] = "error", [NOT_RUN] = "skipped" };
    const char *message = r->cause[0] ? r->cause : at_state_meaning(r->state);
    if (outcome == GOOD)
        return;
    fprintf(out, "      <%s", tags[outcome]);
    put_attribute(out, "type", at_state_name(r->state));
    put_attribute(out, "message", message);
    if (outcome == NOT_RUN) {
        fputs("/>\n", out);
        return;
    }
    fputc('>', out);
    put_details(out, r);
    fprintf(out, "</%s>\n", tags[outcome]);
}

static void put_case(FILE *out, const struct at_result *r, int strict) {
    char name[1200];
    enum outcome outcome = outcome_of(r, strict);
    snprintf(name, sizeof name, "%s:%s [%s]", r->role, r->case_id, r->tensor);
    fputs("    <testcase", out);
    put_attribute(out, "classname", r->variant);
    put_attribute(out, "name", name);
    put_attribute(out, "file", r->path);
    fprintf(out, " time=\"%.6f\">\n", isfinite(r->seconds) ? r->seconds : 0.0);
    put_outcome(out, r, outcome);
    if (outcome == GOOD) {
        fprintf(out, "      <system-out>%s, ", at_state_name(r->state));
        put_details(out, r);
        fputs("</system-out>\n", out);
    }
    fputs("    </testcase>\n", out);
}

static void put_suite(FILE *out, const struct at_run_record *record, const struct at_tallies *tallies,
                      const struct at_family_rows *family, int strict) {
    struct untested untested = { .family = family->name, .out = out };
    struct totals t = count(record, tallies, family, strict);
    fputs("  <testsuite", out);
    put_attribute(out, "name", family->name);
    put_totals(out, &t);
    fputs(">\n", out);
    for (int64_t i = 0; i < family->n; i++)
        put_case(out, at_run_record_at(record, family->rows[i]), strict);
    (void)at_tallies_untested(tallies, put_untested, &untested);
    fputs("  </testsuite>\n", out);
}

static void put_suites(const struct at_run_record *record, const struct at_tallies *tallies,
                       const struct at_families *families, int strict, FILE *out) {
    struct totals t = count(record, tallies, NULL, strict);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attest\"", out);
    put_totals(out, &t);
    fputs(">\n", out);
    for (int i = 0; families->list && i < families->n; i++)
        put_suite(out, record, tallies, &families->list[i], strict);
    fputs("</testsuites>\n", out);
}

at_status at_report_junit(const struct at_run_record *record, int strict, FILE *out) {
    struct at_families families;
    struct at_tallies tallies;
    at_status status = at_families_open(record, &families);
    const at_status tallied = at_tallies_open(record, strict, &tallies);
    status = status == AT_OK ? tallied : status;
    put_suites(record, &tallies, &families, strict, out);
    at_tallies_release(&tallies);
    at_families_release(&families);
    return status == AT_OK ? at_run_record_readable(record) : status;
}
