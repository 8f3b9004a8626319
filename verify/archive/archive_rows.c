/* Results of an archive by blocks, and some of them whole.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/archive_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/columns.h"
#include "verify/archive/columns_read.h"
#include "verify/archive/guard.h"
#include "verify/archive/layout.h"

enum { MAX_FIELDS = 128, MAX_WIDTH = 8 };

/* Texts of a table that results refer to: field f of row i is text[f * n + i]. */
struct table {
    const struct at_field *fields[MAX_FIELDS];
    int n_fields;
    hsize_t n;
    char **text;
    int64_t last; /* the row whose texts the result has */
};

struct open_archive {
    const char *file;
    hid_t id, results;
    hsize_t n;
    struct table cases, kernels;
};

/* ---- opening ---- */

static at_status open_results(const char *file, struct open_archive *a) {
    uint64_t bytes;
    *a = (struct open_archive){ .file = file, .id = H5I_INVALID_HID, .results = H5I_INVALID_HID };
    AT_TRY(at_archive_open(file, &a->id, &bytes));
    AT_TRY(at_archive_check_version(file, a->id, "attest.archive", "the file"));
    AT_TRY(at_archive_open_group(file, a->id, AT_GROUP_RESULTS, "attest.results", &a->results));
    AT_TRY(at_h5_length(file, a->results, "result", &a->n));
    return a->n <= bytes / 16
               ? AT_OK
               : AT_FAIL(AT_USAGE, "%s: claims %" PRIu64 " results in %" PRIu64 " bytes", file, (uint64_t)a->n, bytes);
}

static void release_table(struct table *t) {
    if (t->text)
        at_h5_free_texts(t->text, t->n * (hsize_t)t->n_fields);
    free(t->text);
}

static at_status close_results(struct open_archive *a, at_status status) {
    release_table(&a->cases);
    release_table(&a->kernels);
    at_h5_close(a->results);
    if (a->id >= 0 && H5Fclose(a->id) < 0 && status == AT_OK)
        status = at_h5_fail(AT_USAGE, a->file, "close", "the archive");
    return status;
}

static at_status check_row(const char *file, int64_t row, hsize_t n) {
    return row >= 0 && (hsize_t)row < n
               ? AT_OK
               : AT_FAIL(AT_USAGE, "%s: a result refers to row %" PRId64 " of %" PRIu64, file, row, (uint64_t)n);
}

/* All rows, or the m that `rows` names (ascending). */
static at_status read_table(struct open_archive *a, const char *name, const char *type, const char *scale,
                            const int64_t *rows, int64_t m, struct table *t) {
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID;
    t->last = -1;
    AT_TRY_OUT(at_archive_open_group(a->file, a->id, name, type, &group));
    AT_TRY_OUT(at_h5_length(a->file, group, scale, &t->n));
    if (t->n > a->n)
        AT_FAIL_OUT(AT_USAGE, "%s: %s has %" PRIu64 " rows for %" PRIu64 " results", a->file, name, (uint64_t)t->n,
                    (uint64_t)a->n);
    for (int64_t i = 0; i < m; i++)
        AT_TRY_OUT(check_row(a->file, rows[i], t->n));
    if (rows)
        t->n = (hsize_t)m;
    t->text = calloc(t->n * (hsize_t)t->n_fields + 1, sizeof *t->text);
    if (!t->text)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %s", a->file, name);
    for (int f = 0; f < t->n_fields; f++) {
        char **texts = t->text + (hsize_t)f * t->n;
        if (rows)
            AT_TRY_OUT(at_h5_pick(a->file, group, t->fields[f]->name, AT_H5_TEXT, 1, rows, m, texts));
        else
            AT_TRY_OUT(at_h5_read(a->file, group, t->fields[f]->name, AT_H5_TEXT, 1, &t->n, texts));
    }
out:
    at_h5_close(group);
    return status;
}

