/* Columns from arrays of structs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum at_h5_type column_type(enum at_field_kind kind) {
    switch (kind) {
    case AT_FIELD_TEXT:
        return AT_H5_TEXT;
    case AT_FIELD_STATE:
    case AT_FIELD_BOOL:
        return AT_H5_I8;
    case AT_FIELD_INT:
        return AT_H5_I32;
    case AT_FIELD_I64:
    case AT_FIELD_PLACE:
        return AT_H5_I64;
    case AT_FIELD_U64:
        return AT_H5_U64;
    case AT_FIELD_F64:
        return AT_H5_F64;
    }
    return AT_H5_TEXT;
}

/* Field `field` of one struct, to place i of a column. */
static void store(const struct at_field *field, const void *base, void *data, size_t i) {
    const void *at = at_field_of(field, base);
    switch (field->kind) {
    case AT_FIELD_TEXT:
        ((const char **)data)[i] = at;
        break;
    case AT_FIELD_STATE:
        ((int8_t *)data)[i] = (int8_t)(*(const enum at_state *)at);
        break;
    case AT_FIELD_BOOL:
        ((int8_t *)data)[i] = *(const int *)at != 0;
        break;
    case AT_FIELD_INT:
        ((int32_t *)data)[i] = *(const int *)at;
        break;
    case AT_FIELD_I64:
    case AT_FIELD_PLACE:
    case AT_FIELD_U64:
        memcpy((char *)data + i * field->size, at, field->size);
        break;
    case AT_FIELD_F64:
        ((double *)data)[i] = isnan(*(const double *)at) ? (double)NAN : *(const double *)at;
        break;
    }
}

/* Names of the values of a status-like field; NULL for others. */
static const char *flag_names(enum at_field_kind kind, char *text, size_t size, int *n) {
    if (kind == AT_FIELD_BOOL) {
        *n = 2;
        return "no yes";
    }
    if (kind != AT_FIELD_STATE)
        return NULL;
    *n = AT_STATE_COUNT;
    text[0] = 0;
    for (int s = 0; s < AT_STATE_COUNT; s++)
        snprintf(text + strlen(text), size - strlen(text), "%s%s", s ? " " : "", at_state_name((enum at_state)s));
    return text;
}

at_status at_archive_field(const struct at_archive_group *g, const struct at_field *field, const void *const *structs) {
    char meanings[256];
    enum at_h5_type type = column_type(field->kind);
    void *data = calloc(g->n + 1, at_h5_type_bytes(type) * (size_t)field->count);
    if (!data)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", g->file, field->name);
    for (size_t i = 0; i < g->n; i++)
        store(field, structs[i], data, i);
    struct at_h5_column column = { .name = field->name,
                                   .type = type,
                                   .rank = field->count > 1 ? 2 : 1,
                                   .dims = { g->n, (hsize_t)field->count },
                                   .scales = { g->scale, g->inner },
                                   .units = field->units,
                                   .long_name = field->meaning,
                                   .missing = field->kind == AT_FIELD_PLACE,
                                   .data = data };
    column.flag_meanings = flag_names(field->kind, meanings, sizeof meanings, &column.n_flags);
    at_status status = at_h5_write(g->file, g->group, &column);
    free(data);
    return status;
}

at_status at_archive_index(const struct at_archive_group *g, const char *name, const int64_t *values,
                           const char *long_name) {
    struct at_h5_column column = { .name = name,
                                   .type = AT_H5_I64,
                                   .rank = 1,
                                   .dims = { g->n },
                                   .scales = { g->scale },
                                   .units = "1",
                                   .long_name = long_name,
                                   .data = values };
    return at_h5_write(g->file, g->group, &column);
}

