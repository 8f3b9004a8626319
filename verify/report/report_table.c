/* The table for people: one row a result, grouped by kernel family, then the summary.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing is wider than 120 columns except the repro lines, which have to be copied in one piece. What all
 * cases of a family have in common is said once above its rows; a row shows the words that differ, all of them: where they
 * do not fit beside the numbers, they stand above the rows of their case. Where nothing was judged, the reason stands in place of the numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "verify/result/record.h"
#include "verify/report/report_families.h"
#include "verify/report/report_summary.h"
#include "verify/report/report_text.h"

enum { WIDTH = 120, CELL_BYTES = 1200, GAP = 1 };

enum column { STATE, VARIANT, CASE, TENSOR, ERROR, LIMIT, RATIO, ULP, ZERO, BITS, MEETS, DECOYS, COLUMNS };

static const struct {
    const char *title;
    int right; /* numbers */
} columns[COLUMNS] = {
    [STATE] = { "STATE", 0 }, [VARIANT] = { "VARIANT", 0 }, [CASE] = { "CASE", 0 },   [TENSOR] = { "TENSOR", 0 },
    [ERROR] = { "ERROR", 1 }, [LIMIT] = { "LIMIT", 1 },     [RATIO] = { "RATIO", 1 }, [ULP] = { "ULP99", 1 },
    [ZERO] = { "P=0%", 1 },   [BITS] = { "BITS", 1 },       [MEETS] = { "MEETS", 0 }, [DECOYS] = { "DECOYS", 1 },
};

/* A family and runner: results that share a heading. */
struct group {
    const struct at_run_record *record;
    const struct at_family_rows *family;
    char common[1024];
    int strict, colour, brief;
    int width[COLUMNS], case_above;
    FILE *out;
};

/* ---- cells ---- */

static void put_number(char *text, const char *format, double value) {
    if (isnan(value))
        snprintf(text, CELL_BYTES, "-");
    else if (isinf(value))
        snprintf(text, CELL_BYTES, value > 0 ? "inf" : "-inf");
    else
        snprintf(text, CELL_BYTES, format, value);
}

static void put_ulp(char *text, uint64_t ulp) {
    if (ulp == UINT64_MAX)
        snprintf(text, CELL_BYTES, "NaN");
    else if (ulp < 1000000)
        snprintf(text, CELL_BYTES, "%" PRIu64, ulp);
    else
        snprintf(text, CELL_BYTES, "%.0e", (double)ulp);
}

static const char *met(const struct at_result *r) {
    if (r->model_exact)
        return "MODEL-EXACT";
    if (r->model_compared > 0 && r->model_equal == r->model_compared && r->model_compared == r->compared)
        return "MODEL-WITHIN";
    return r->within ? "WITHIN" : "-";
}

/* The numbers, when something was compared. */
static void compared_cell(const struct at_result *r, enum column column, char *text) {
    int rejected, counted;
    at_result_decoys(r, &rejected, &counted);
    switch (column) {
    case ERROR:
        put_number(text, "%.1e", r->err_max);
        break;
    case LIMIT:
        put_number(text, "%.1e", r->limit_median);
        break;
    case RATIO:
        put_number(text, "%.2g", r->ratio_max);
        break;
    case ULP:
        put_ulp(text, r->ulp_p99);
        break;
    case ZERO:
        put_number(text, "%.1f", 100 * r->p_zero_share);
        break;
    case BITS:
        put_number(text, "%.1f", at_result_headroom(r));
        break;
    case MEETS:
        snprintf(text, CELL_BYTES, "%s", met(r));
        break;
    case DECOYS:
        snprintf(text, CELL_BYTES, counted ? "%d/%d" : "-", rejected, counted);
        break;
    default:
        break;
    }
}

static void cell(const struct group *g, const struct at_result *r, enum column column, char *text) {
    switch (column) {
    case STATE:
        snprintf(text, CELL_BYTES, "%s", at_state_name(r->state));
        break;
    case VARIANT:
        snprintf(text, CELL_BYTES, "%s", r->variant);
        break;
    case CASE:
        at_case_short(r->case_id, g->common, text, CELL_BYTES);
        break;
    case TENSOR:
        snprintf(text, CELL_BYTES, "%s", r->tensor);
        break;
    default:
        snprintf(text, CELL_BYTES, "-");
        if (r->compared > 0)
            compared_cell(r, column, text);
    }
}

/* ---- rows ---- */

