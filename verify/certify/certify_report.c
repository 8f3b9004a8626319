/* Certificates as text for people and as test cases for machines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/certify/certify_report.h"

#include <inttypes.h>
#include <string.h>

#include "verify/report/reports.h"

static int property_of(const struct at_certificate *row) {
    int p = 0;
    while (p < AT_PROPERTY_COUNT - 1 && strcmp(row->property, at_property_name(p)) != 0)
        p++;
    return p;
}

static int is_new(const struct at_certificate *rows, int64_t i) {
    return i == 0 || strcmp(rows[i].variant, rows[i - 1].variant) != 0 ||
           strcmp(rows[i].family, rows[i - 1].family) != 0;
}

int at_certificate_fails(const struct at_certificate *row, unsigned wanted) {
    const enum at_certified value = at_certificate_value(row);
    return value == AT_CERTIFIED_FAILED || row->disagrees ||
           (wanted >> property_of(row) & 1 && value != AT_CERTIFIED_YES);
}

struct at_certify_sum at_certify_sum_of(const struct at_certificate *rows, int64_t n, unsigned wanted) {
    struct at_certify_sum sum = { 0 };
    for (int64_t i = 0; i < n; i++) {
        const int p = property_of(&rows[i]);
        sum.variants += is_new(rows, i);
        sum.of[p][at_certificate_value(&rows[i])]++;
        sum.disagree += rows[i].disagrees;
        sum.unmet += wanted >> p & 1 && at_certificate_value(&rows[i]) != AT_CERTIFIED_YES;
    }
    return sum;
}

static void put_ulp(uint64_t ulp, FILE *out) {
    if (ulp == UINT64_MAX)
        fputs("a NaN beside a number", out);
    else
        fprintf(out, "worst %" PRIu64 " ulp", ulp);
}

/* A setting that is counted is the least of those that differ; others ("the batch backwards") stand for themselves. */
static int is_counted(const struct at_certificate *row) {
    return !row->with[0] && row->from[strcspn(row->from, "0123456789")] != 0;
}

/* Where the bits begin to differ, by how much; or, where rounding hides it, that sums have another order there. */
static void put_from(const struct at_certificate *row, FILE *out) {
    fprintf(out, " (%s %s%s: ",
            is_counted(row) ? "from"
            : row->with[0]  ? "beside"
                            : "with",
            row->from, is_counted(row) ? " on" : "");
    if (row->from_different == 0)
        fputs("declares another order of sums, ", out);
    fprintf(out, "%" PRId64 " of %" PRId64 " elements", row->from_different, row->from_compared);
    if (row->from_different) {
        fputs(", ", out);
        put_ulp(row->from_ulp, out);
    }
    fputc(')', out);
}

/* Rows of one value, with where bits differ, or with the reason, which rows next to each other may share. */
static void put_value(const struct at_certificate *rows, int64_t n, enum at_certified value, const char *word,
                      int *begun, FILE *out) {
    const struct at_certificate *before = NULL;
    for (int64_t i = 0; i < n; i++) {
        const struct at_certificate *r = &rows[i];
        const int reason = value != AT_CERTIFIED_YES && value != AT_CERTIFIED_NO;
        if (at_certificate_value(r) != value)
            continue;
        if (!before)
            fprintf(out, "%s%s:", (*begun)++ ? "; " : "", word);
        else if (reason && strcmp(before->reason, r->reason) != 0)
            fprintf(out, " (%s),", before->reason);
        else if (value == AT_CERTIFIED_NO)
            fputc(',', out);
        fprintf(out, " %s", r->property);
        if (value == AT_CERTIFIED_NO)
            put_from(r, out);
        before = r;
    }
    if (before && value != AT_CERTIFIED_YES && value != AT_CERTIFIED_NO)
        fprintf(out, " (%s)", before->reason);
}

static void put_variant(const struct at_certificate *rows, int64_t n, int counts, FILE *out) {
    int begun = 0;
    fprintf(out, "%s/%s: ", rows->family, rows->variant);
    put_value(rows, n, AT_CERTIFIED_YES, "invariant", &begun, out);
    put_value(rows, n, AT_CERTIFIED_NO, "not", &begun, out);
    put_value(rows, n, AT_CERTIFIED_FAILED, "failed", &begun, out);
    put_value(rows, n, AT_CERTIFIED_NA, "n/a", &begun, out);
    fputc('\n', out);
    for (int64_t i = 0; i < n; i++) {
        const struct at_certificate *r = &rows[i];
        if (counts && r->cases) {
            fprintf(out, "  %-6s %-4s %" PRId64 " elements, %" PRId64 " settings, %" PRId64 " case%s", r->property,
                    r->value, r->compared, r->settings, r->cases, r->cases == 1 ? "" : "s");
            if (r->ways)
                fprintf(out, ", %" PRId64 " ways", r->ways);
            if (r->declined)
                fprintf(out, ", %" PRId64 " settings declined", r->declined);
            fprintf(out, "%s%s%s%s\n", r->claim[0] ? "; declares " : "", r->claim, r->with[0] ? "; with " : "",
                    r->with);
        }
        if (r->disagrees)
            fprintf(out, "  DISAGREES %s: declares %s, and bits differ on %s\n", r->property, r->claim, r->from_case);
    }
}

