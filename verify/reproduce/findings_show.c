/* Findings as a table for people and as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "verify/reproduce/finding.h"
#include "verify/reproduce/terms.h"
#include "verify/result/text.h"

enum { ID_WIDTH = 33, WIDTH = 120, INDENT = 4 };

/* ---- the table ---- */

/* A number and its unit: "1.26 x", "112 tok/s"; whole shares and counts without an exponent. */
static void put_number(double value, const char *unit, char text[64]) {
    if (isnan(value))
        snprintf(text, 64, "-");
    else
        snprintf(text, 64, fabs(value) >= 1000 && fabs(value) < 1e7 ? "%.0f%s%s" : "%.3g%s%s", value, *unit ? " " : "",
                 unit);
}

static void put_lines(const char *text, FILE *out) {
    const char *next = text;
    for (size_t n; *text; text = next) {
        n = at_text_line(text, WIDTH - INDENT, &next);
        fprintf(out, "%*s%.*s\n", INDENT, "", (int)n, text);
    }
}

static void put_origin(const struct at_finding *f, FILE *out) {
    fprintf(out, "%s", f->file);
    if (f->device[0])
        fprintf(out, ", %s", f->device);
    if (f->date[0])
        fprintf(out, ", %s", f->date);
    if (f->commit[0])
        fprintf(out, ", %.12s", f->commit);
}

static void put_finding(const struct at_finding *f, FILE *out) {
    char figure[64], ours[64], section[40], text[768];
    snprintf(section, sizeof section, "%s %s", f->claim->source, f->claim->section);
    put_number(f->claim->figure, f->claim->unit, figure);
    put_number(f->ours, f->claim->unit, ours);
    at_text_fit(out, f->claim->id, ID_WIDTH, 0);
    fprintf(out, " %-14s %11s %11s  ", section, figure, ours);
    if (f->verdict == AT_NOT_SEEN) {
        fprintf(out, "%s\n", at_claim_verdict_name(f->verdict));
    } else {
        fprintf(out, "%-10s ", at_claim_verdict_name(f->verdict));
        put_origin(f, out);
        fputc('\n', out);
    }
    put_lines(f->claim->what, out);
    if (f->claim->note[0]) {
        snprintf(text, sizeof text, "note: %s", f->claim->note);
        put_lines(text, out);
    }
    put_lines(f->why, out);
}

static void count(const struct at_finding *findings, int n, int counts[AT_CLAIM_VERDICTS]) {
    memset(counts, 0, AT_CLAIM_VERDICTS * sizeof *counts);
    for (int i = 0; i < n; i++)
        counts[findings[i].verdict]++;
}

void at_findings_table(const struct at_finding *findings, int n, FILE *out) {
    int counts[AT_CLAIM_VERDICTS];
    count(findings, n, counts);
    fprintf(out, "%-*s %-14s %11s %11s  %-10s %s\n", ID_WIDTH, "CLAIM", "SECTION", "SOURCE", "OURS", "VERDICT", "FROM");
    for (int i = 0; i < n; i++)
        put_finding(&findings[i], out);
    fprintf(out, "%d claims: %d supported, %d refuted, %d not seen\n", n, counts[AT_SUPPORTED], counts[AT_REFUTED],
            counts[AT_NOT_SEEN]);
}

/* ---- JSON ---- */

/* JSON has no NaN, which is null, and no infinity, which is a word. */
static json_t *number(double value) {
    if (isnan(value))
        return json_null();
    return isinf(value) ? json_string(value > 0 ? "inf" : "-inf") : json_real(value);
}

static json_t *terms_json(const struct at_finding *f) {
    json_t *list = json_array();
    for (int i = 0; i < f->claim->n_terms; i++) {
        const struct at_term *term = &f->claim->terms[i];
        char words[1024];
        at_term_line(term, 0, words, sizeof words);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:s}", "name", term->name, "kind", term->kind->name,
                                              "words", words, "value", number(f->values[i]), "read", f->notes[i]));
    }
    return list;
}

static json_t *finding_json(const struct at_finding *f) {
    const struct at_claim *c = f->claim;
    char rule[320];
    at_rule_put(c, rule, sizeof rule);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:s, s:s}",
                     "claim", c->id, "source", c->source, "section", c->section, "what", c->what, "note", c->note,
                     "figure_text", c->figure_text, "figure", number(c->figure), "unit", c->unit, "expression", c->ours,
                     "rule", rule, "terms", terms_json(f), "ours", number(f->ours), "verdict",
                     at_claim_verdict_name(f->verdict), "why", f->why, "file", f->file, "device", f->device, "date",
                     f->date, "commit", f->commit);
}

at_status at_findings_json(const struct at_finding *findings, int n, FILE *out) {
    int counts[AT_CLAIM_VERDICTS];
    count(findings, n, counts);
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, finding_json(&findings[i]));
    json_t *all = json_pack("{s:i, s:i, s:i, s:o}", "supported", counts[AT_SUPPORTED], "refuted", counts[AT_REFUTED],
                            "not_seen", counts[AT_NOT_SEEN], "claims", list);
    const int failed = !all || json_array_size(list) != (size_t)n || json_dumpf(all, out, JSON_INDENT(1)) != 0;
    json_decref(all);
    fputc('\n', out);
    return failed ? AT_FAIL(AT_IO, "the claims could not be written as JSON") : AT_OK;
}