static int shown(const struct group *g, const struct at_result *r) {
    return !g->brief || at_state_class(r->state) == AT_CLASS_VACUOUS || at_state_fails(r->state, r->expect, g->strict);
}

/* Rows without numbers: the numbers' columns hold the reason. */
static int has_reason(const struct at_result *r) {
    return at_state_class(r->state) == AT_CLASS_DECLINED && r->compared == 0 && r->cause[0];
}

static int columns_of(const struct at_result *r) { return has_reason(r) ? ERROR : COLUMNS; }

/* A column of this table: where cases do not fit beside their rows, they stand above them. */
static int is_column(const struct group *g, int c) { return c != CASE || !g->case_above; }

static int total_width(const struct group *g) {
    int total = -GAP;
    for (int c = 0; c < COLUMNS; c++)
        total += is_column(g, c) ? g->width[c] + GAP : 0;
    return total;
}

/* As wide as the contents. What is too much is the case, which then goes above its rows in full; then the variant's name is
 * cut. */
static void find_widths(struct group *g) {
    char text[CELL_BYTES];
    for (int c = 0; c < COLUMNS; c++)
        g->width[c] = at_text_width(columns[c].title);
    for (int64_t i = 0; i < g->family->n; i++) {
        const struct at_result *r = at_run_record_at(g->record, g->family->rows[i]);
        for (int c = 0; c < columns_of(r) && shown(g, r); c++) {
            cell(g, r, (enum column)c, text);
            int width = at_text_width(text);
            g->width[c] = width > g->width[c] ? width : g->width[c];
        }
    }
    g->case_above = total_width(g) > WIDTH;
    static const struct {
        enum column column;
        int least;
    } give[] = { { VARIANT, 12 }, { TENSOR, 6 } };
    for (size_t i = 0; i < sizeof give / sizeof give[0] && total_width(g) > WIDTH; i++) {
        const int spare = g->width[give[i].column] - give[i].least, excess = total_width(g) - WIDTH;
        g->width[give[i].column] -= spare < 0 ? 0 : spare > excess ? excess : spare;
    }
}

static const char *colour_of(const struct group *g, const struct at_result *r) {
    if (!g->colour)
        return "";
    if (at_state_fails(r->state, r->expect, g->strict))
        return "\x1b[31m";
    if (at_state_class(r->state) == AT_CLASS_GOOD)
        return "\x1b[32m";
    return "\x1b[33m";
}

/* The reason, from the column of the first number on; further lines begin there, too. */
static void put_reason(const struct group *g, const char *reason) {
    char line[CELL_BYTES];
    int indent = 0;
    for (int c = 0; c < ERROR; c++)
        indent += is_column(g, c) ? g->width[c] + GAP : 0;
    for (const char *next; *reason; reason = next) {
        snprintf(line, sizeof line, "%.*s", (int)at_text_line(reason, WIDTH - indent, &next), reason);
        at_text_fit(g->out, line, at_text_width(line), 0);
        fprintf(g->out, "\n%*s", *next ? indent : 0, "");
    }
}

static void put_row(const struct group *g, const struct at_result *r) {
    char text[CELL_BYTES];
    const char *colour = colour_of(g, r);
    for (int c = 0; c < columns_of(r); c++) {
        if (!is_column(g, c))
            continue;
        cell(g, r, (enum column)c, text);
        fputs(c ? " " : colour, g->out);
        at_text_fit(g->out, text, g->width[c], columns[c].right);
        if (c == STATE && colour[0])
            fputs("\x1b[0m", g->out);
    }
    fputc(has_reason(r) ? ' ' : '\n', g->out);
    if (has_reason(r))
        put_reason(g, r->cause);
}

/* Above the first row of a case, unless it has a column. */
static void put_case(const struct group *g, const struct at_result *r, const char *above) {
    char text[CELL_BYTES];
    if (!g->case_above || strcmp(above, r->case_id) == 0)
        return;
    cell(g, r, CASE, text);
    at_put_wrapped(g->out, "case ", text, WIDTH);
}

static void put_titles(const struct group *g) {
    for (int c = 0; c < COLUMNS; c++) {
        if (!is_column(g, c))
            continue;
        fputs(c ? " " : "", g->out);
        at_text_fit(g->out, columns[c].title, g->width[c], columns[c].right);
    }
    fputc('\n', g->out);
}

