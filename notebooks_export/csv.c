/* Tidy CSV: a file for each table of an archive.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/csv_write.h"
#include "notebooks_export/export.h"
#include "notebooks_export/export_distributions.h"

/* A column of the file: one place of a column of a table, whose rows another table may choose. */
struct field {
    const struct at_frame_column *column;
    int place;
    const struct at_frame_column *row_of; /* NULL: row i of the file is row i of the column */
    char name[160];
};

struct sheet {
    struct field *fields;
    int n, capacity;
    int64_t rows;
};

/* ---- values ---- */

static void put_value(FILE *f, const struct field *field, int64_t i) {
    const struct at_frame_column *c = field->column;
    const int64_t row = field->row_of ? field->row_of->at.i64[i] : i, at = row * c->width + field->place;
    switch (c->kind) {
    case AT_FRAME_TEXT:
        at_csv_text(f, c->at.text[at]);
        break;
    case AT_FRAME_FLAG:
        at_csv_text(f, c->flag[c->at.i64[at]]);
        break;
    case AT_FRAME_I64:
        if (!(c->has_missing && c->at.i64[at] == -1))
            fprintf(f, "%" PRId64, c->at.i64[at]);
        break;
    case AT_FRAME_U64:
        fprintf(f, "%" PRIu64, c->at.u64[at]);
        break;
    case AT_FRAME_F64:
        at_csv_number(f, c->at.f64[at]);
        break;
    }
}

static at_status write_sheet(struct at_export *e, const struct sheet *sheet, const char *what) {
    struct at_atomic_file file;
    AT_TRY(at_export_begin(e, what, "csv", &file));
    for (int c = 0; c < sheet->n; c++) {
        fputs(c ? "," : "", file.stream);
        at_csv_text(file.stream, sheet->fields[c].name);
    }
    fputs("\r\n", file.stream);
    for (int64_t i = 0; i < sheet->rows && !ferror(file.stream); i++) {
        for (int c = 0; c < sheet->n; c++) {
            fputs(c ? "," : "", file.stream);
            put_value(file.stream, &sheet->fields[c], i);
        }
        fputs("\r\n", file.stream);
    }
    return at_export_end(e, &file);
}

/* ---- columns ---- */

static int has_name(const struct sheet *sheet, const char *name) {
    for (int i = 0; i < sheet->n; i++)
        if (strcmp(sheet->fields[i].name, name) == 0)
            return 1;
    return 0;
}

/* A name that is there already gets the prefix. */
static at_status add_field(struct sheet *sheet, const struct at_frame_column *c, int place,
                           const struct at_frame_column *row_of, const char *prefix) {
    char name[160];
    if (sheet->n == sheet->capacity) {
        const int capacity = 2 * sheet->capacity + 32;
        struct field *grown = realloc(sheet->fields, (size_t)capacity * sizeof *grown);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "export: no memory for columns");
        sheet->fields = grown;
        sheet->capacity = capacity;
    }
    snprintf(name, sizeof name, c->width > 1 ? "%.120s_%d" : "%.120s", c->name, place);
    struct field *field = &sheet->fields[sheet->n];
    *field = (struct field){ .column = c, .place = place, .row_of = row_of };
    snprintf(field->name, sizeof field->name, "%s%.130s", has_name(sheet, name) ? prefix : "", name);
    sheet->n++;
    return AT_OK;
}

/* Every column but arrays that have a file of their own (err_hist) and the scales of arrays. */
static at_status add_columns(struct sheet *sheet, const struct at_frame *frame, const struct at_frame_column *row_of,
                             const char *prefix) {
    for (int c = 0; frame && c < frame->n_columns; c++) {
        const struct at_frame_column *column = &frame->columns[c];
        if (column->width > 8)
            continue;
        for (int place = 0; place < column->width; place++)
            AT_TRY(add_field(sheet, column, place, row_of, prefix));
    }
    return AT_OK;
}

/* ---- tables ---- */

static at_status write_results(struct at_export *e, const struct at_export_results *r) {
    struct sheet sheet = { .rows = r->results->n };
    at_status status = AT_OK;
    AT_TRY_OUT(add_columns(&sheet, r->results, NULL, ""));
    /* the columns that join are there already */
    const struct at_frame_column *first_case = r->cases->columns, *first_kernel = r->kernels->columns;
    for (int c = 0; c < r->cases->n_columns; c++)
        if (&r->cases->columns[c] != first_case)
            AT_TRY_OUT(add_field(&sheet, &r->cases->columns[c], 0, r->case_of, "case_"));
    for (int c = 0; c < r->kernels->n_columns; c++)
        if (&r->kernels->columns[c] != first_kernel)
            AT_TRY_OUT(add_field(&sheet, &r->kernels->columns[c], 0, r->kernel_of, "kernel_"));
    AT_TRY_OUT(write_sheet(e, &sheet, "results"));
out:
    free(sheet.fields);
    return status;
}