at_status at_archive_places(const struct at_archive_group *g, const char *prefix,
                            const struct at_place *const *places) {
    static const struct {
        const char *name, *meaning;
        size_t offset;
    } parts[] = {
        { "b", "request", offsetof(struct at_place, b) },
        { "h", "query head", offsetof(struct at_place, h) },
        { "q", "query of the request", offsetof(struct at_place, q) },
        { "k", "key", offsetof(struct at_place, k) },
        { "step", "accumulation step", offsetof(struct at_place, step) },
    };
    at_status status = AT_OK;
    int64_t *values = calloc(g->n + 1, sizeof *values);
    if (!values)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", g->file, prefix);
    for (size_t p = 0; p < sizeof parts / sizeof parts[0] && status == AT_OK; p++) {
        char name[64], meaning[96];
        snprintf(name, sizeof name, "%s_%s", prefix, parts[p].name);
        snprintf(meaning, sizeof meaning, "first place it happened at: %s", parts[p].meaning);
        for (size_t i = 0; i < g->n; i++) {
            values[i] = -1;
            if (places[i])
                memcpy(&values[i], (const char *)places[i] + parts[p].offset, sizeof values[i]);
        }
        struct at_h5_column column = { .name = name,
                                       .type = AT_H5_I64,
                                       .rank = 1,
                                       .dims = { g->n },
                                       .scales = { g->scale },
                                       .units = "1",
                                       .long_name = meaning,
                                       .missing = 1,
                                       .data = values };
        status = at_h5_write(g->file, g->group, &column);
    }
    free(values);
    return status;
}

/* ---- rows ---- */

static int compare(const void *a, const void *b) {
    return at_result_compare(*(const struct at_result *const *)a, *(const struct at_result *const *)b);
}

static int same_case(const struct at_result *a, const struct at_result *b) {
    return strcmp(a->case_id, b->case_id) == 0 && strcmp(a->role, b->role) == 0 && strcmp(a->expect, b->expect) == 0 &&
           strcmp(a->op, b->op) == 0;
}

static int same_kernel(const struct at_result *a, const struct at_result *b) {
    return strcmp(a->variant, b->variant) == 0 && strcmp(a->family, b->family) == 0 && strcmp(a->path, b->path) == 0 &&
           strcmp(a->runner, b->runner) == 0 && strcmp(a->numerics, b->numerics) == 0 &&
           strcmp(a->sha256, b->sha256) == 0;
}

/* Rows in order of first appearance; looked for from the end, as neighbours mostly share. */
static void number_rows(const struct at_archive_rows *rows,
                        int (*same)(const struct at_result *, const struct at_result *),
                        const struct at_result **unique, int64_t *n_unique, int64_t *row_of) {
    *n_unique = 0;
    for (int64_t i = 0; i < rows->n; i++) {
        int64_t row = *n_unique - 1;
        while (row >= 0 && !same(unique[row], rows->results[i]))
            row--;
        if (row < 0) {
            row = (*n_unique)++;
            unique[row] = rows->results[i];
        }
        row_of[i] = row;
    }
}

at_status at_archive_rows_make(const char *file, const struct at_run_record *record, struct at_archive_rows *rows) {
    size_t n = (size_t)record->n + 1;
    *rows = (struct at_archive_rows){ .n = record->n };
    rows->results = calloc(n, sizeof *rows->results);
    rows->cases = calloc(n, sizeof *rows->cases);
    rows->kernels = calloc(n, sizeof *rows->kernels);
    rows->case_of = calloc(n, sizeof *rows->case_of);
    rows->kernel_of = calloc(n, sizeof *rows->kernel_of);
    if (!rows->results || !rows->cases || !rows->kernels || !rows->case_of || !rows->kernel_of)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %zu rows", file, n);
    for (int64_t i = 0; i < record->n; i++)
        rows->results[i] = &record->results[i];
    qsort(rows->results, (size_t)record->n, sizeof *rows->results, compare);
    number_rows(rows, same_case, rows->cases, &rows->n_cases, rows->case_of);
    number_rows(rows, same_kernel, rows->kernels, &rows->n_kernels, rows->kernel_of);
    return AT_OK;
}

void at_archive_rows_release(struct at_archive_rows *rows) {
    free(rows->results);
    free(rows->cases);
    free(rows->kernels);
    free(rows->case_of);
    free(rows->kernel_of);
}
