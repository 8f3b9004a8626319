/* GitHub workflow commands: an annotation at the variant's source file per failing or vacuous result.
 * SPDX-License-Identifier: Apache-2.0
 *
 * GitHub shows ten annotations of a kind a step; the tenth says how many more there are. */
#include <inttypes.h>
#include <string.h>

#include "verify/report/report_text.h"
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

static void put_annotation(FILE *out, const char *kind, const struct at_result *r) {
    char title[256], text[4096];
    snprintf(title, sizeof title, "%s %s [%s]", at_state_name(r->state), r->variant, r->tensor);
    snprintf(text, sizeof text, "%s: %s\n%s", r->case_id, r->cause[0] ? r->cause : at_state_meaning(r->state),
             r->repro);
    at_text_clean(title);
    fprintf(out, "::%s file=", kind);
    put_escaped(out, r->path, 1);
    fputs(",title=", out);
    put_escaped(out, title, 1);
    fputs("::", out);
    put_escaped(out, text, 0);
    fputc('\n', out);
}

static int is_error(const struct at_result *r, int strict) { return at_state_fails(r->state, r->expect, strict) != 0; }

static int is_warning(const struct at_result *r, int strict) {
    return at_state_class(r->state) == AT_CLASS_VACUOUS && !is_error(r, strict);
}

static void put_kind(const struct at_run_record *record, int strict, const char *kind,
                     int (*selects)(const struct at_result *, int), FILE *out) {
    int64_t n = 0, put = 0;
    for (int64_t i = 0; i < record->n; i++)
        n += selects(at_run_record_at(record, i), strict);
    int64_t most = n > MAX ? MAX - 1 : n;
    for (int64_t i = 0; i < record->n && put < most; i++) {
        const struct at_result *r = at_run_record_at(record, i);
        if (selects(r, strict)) {
            put_annotation(out, kind, r);
            put++;
        }
    }
    if (n > put)
        fprintf(out, "::%s title=attest::%" PRId64 " more results like these; the table has all of them\n", kind,
                n - put);
}

at_status at_report_github(const struct at_run_record *record, int strict, FILE *out) {
    put_kind(record, strict, "error", is_error, out);
    put_kind(record, strict, "warning", is_warning, out);
    return at_run_record_readable(record);
}
