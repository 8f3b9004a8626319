/* GitHub workflow commands: an annotation at the variant's source file per failing or vacuous result, and for what fails a strict
 * run beside its results.
 * SPDX-License-Identifier: Apache-2.0
 *
 * GitHub shows ten annotations of a kind a step; the tenth says how many more there are. */
#include <inttypes.h>
#include <string.h>

#include "verify/report/report_text.h"
#include "verify/report/report_variants.h"
#include "verify/report/reports.h"

enum { MAX = 10 };

/* %, CR and LF end or change a command; inside a property ':' and ',' do, too. Other control characters are
 * shown as \xNN. */
static void put_escaped(FILE *out, const char *text, int property) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
            fprintf(out, "%%%02X", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
}

static void put_annotation(FILE *out, const char *kind, const char *path, char *title, const char *text) {
    at_text_clean(title);
    fprintf(out, "::%s file=", kind);
    put_escaped(out, path, 1);
    fputs(",title=", out);
    put_escaped(out, title, 1);
    fputs("::", out);
    put_escaped(out, text, 0);
    fputc('\n', out);
}

static void put_result(FILE *out, const char *kind, const struct at_result *r) {
    char title[256], text[4096];
    snprintf(title, sizeof title, "%s %s [%s]", at_state_name(r->state), r->variant, r->tensor);
    snprintf(text, sizeof text, "%s: %s\n%s", r->case_id, r->cause[0] ? r->cause : at_state_meaning(r->state),
             r->repro);
    put_annotation(out, kind, r->path, title, text);
}

static int is_error(const struct at_result *r, int strict) { return at_state_fails(r->state, r->expect, strict) != 0; }

static int is_warning(const struct at_result *r, int strict) {
    return at_state_class(r->state) == AT_CLASS_VACUOUS && !is_error(r, strict);
}

/* What at_tallies_untested() has: counted, and the first `most` annotated. */
struct untested {
    FILE *out;
    const char *kind;
    int64_t n, most;
};

static at_status put_untested(void *context, const struct at_untested *u) {
    struct untested *these = context;
    char title[256];
    if (these->n++ >= these->most)
        return AT_OK;
    snprintf(title, sizeof title, "%s %s", u->what, u->variant);
    put_annotation(these->out, these->kind, u->path, title, u->text);
    return AT_OK;
}

static void put_kind(const struct at_run_record *record, const struct at_tallies *tallies, int strict, const char *kind,
                     int (*selects)(const struct at_result *, int), FILE *out) {
    struct untested counted = { .kind = kind, .out = out }, shown = counted;
    int64_t n = 0, put = 0;
    for (int64_t i = 0; i < record->n; i++)
        n += selects(at_run_record_at(record, i), strict);
    (void)at_tallies_untested(tallies, put_untested, &counted);
    n += counted.n;
    int64_t most = n > MAX ? MAX - 1 : n;
    for (int64_t i = 0; i < record->n && put < most; i++) {
        const struct at_result *r = at_run_record_at(record, i);
        if (selects(r, strict)) {
            put_result(out, kind, r);
            put++;
        }
    }
    shown.most = most - put;
    (void)at_tallies_untested(tallies, put_untested, &shown);
    if (n > most)
        fprintf(out, "::%s title=attest::%" PRId64 " more results like these; the table has all of them\n", kind,
                n - most);
}

at_status at_report_github(const struct at_run_record *record, int strict, FILE *out) {
    static const struct at_tallies none = { 0 };
    struct at_tallies tallies;
    const at_status status = at_tallies_open(record, strict, &tallies);
    put_kind(record, &tallies, strict, "error", is_error, out);
    put_kind(record, &none, strict, "warning", is_warning, out);
    at_tallies_release(&tallies);
    return status == AT_OK ? at_run_record_readable(record) : status;
}
