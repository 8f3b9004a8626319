/* Terms that are rows of measurements: a benchmark's, a study's, the table of the kernels' resources.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "verify/reproduce/terms.h"

/* ---- columns ---- */

static const struct at_field *field_named(const struct at_table *table, const char *name) {
    const struct at_field *field;
    for (int i = 0; (field = table->field(i)); i++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

static int is_number(const struct at_field *field) { return field->kind != AT_FIELD_TEXT && field->count == 1; }

static double number_in(const struct at_field *field, const void *row) {
    const void *at = at_field_of(field, row);
    switch (field->kind) {
    case AT_FIELD_BOOL:
    case AT_FIELD_INT:
        return (double)*(const int *)at;
    case AT_FIELD_I64:
    case AT_FIELD_PLACE:
        return (double)*(const int64_t *)at;
    case AT_FIELD_U64:
        return (double)*(const uint64_t *)at;
    case AT_FIELD_F64:
        return *(const double *)at;
    default:
        return (double)NAN;
    }
}

static at_status unknown_column(const struct at_term *term, const struct at_table *table, const char *name) {
    enum { MAX = 64 };
    const char *names[MAX];
    const struct at_field *field;
    int n = 0;
    for (int i = 0; (field = table->field(i)) && n < MAX; i++)
        names[n++] = field->name;
    const char *near = at_nearest_name(name, names, n);
    return AT_FAIL(AT_USAGE, "%s: %s: found column \"%.40s\"%s%s%s, wanted a number of table %s", term->where,
                   term->kind->name, name, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "",
                   table->group);
}

static at_status check_column(const struct at_term *term, const struct at_table *table, const char *name) {
    const struct at_field *field = field_named(table, name);
    return field && is_number(field) ? AT_OK : unknown_column(term, table, name);
}

static at_status check_pairs(const struct at_term *term, int from) {
    for (int i = from; i < term->n_words; i++) {
        const char *equals = strchr(term->words[i], '=');
        if (!equals || equals == term->words[i] || !equals[1])
            return AT_FAIL(AT_USAGE, "%s: %s: found \"%.60s\", wanted %s", term->where, term->kind->name,
                           term->words[i], term->kind->wants);
    }
    return AT_OK;
}

static at_status check_variant(const struct at_term *term) {
    AT_TRY(at_term_want(term, 2));
    const char *slash = strchr(term->words[0], '/');
    if (!slash || slash == term->words[0] || !slash[1])
        return AT_FAIL(AT_USAGE, "%s: %s: found \"%.60s\", wanted %s", term->where, term->kind->name, term->words[0],
                       term->kind->wants);
    return check_pairs(term, 2);
}

/* ---- bench ---- */

static at_status check_bench(const struct at_term *term) {
    AT_TRY(check_variant(term));
    return check_column(term, &at_bench_table_kernels, term->words[1]);
}

int at_term_takes(const struct at_term *term, const char *family, const char *variant, const char *case_id) {
    char name[192];
    snprintf(name, sizeof name, "%s/%s", family, variant);
    if (strcmp(name, term->words[0]) != 0)
        return 0;
    for (int i = 2; i < term->n_words; i++) {
        const size_t length = strlen(term->words[i]);
        const char *at = case_id;
        while ((at = strstr(at, term->words[i])) &&
               !(at > case_id && at[-1] == ' ' && (at[length] == ' ' || !at[length])))
            at++;
        if (!at)
            return 0;
    }
    return 1;
}

static at_status two_rows(const struct at_term *term, const struct at_run_evidence *run, const char *a, const char *b) {
    return AT_FAIL(AT_USAGE, "%s: %s: %s has two rows of it, wanted words that tell them apart: \"%.300s\", \"%.300s\"",
                   term->where, term->name, run->file, a, b);
}

static at_status find_bench(struct at_term_sources *sources, const struct at_run_evidence *run,
                            const struct at_term *term, struct at_term_value *v) {
    const struct at_table_rows *table = at_evidence_table(run, at_bench_table_kernels.group);
    const struct at_bench_row *rows = table ? table->rows : NULL;
    int64_t found = -1;
    char keys[512];
    (void)sources;
    for (int64_t i = 0; table && i < table->n; i++) {
        if (!at_term_takes(term, rows[i].family, rows[i].variant, run->cases[i]))
            continue;
        if (found >= 0)
            return two_rows(term, run, run->cases[found], run->cases[i]);
        found = i;
    }
    at_term_line(term, 2, keys, sizeof keys);
    v->value = (double)NAN;
    if (found < 0) {
        snprintf(v->why, sizeof v->why, "not measured: no row %.100s with %.200s", term->words[0], keys);
        return AT_OK;
    }
    v->value = number_in(field_named(table->table, term->words[1]), &rows[found]);
    snprintf(v->note, sizeof v->note, "%.100s, %.50s", term->words[0], term->words[1]);
    if (isnan(v->value))
        snprintf(v->why, sizeof v->why, "not measured: %.40s of %.80s with %.90s is no number: %.100s", term->words[1],
                 term->words[0], keys, rows[found].verdict);
    return AT_OK;
}

const struct at_term_kind at_term_bench = { .name = "bench",
                                            .wants = "FAMILY/VARIANT COLUMN KEY=VALUE...",
                                            .meaning = "a column of a benchmark's row, by keys of its case",
                                            .measured = 1,
                                            .benched = 1,
                                            .check = check_bench,
                                            .find = find_bench };

/* ---- rows of any table ---- */

static at_status check_row(const struct at_term *term) {
    AT_TRY(at_term_want(term, 2));
    AT_TRY(check_pairs(term, 2));
    const struct at_table *table = at_table_named(term->words[0]);
    if (!table)
        return AT_FAIL(AT_USAGE, "%s: %s: found \"%.40s\", wanted a table that archives have", term->where,
                       term->kind->name, term->words[0]);
    for (int i = 2; i < term->n_words; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(term->words[i], "="), term->words[i]);
        if (!field_named(table, name))
            return unknown_column(term, table, name);
    }
    return check_column(term, table, term->words[1]);
}

static int row_takes(const struct at_term *term, const struct at_table *table, const void *row) {
    for (int i = 2; i < term->n_words; i++) {
        char name[64];
        const char *value = strchr(term->words[i], '=') + 1;
        snprintf(name, sizeof name, "%.*s", (int)(value - 1 - term->words[i]), term->words[i]);
        const struct at_field *field = field_named(table, name);
        if (field->kind == AT_FIELD_TEXT ? strcmp(at_field_of(field, row), value) != 0
                                         : number_in(field, row) != strtod(value, NULL))
            return 0;
    }
    return 1;
}

static at_status find_rows(const struct at_run_evidence *run, const struct at_term *term, int all,
                           struct at_term_value *v) {
    const struct at_table_rows *table = at_evidence_table(run, term->words[0]);
    char fields[512];
    int64_t n = 0;
    at_term_line(term, 2, fields, sizeof fields);
    for (int64_t i = 0; table && i < table->n; i++) {
        const char *row = (const char *)table->rows + (size_t)i * table->table->row_bytes;
        if (!row_takes(term, table->table, row))
            continue;
        if (n && !all)
            return two_rows(term, run, fields, "the same");
        const double value = number_in(field_named(table->table, term->words[1]), row);
        v->value = n++ ? v->value + value : value;
    }
    if (n == 0)
        v->value = (double)NAN;
    if (isnan(v->value))
        snprintf(v->why, sizeof v->why, "not measured: no %.50s of table %.50s with %.200s", term->words[1],
                 term->words[0], fields);
    snprintf(v->note, sizeof v->note, "%.60s/%.60s of %lld rows", term->words[0], term->words[1], (long long)n);
    return AT_OK;
}

static at_status find_row(struct at_term_sources *sources, const struct at_run_evidence *run,
                          const struct at_term *term, struct at_term_value *v) {
    (void)sources;
    return find_rows(run, term, 0, v);
}
static at_status find_sum(struct at_term_sources *sources, const struct at_run_evidence *run,
                          const struct at_term *term, struct at_term_value *v) {
    (void)sources;
    return find_rows(run, term, 1, v);
}

const struct at_term_kind at_term_row = { .name = "row",
                                          .wants = "TABLE COLUMN FIELD=VALUE...",
                                          .meaning = "a column of the one row of an archive's table",
                                          .measured = 1,
                                          .check = check_row,
                                          .find = find_row };
const struct at_term_kind at_term_sum = { .name = "sum",
                                          .wants = "TABLE COLUMN FIELD=VALUE...",
                                          .meaning = "a column added up over all such rows",
                                          .measured = 1,
                                          .check = check_row,
                                          .find = find_sum };