static at_status put_text(const char *file, const struct at_field *field, const char *text, struct at_result *r) {
    const size_t n = text ? strlen(text) : 0;
    char *at = at_field_at(field, r);
    if (n >= field->size)
        return AT_FAIL(AT_USAGE, "%s: a text of %s is too long", file, field->name);
    if (n)
        memcpy(at, text, n);
    at[n] = 0;
    return AT_OK;
}

/* The texts of row `row` into a result that has those of the row before. */
static at_status join(const struct open_archive *a, struct table *t, int64_t row, struct at_result *r) {
    AT_TRY(check_row(a->file, row, t->n));
    if (row == t->last)
        return AT_OK;
    for (int f = 0; f < t->n_fields; f++)
        AT_TRY(put_text(a->file, t->fields[f], t->text[(hsize_t)f * t->n + (hsize_t)row], r));
    t->last = row;
    return AT_OK;
}

/* ---- columns of rows ---- */

/* A field's values of some rows. */
struct values {
    const struct at_field *field;
    void *data; /* texts: char ** */
    int is_there;
};

static enum at_h5_type type_of(const struct at_field *field) { return at_archive_type(field->kind); }

static size_t row_bytes(const struct at_field *field) {
    return at_h5_type_bytes(type_of(field)) * (size_t)field->count;
}

static at_status put_value(const struct open_archive *a, const struct values *v, hsize_t i, struct at_result *r) {
    const struct at_field *field = v->field;
    void *at = at_field_at(field, r);
    if (field->kind == AT_FIELD_TEXT)
        return put_text(a->file, field, ((char **)v->data)[i], r);
    if (field->kind == AT_FIELD_STATE || field->kind == AT_FIELD_BOOL) {
        const int8_t *values = v->data;
        const int value = values[i] < 0 ? -1 : (int)(uint8_t)values[i], states = field->kind == AT_FIELD_STATE;
        if (value < 0 || value >= (states ? (int)AT_STATE_COUNT : 2))
            return AT_FAIL(AT_USAGE, "%s: a value of %s is %d, which has no meaning", a->file, field->name, value);
        if (states)
            *(enum at_state *)at = (enum at_state)value;
        else
            *(int *)at = value;
    } else {
        memcpy(at, (const char *)v->data + i * field->size, field->size);
    }
    return AT_OK;
}

static at_status make_values(const char *file, const struct at_field *field, hsize_t n, struct values *v) {
    *v = (struct values){ .field = field, .data = calloc(n + 1, row_bytes(field)) };
    return v->data ? AT_OK : AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", file, field->name);
}

static int is_column(hid_t group, const struct at_field *field) {
    return H5Lexists(group, field->name, H5P_DEFAULT) > 0;
}

/* ---- every row, by blocks ---- */

struct scan {
    struct open_archive archive;
    struct values columns[MAX_FIELDS];
    int n_columns;
    struct at_result result;
    int64_t *case_of, *kernel_of; /* of a block */
};

static int is_named(const char *const *names, const char *name) {
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return 1;
    return 0;
}

static at_status prepare(struct scan *s, const char *const *names) {
    const struct at_field *field;
    struct open_archive *a = &s->archive;
    at_result_begin(&s->result);
    for (int i = 0; (field = at_result_field(i)); i++) {
        if (!is_named(names, field->name))
            continue;
        if (field->group == AT_FIELD_CASES)
            a->cases.fields[a->cases.n_fields++] = field;
        else if (field->group == AT_FIELD_KERNELS)
            a->kernels.fields[a->kernels.n_fields++] = field;
        else if (is_column(a->results, field))
            AT_TRY(make_values(a->file, field, AT_H5_PIECE_ROWS, &s->columns[s->n_columns++]));
    }
    s->case_of = calloc(AT_H5_PIECE_ROWS, sizeof *s->case_of);
    s->kernel_of = calloc(AT_H5_PIECE_ROWS, sizeof *s->kernel_of);
    if (!s->case_of || !s->kernel_of)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for rows", a->file);
    AT_TRY(read_table(a, AT_GROUP_CASES, "attest.cases", "case", NULL, 0, &a->cases));
    return read_table(a, AT_GROUP_KERNELS, "attest.kernels", "kernel", NULL, 0, &a->kernels);
}