/* Bins that hold something: result, lower edge, elements. The edges are not a column of the frame, since they have
 * another length; the first is -56 (verify/archive/README.md). */
static at_status write_histogram(struct at_export *e, const struct at_export_results *r) {
    const struct at_frame_column *hist = at_frame_column(r->results, "err_hist");
    struct at_atomic_file file;
    if (!hist || hist->kind != AT_FRAME_U64)
        return AT_OK;
    AT_TRY(at_export_begin(e, "err_hist", "csv", &file));
    fputs("result,err_bin,elements\r\n", file.stream);
    for (int64_t i = 0; i < r->results->n; i++)
        for (int b = 0; b < hist->width; b++)
            if (hist->at.u64[i * hist->width + b])
                fprintf(file.stream, "%" PRId64 ",%d,%" PRIu64 "\r\n", i, b - 56, hist->at.u64[i * hist->width + b]);
    return at_export_end(e, &file);
}

/* Rows of the ledger name their result by number; a reader of this file alone needs its names too. */
static at_status write_ledger(struct at_export *e, const struct at_export_results *r, const struct at_frame *ledger,
                              const char *what) {
    static const char *const from_kernel[] = { "family", "variant" }, *const from_case[] = { "case_id" };
    const struct at_frame_column *result = at_frame_column(ledger, "result"), *tensor;
    struct sheet sheet = { .rows = ledger->n };
    struct at_frame_column kernel_of = { .kind = AT_FRAME_I64, .width = 1 }, case_of = kernel_of;
    at_status status = AT_OK;
    kernel_of.at.i64 = calloc((size_t)ledger->n + 1, sizeof *kernel_of.at.i64);
    case_of.at.i64 = calloc((size_t)ledger->n + 1, sizeof *case_of.at.i64);
    if (!kernel_of.at.i64 || !case_of.at.i64)
        AT_FAIL_OUT(AT_NO_MEMORY, "export: no memory for %s", what);
    AT_TRY_OUT(add_columns(&sheet, ledger, NULL, ""));
    for (int64_t i = 0; result && r->results && i < ledger->n; i++) {
        const int64_t row = result->kind == AT_FRAME_I64 ? result->at.i64[i] : -1;
        if (row < 0 || row >= r->results->n)
            AT_FAIL_OUT(AT_USAGE, "%s: row %" PRId64 " of %s refers to no result", e->archive, i, ledger->group);
        kernel_of.at.i64[i] = at_export_kernel(r, row);
        case_of.at.i64[i] = at_export_case(r, row);
    }
    for (size_t k = 0; result && r->results && k < 3; k++) {
        const struct at_frame_column *c =
            k < 2 ? at_frame_column(r->kernels, from_kernel[k]) : at_frame_column(r->cases, from_case[0]);
        if (c)
            AT_TRY_OUT(add_field(&sheet, c, 0, k < 2 ? &kernel_of : &case_of, "of_"));
    }
    if (result && r->results && (tensor = at_frame_column(r->results, "tensor")))
        AT_TRY_OUT(add_field(&sheet, tensor, 0, result, "of_"));
    AT_TRY_OUT(write_sheet(e, &sheet, what));
out:
    free(kernel_of.at.i64);
    free(case_of.at.i64);
    free(sheet.fields);
    return status;
}

/* "studies/accumulate" to "studies_accumulate"; anything that is no letter, digit or point, too. */
static void file_name(const char *group, char *name, size_t size) {
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
    snprintf(name, size, "%s", group);
    for (; *name; name++)
        if (!strchr(fine, *name))
            *name = '_';
}

static at_status write_plain(struct at_export *e, const struct at_frame *frame) {
    char what[128];
    struct sheet sheet = { .rows = frame->n };
    at_status status = AT_OK;
    file_name(frame->group, what, sizeof what);
    AT_TRY_OUT(add_columns(&sheet, frame, NULL, ""));
    AT_TRY_OUT(write_sheet(e, &sheet, what));
out:
    free(sheet.fields);
    return status;
}

at_status at_export_csv(struct at_export *e) {
    struct at_export_results r;
    AT_TRY(at_export_results_of(e, &r));
    for (int i = 0; i < e->frames.n; i++) {
        const struct at_frame *frame = &e->frames.items[i];
        const int joined = frame == r.cases || frame == r.kernels;
        if (frame == r.results) {
            AT_TRY(write_results(e, &r));
            AT_TRY(write_histogram(e, &r));
        } else if (strcmp(frame->group, "ledger") == 0) {
            AT_TRY(write_ledger(e, &r, frame, "ledger"));
        } else if (strcmp(frame->group, "ledger/totals") == 0) {
            AT_TRY(write_ledger(e, &r, frame, "ledger_totals"));
        } else if (!(joined && r.results)) {
            AT_TRY(write_plain(e, frame));
        }
    }
    return at_export_distributions_csv(e);
}