/* Where it is worst, why, and how to see it again. */
static void put_failure(const struct group *g, const struct at_result *r) {
    char text[1024];
    if (r->worst_index >= 0 && r->compared > 0) {
        char place[256], limit[32] = "none";
        at_result_worst(r, place, sizeof place);
        if (!isnan(r->worst_limit))
            snprintf(limit, sizeof limit, "%.3g", r->worst_limit);
        int used = snprintf(text, sizeof text, "%s: got %.9g, want %.9g, limit %s", place, at_text_nan(r->worst_got),
                            at_text_nan(r->worst_want), limit);
        if (!isnan(r->worst_model) && used > 0 && (size_t)used < sizeof text)
            used += snprintf(text + used, sizeof text - (size_t)used, ", model %.9g", r->worst_model);
        if (used > 0 && (size_t)used < sizeof text)
            snprintf(text + used, sizeof text - (size_t)used, "; %" PRId64 " of %" PRId64 " wrong", r->wrong,
                     r->compared);
        at_put_wrapped(g->out, "    worst ", text, WIDTH);
    }
    if (r->cause[0])
        at_put_wrapped(g->out, "    cause ", r->cause, WIDTH);
    if (r->repro[0]) {
        fputs("    repro ", g->out);
        at_text_fit(g->out, r->repro, at_text_width(r->repro), 0);
        fputc('\n', g->out);
    }
}

static void put_counters(const struct group *g, const struct at_result *r) {
    char text[1024] = "";
    size_t at = 0;
    if (r->counter_lane_accesses < 0)
        return;
#define X(name, meaning) \
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %" PRId64, at ? ", " : "", #name, r->counter_##name);
    AT_COUNTER_LIST(X)
#undef X
    at_put_wrapped(g->out, "    counts ", text, WIDTH);
}

/* ---- groups ---- */

static void put_heading(const struct group *g) {
    char label[96], text[1200], runner[sizeof(((struct at_result *)0)->runner)] = "";
    int runners = 0;
    for (int64_t i = 0; i < g->family->n; i++) {
        const struct at_result *r = at_run_record_at(g->record, g->family->rows[i]);
        if (!runners || strcmp(runner, r->runner) != 0) {
            memcpy(runner, r->runner, sizeof runner);
            runners++;
        }
    }
    snprintf(label, sizeof label, "%s%s%s: ", g->family->name, runners == 1 ? " on " : "", runners == 1 ? runner : "");
    snprintf(text, sizeof text, "every case %s", g->common[0] ? g->common : "differs");
    at_put_wrapped(g->out, label, text, WIDTH);
}

static void put_group(struct group *g) {
    char above[sizeof(((struct at_result *)0)->case_id)] = "";
    int64_t rows = 0;
    at_case_common(g->record, g->family, g->common, sizeof g->common);
    for (int64_t i = 0; i < g->family->n; i++)
        rows += shown(g, at_run_record_at(g->record, g->family->rows[i]));
    put_heading(g);
    if (g->brief)
        at_put_family_counts(g->record, g->family, g->out);
    if (rows) {
        find_widths(g);
        put_titles(g);
    }
    for (int64_t i = 0; i < g->family->n && rows; i++) {
        const struct at_result *r = at_run_record_at(g->record, g->family->rows[i]);
        if (!shown(g, r))
            continue;
        put_case(g, r, above);
        memcpy(above, r->case_id, sizeof above);
        put_row(g, r);
        put_counters(g, r);
        if (at_state_fails(r->state, r->expect, g->strict))
            put_failure(g, r);
    }
    fputc('\n', g->out);
}

static void put_table(const struct at_run_record *record, int strict, int colour, int brief, FILE *out) {
    struct at_families families;
    const at_status status = at_families_open(record, &families);
    if (status != AT_OK)
        fputs("no memory for a table\n", out);
    for (int i = 0; i < families.n && status == AT_OK; i++) {
        struct group g = { .record = record,
                           .family = &families.list[i],
                           .strict = strict,
                           .colour = colour,
                           .brief = brief,
                           .out = out };
        put_group(&g);
    }
    at_families_release(&families);
}

void at_report_rows(const struct at_run_record *record, int strict, int colour, FILE *out) {
    put_table(record, strict, colour, 0, out);
}

void at_report_table(const struct at_run_record *record, int strict, int colour, FILE *out) {
    put_table(record, strict, colour, 0, out);
    at_put_summary(record, strict, out);
}

void at_report_table_brief(const struct at_run_record *record, int strict, int colour, FILE *out) {
    put_table(record, strict, colour, 1, out);
    at_put_summary(record, strict, out);
}