static at_status read_block(struct scan *s, hsize_t first, hsize_t count) {
    const struct open_archive *a = &s->archive;
    AT_TRY(at_h5_read_rows(a->file, a->results, "case", AT_H5_I64, 1, first, count, s->case_of));
    AT_TRY(at_h5_read_rows(a->file, a->results, "kernel", AT_H5_I64, 1, first, count, s->kernel_of));
    int declined = 0;
    for (int c = 0; c < s->n_columns; c++) {
        struct values *v = &s->columns[c];
        if (v->field->kind == AT_FIELD_TEXT)
            continue;
        AT_TRY(at_h5_read_rows(a->file, a->results, v->field->name, type_of(v->field), v->field->count, first, count,
                               v->data));
        for (hsize_t i = 0; v->field->kind == AT_FIELD_STATE && i < count; i++)
            declined |= at_state_class((enum at_state)((const int8_t *)v->data)[i]) == AT_CLASS_DECLINED;
    }
    for (int c = 0; c < s->n_columns; c++) {
        struct values *v = &s->columns[c];
        v->is_there = v->field->kind != AT_FIELD_TEXT || declined;
        if (v->field->kind == AT_FIELD_TEXT && declined)
            AT_TRY(at_h5_read_rows(a->file, a->results, v->field->name, AT_H5_TEXT, 1, first, count, v->data));
    }
    return AT_OK;
}

static void free_block(struct scan *s, hsize_t count) {
    for (int c = 0; c < s->n_columns; c++)
        if (s->columns[c].field->kind == AT_FIELD_TEXT) {
            at_h5_free_texts(s->columns[c].data, count);
            memset(s->columns[c].data, 0, count * sizeof(char *));
        }
}

static at_status visit_block(struct scan *s, hsize_t first, hsize_t count,
                             at_status (*visit)(void *, int64_t, const struct at_result *), void *context) {
    struct open_archive *a = &s->archive;
    for (hsize_t i = 0; i < count; i++) {
        AT_TRY(join(a, &a->cases, s->case_of[i], &s->result));
        AT_TRY(join(a, &a->kernels, s->kernel_of[i], &s->result));
        for (int c = 0; c < s->n_columns; c++)
            if (s->columns[c].is_there)
                AT_TRY(put_value(a, &s->columns[c], i, &s->result));
        if (at_state_class(s->result.state) != AT_CLASS_DECLINED)
            s->result.cause[0] = 0;
        AT_TRY(visit(context, (int64_t)(first + i), &s->result));
    }
    return AT_OK;
}

static at_status scan(struct scan *s, const char *path, const char *const *names,
                      at_status (*visit)(void *, int64_t, const struct at_result *), void *context) {
    AT_TRY(open_results(path, &s->archive));
    AT_TRY(prepare(s, names));
    for (hsize_t at = 0; at < s->archive.n; at += AT_H5_PIECE_ROWS) {
        const hsize_t left = s->archive.n - at, count = left < AT_H5_PIECE_ROWS ? left : AT_H5_PIECE_ROWS;
        at_status status = read_block(s, at, count);
        if (status == AT_OK)
            status = visit_block(s, at, count, visit, context);
        free_block(s, count);
        AT_TRY(status);
    }
    return AT_OK;
}

at_status at_archive_scan(const char *path, const char *const *fields,
                          at_status (*visit)(void *context, int64_t row, const struct at_result *result),
                          void *context) {
    struct scan *s = calloc(1, sizeof *s);
    if (!s)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory to read it", path);
    at_guard_begin(path);
    const at_status status = close_results(&s->archive, scan(s, path, fields, visit, context));
    at_guard_end();
    for (int c = 0; c < s->n_columns; c++)
        free(s->columns[c].data);
    free(s->case_of);
    free(s->kernel_of);
    free(s);
    return status;
}

at_status at_archive_count(const char *path, int64_t *n) {
    struct open_archive a;
    at_guard_begin(path);
    const at_status status = open_results(path, &a);
    *n = (int64_t)a.n;
    const at_status closed = close_results(&a, status);
    at_guard_end();
    return closed;
}