void at_certify_put(const struct at_certificate *rows, int64_t n, int counts, FILE *out) {
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !is_new(rows, end);)
            end++;
        put_variant(&rows[i], end - i, counts, out);
    }
}

void at_certify_put_sum(const struct at_certify_sum *sum, FILE *out) {
    fprintf(out, "%" PRId64 " variant%s", sum->variants, sum->variants == 1 ? "" : "s");
    for (int p = 0, begun = 0; p < AT_PROPERTY_COUNT; p++) {
        int64_t all = 0;
        for (int v = 0; v < AT_CERTIFIED_COUNT; v++)
            all += sum->of[p][v];
        if (all == 0 || all == sum->of[p][AT_CERTIFIED_NA])
            continue;
        fprintf(out, "%s %s", begun++ ? "," : ":", at_property_name(p));
        for (int v = AT_CERTIFIED_YES; v < AT_CERTIFIED_COUNT; v++)
            if (sum->of[p][v])
                fprintf(out, " %" PRId64 " %s", sum->of[p][v], at_certified_name(v));
        if (sum->of[p][AT_CERTIFIED_NA])
            fprintf(out, " %" PRId64 " n/a", sum->of[p][AT_CERTIFIED_NA]);
    }
    fprintf(out, "; %" PRId64 " against the declaration", sum->disagree);
    if (sum->unmet)
        fprintf(out, ", %" PRId64 " wanted and not certified", sum->unmet);
    fputc('\n', out);
}

/* ---- JUnit ---- */

static enum at_state state_of(const struct at_certificate *row, unsigned wanted) {
    switch (at_certificate_value(row)) {
    case AT_CERTIFIED_YES:
        return row->disagrees ? AT_STATE_WRONG : AT_STATE_PASS;
    case AT_CERTIFIED_FAILED:
        return AT_STATE_ERROR;
    case AT_CERTIFIED_NA:
        return at_certificate_fails(row, wanted) ? AT_STATE_VACUOUS : AT_STATE_SKIPPED;
    default:
        return at_certificate_fails(row, wanted) ? AT_STATE_WRONG : AT_STATE_SKIPPED;
    }
}

static void to_result(const struct at_certificate *row, int64_t index, unsigned wanted, struct at_result *r) {
    memset(r, 0, sizeof *r);
    at_result_begin(r);
    r->plan_index = index;
    r->state = state_of(row, wanted);
    r->total = r->compared = row->compared;
    r->wrong = row->different;
    snprintf(r->family, sizeof r->family, "%s", row->family);
    snprintf(r->variant, sizeof r->variant, "%s", row->variant);
    snprintf(r->path, sizeof r->path, "%s", row->path);
    snprintf(r->role, sizeof r->role, "certify");
    snprintf(r->tensor, sizeof r->tensor, "%s", row->property);
    snprintf(r->case_id, sizeof r->case_id, "%" PRId64 " case%s", row->cases, row->cases == 1 ? "" : "s");
    if (row->from[0])
        snprintf(r->cause, sizeof r->cause,
                 "not invariant: bits differ, %s %s, of %" PRId64 " of %" PRId64 " elements%s%s",
                 is_counted(row) ? "from" : "with", row->from, row->from_different, row->from_compared,
                 row->disagrees ? "; declares " : "", row->disagrees ? row->claim : "");
    else
        snprintf(r->cause, sizeof r->cause, "%s", row->reason);
    snprintf(r->repro, sizeof r->repro, "attest certify '%s/%s' --properties %s%s%s%s%s%s", row->family, row->variant,
             row->property, row->with[0] ? " --with " : "", row->with, row->from_case[0] ? " --case '" : "",
             row->from_case, row->from_case[0] ? "'" : "");
}

at_status at_certify_put_junit(const struct at_certificate *rows, int64_t n, unsigned wanted, const char *path) {
    static struct at_result r; /* large */
    struct at_run_record record;
    at_status status = AT_OK;
    at_run_record_init(&record);
    for (int64_t i = 0; i < n; i++) {
        to_result(&rows[i], i, wanted, &r);
        AT_TRY_OUT(at_run_record_add(&record, &r));
    }
    status = at_report_write(AT_REPORT_junit, &record, 1, path);
out:
    at_run_record_release(&record);
    return status;
}