/* ---- some rows, whole ---- */

/* One field of the rows into records of `n` structs. */
static at_status pick_field(const struct open_archive *a, hid_t group, const struct at_field *field,
                            const int64_t *rows, int64_t n, struct at_result *results) {
    struct values v;
    at_status status = AT_OK;
    AT_TRY(make_values(a->file, field, (hsize_t)n, &v));
    AT_TRY_OUT(at_h5_pick(a->file, group, field->name, type_of(field), field->count, rows, n, v.data));
    for (int64_t i = 0; i < n; i++)
        AT_TRY_OUT(put_value(a, &v, (hsize_t)i, &results[i]));
out:
    if (field->kind == AT_FIELD_TEXT)
        at_h5_free_texts(v.data, (hsize_t)n);
    free(v.data);
    return status;
}

static int order_i64(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorted, each once; returns how many are left. */
static int64_t sort_unique(int64_t *values, int64_t n) {
    int64_t left = 0;
    qsort(values, (size_t)n, sizeof *values, order_i64);
    for (int64_t i = 0; i < n; i++)
        if (left == 0 || values[left - 1] != values[i])
            values[left++] = values[i];
    return left;
}

/* Of the table only the rows that are referred to: there can be as many as results. */
static at_status pick_key(struct open_archive *a, const char *name, const char *type, const char *scale,
                          enum at_field_group which, const int64_t *rows, int64_t n, struct at_result *results) {
    const struct at_field *field;
    struct table *t = which == AT_FIELD_CASES ? &a->cases : &a->kernels;
    int64_t *index = calloc((size_t)n + 1, sizeof *index), *wanted = calloc((size_t)n + 1, sizeof *wanted), m;
    at_status status = AT_OK;
    if (!index || !wanted)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for rows", a->file);
    for (int i = 0; (field = at_result_field(i)); i++)
        if (field->group == which)
            t->fields[t->n_fields++] = field;
    AT_TRY_OUT(at_h5_pick(a->file, a->results, scale, AT_H5_I64, 1, rows, n, index));
    memcpy(wanted, index, (size_t)n * sizeof *index);
    m = sort_unique(wanted, n);
    AT_TRY_OUT(read_table(a, name, type, scale, wanted, m, t));
    for (int64_t i = 0; i < n; i++) {
        const int64_t *at = bsearch(&index[i], wanted, (size_t)m, sizeof *wanted, order_i64);
        t->last = -1;
        AT_TRY_OUT(join(a, t, at - wanted, &results[i]));
    }
out:
    free(index);
    free(wanted);
    return status;
}

/* Rows of the ledger are those of the totals, each with all stages in order. */
static at_status pick_stages(const struct open_archive *a, hid_t ledger, const int64_t *total, const int64_t *of,
                             int64_t n, struct at_result *results) {
    const struct at_field *field;
    at_status status = AT_OK;
    const size_t m = (size_t)n * AT_STAGE_COUNT;
    int64_t *rows = calloc(m + 1, sizeof *rows);
    int64_t *data = calloc(m + 1, sizeof *data);
    if (!rows || !data)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for the ledger", a->file);
    for (size_t i = 0; i < m; i++)
        rows[i] = total[i / AT_STAGE_COUNT] * AT_STAGE_COUNT + (int64_t)(i % AT_STAGE_COUNT);
    AT_TRY_OUT(at_h5_pick(a->file, ledger, "stage", AT_H5_I8, 1, rows, (int64_t)m, data));
    for (size_t i = 0; i < m; i++)
        if (((const uint8_t *)data)[i] != i % AT_STAGE_COUNT)
            AT_FAIL_OUT(AT_USAGE, "%s: row %" PRId64 " of /ledger is of stage %d", a->file, rows[i],
                        ((const uint8_t *)data)[i]);
    for (int f = 0; (field = at_ledger_row_field(f)); f++) {
        const enum at_h5_type type = type_of(field);
        AT_TRY_OUT(at_h5_pick(a->file, ledger, field->name, type, 1, rows, (int64_t)m, data));
        for (size_t i = 0; i < m; i++) {
            struct at_ledger_row *row = &results[of[i / AT_STAGE_COUNT]].ledger.stage[i % AT_STAGE_COUNT];
            if (type == AT_H5_I8)
                *(int *)at_field_at(field, row) = ((const uint8_t *)data)[i] != 0;
            else
                memcpy(at_field_at(field, row), (const char *)data + i * field->size, field->size);
        }
    }
out:
    free(rows);
    free(data);
    return status;
}

static at_status pick_ledger(const struct open_archive *a, const int64_t *rows, int64_t n, struct at_result *results) {
    at_status status = AT_OK;
    hid_t ledger = H5I_INVALID_HID, totals = H5I_INVALID_HID;
    hsize_t n_totals = 0;
    int64_t *result_of = NULL, *total = calloc((size_t)n + 1, sizeof *total), *of = calloc((size_t)n + 1, sizeof *of);
    int64_t found = 0, at = 0;
    AT_TRY_OUT(at_archive_open_group(a->file, a->id, AT_GROUP_LEDGER, "attest.ledger", &ledger));
    AT_TRY_OUT(at_archive_open_group(a->file, ledger, AT_GROUP_TOTALS, "attest.ledger_totals", &totals));
    AT_TRY_OUT(at_h5_length(a->file, totals, "total", &n_totals));
    if (n_totals > a->n || !(result_of = calloc(n_totals + 1, sizeof *result_of)) || !total || !of)
        AT_FAIL_OUT(AT_USAGE, "%s: a ledger of %" PRIu64 " results of %" PRIu64, a->file, (uint64_t)n_totals,
                    (uint64_t)a->n);
    AT_TRY_OUT(at_h5_read(a->file, totals, "result", AT_H5_I64, 1, &n_totals, result_of));
    for (int64_t i = 0; i < n; i++) {
        while (at < (int64_t)n_totals && result_of[at] < rows[i])
            at++;
        if (at < (int64_t)n_totals && result_of[at] == rows[i]) {
            total[found] = at;
            of[found++] = i;
        }
    }
    AT_TRY_OUT(pick_stages(a, ledger, total, of, found, results));
out:
    free(result_of);
    free(total);
    free(of);
    at_h5_close(totals);
    at_h5_close(ledger);
    return status;
}

static at_status pick_all(struct open_archive *a, const char *path, const int64_t *rows, int64_t n,
                          struct at_run_record *record) {
    const struct at_field *field;
    AT_TRY(open_results(path, a));
    AT_TRY(at_archive_read_provenance(path, a->id, record));
    record->results = calloc((size_t)n + 1, sizeof *record->results);
    if (!record->results)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %" PRId64 " results", path, n);
    record->n = record->capacity = n;
    for (int64_t i = 0; i < n; i++)
        at_result_begin(&record->results[i]);
    for (int i = 0; (field = at_result_field(i)); i++)
        if (field->group == AT_FIELD_RESULTS && field->count <= MAX_WIDTH && is_column(a->results, field))
            AT_TRY(pick_field(a, a->results, field, rows, n, record->results));
    AT_TRY(pick_key(a, AT_GROUP_CASES, "attest.cases", "case", AT_FIELD_CASES, rows, n, record->results));
    AT_TRY(pick_key(a, AT_GROUP_KERNELS, "attest.kernels", "kernel", AT_FIELD_KERNELS, rows, n, record->results));
    AT_TRY(pick_ledger(a, rows, n, record->results));
    for (int64_t i = 0; i < n; i++)
        AT_TRY(at_result_check(&record->results[i], path));
    return AT_OK;
}

at_status at_archive_read_rows(const char *path, const int64_t *rows, int64_t n, struct at_run_record *record) {
    struct open_archive a = { .id = H5I_INVALID_HID, .results = H5I_INVALID_HID };
    at_run_record_init(record);
    at_guard_begin(path);
    const at_status status = close_results(&a, pick_all(&a, path, rows, n, record));
    at_guard_end();
    if (status != AT_OK)
        at_run_record_release(record);
    return status;
}
