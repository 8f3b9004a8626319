/* Tidy CSV: a file for each table of an archive.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/csv_write.h"
#include "notebooks_export/export.h"
#include "notebooks_export/export_distributions.h"
#include "verify/cli/progress.h"

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
    struct at_frame *frame; /* whose rows it has */
};

/* Arrays have a file of their own. */
enum { WIDEST = 8 };
static int is_narrow(const struct at_frame_column *c) { return c->width <= WIDEST; }
static int is_wide(const struct at_frame_column *c) { return c->width > WIDEST; }

/* ---- values ---- */

static void put_value(FILE *f, const struct field *field, int64_t i) {
    const struct at_frame_column *c = field->column;
    const int64_t row = field->row_of ? field->row_of->at.i64[i - field->row_of->first] : i;
    const int64_t at = (row - c->first) * c->width + field->place;
    switch (c->kind) {
    case AT_FRAME_TEXT:
        at_csv_text(f, c->at.text[at]);
        break;
    case AT_FRAME_FLAG:
        at_csv_text(f, c->flag[c->at.i64[at]]);
        break;
    case AT_FRAME_I64:
        if (!(c->has_missing && c->at.i64[at] == -1))
            at_csv_integer(f, c->at.i64[at] < 0 ? -(uint64_t)c->at.i64[at] : (uint64_t)c->at.i64[at],
                           c->at.i64[at] < 0);
        break;
    case AT_FRAME_U64:
        at_csv_integer(f, c->at.u64[at], 0);
        break;
    case AT_FRAME_F64:
        at_csv_number(f, c->at.f64[at]);
        break;
    }
}

static void put_titles(FILE *f, const struct sheet *sheet) {
    for (int c = 0; c < sheet->n; c++) {
        fputs(c ? "," : "", f);
        at_csv_text(f, sheet->fields[c].name);
    }
    fputs("\r\n", f);
}

static void put_rows(FILE *f, const struct sheet *sheet, int64_t first, int64_t end) {
    for (int64_t i = first; i < end && !ferror(f); i++) {
        for (int c = 0; c < sheet->n; c++) {
            if (c)
                putc_unlocked(',', f);
            put_value(f, &sheet->fields[c], i);
        }
        fputs("\r\n", f);
    }
}

/* Window by window; `next` gets ready what else the rows of one need (NULL: nothing). */
static at_status write_sheet(struct at_export *e, const struct sheet *sheet, const char *what,
                             at_status (*next)(void *context, int64_t first, int64_t n), void *context) {
    struct at_atomic_file file;
    at_status status = AT_OK;
    AT_TRY(at_export_begin(e, what, "csv", &file));
    struct at_progress progress;
    at_progress_start(&progress, "rows of CSV", sheet->frame->n);
    put_titles(file.stream, sheet);
    const int64_t step = sheet->frame->is_open ? AT_FRAME_ROWS : sheet->frame->n + 1;
    for (int64_t at = 0; at < sheet->frame->n; at += step) {
        const int64_t n = sheet->frame->n - at < step ? sheet->frame->n - at : step;
        AT_TRY_OUT(at_frame_window(e->archive, sheet->frame, at, n, is_narrow));
        if (next)
            AT_TRY_OUT(next(context, at, n));
        put_rows(file.stream, sheet, at, at + n);
        at_progress_step(&progress, n, 0, what);
    }
    at_progress_end(&progress);
    return at_export_end(e, &file);
out:
    at_progress_end(&progress);
    at_atomic_abandon(&file);
    return status;
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
        if (!is_narrow(column))
            continue;
        for (int place = 0; place < column->width; place++)
            AT_TRY(add_field(sheet, column, place, row_of, prefix));
    }
    return AT_OK;
}

/* ---- tables ---- */

static struct at_frame *frame_of(struct at_export *e, const struct at_frame *frame) {
    return &e->frames.items[frame - e->frames.items];
}

/* Cases and kernels, which every window of results may need, are there at once. */
static at_status load(struct at_export *e, const struct at_frame *frame) {
    return frame ? at_frame_window(e->archive, frame_of(e, frame), 0, frame->n, NULL) : AT_OK;
}

struct joined {
    struct at_export *e;
    const struct at_export_results *r;
};

static at_status check_window(void *context, int64_t first, int64_t n) {
    const struct joined *j = context;
    (void)first;
    (void)n;
    return at_export_check(j->e, j->r);
}

static at_status write_results(struct at_export *e, const struct at_export_results *r) {
    struct sheet sheet = { .frame = frame_of(e, r->results) };
    struct joined joined = { e, r };
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
    AT_TRY_OUT(write_sheet(e, &sheet, "results", check_window, &joined));
out:
    free(sheet.fields);
    return status;
}

static void put_bins(FILE *f, const struct at_frame_column *hist, int64_t first, int64_t n) {
    const uint64_t *bins = hist->at.u64;
    for (int64_t i = 0; i < n; i++, bins += hist->width)
        for (int b = 0; b < hist->width; b++)
            if (bins[b])
                fprintf(f, "%" PRId64 ",%d,%" PRIu64 "\r\n", first + i, b - 56, bins[b]);
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
    const int64_t step = r->results->is_open ? AT_FRAME_ROWS : r->results->n + 1;
    for (int64_t at = 0; at < r->results->n; at += step) {
        const int64_t n = r->results->n - at < step ? r->results->n - at : step;
        const at_status status = at_frame_window(e->archive, frame_of(e, r->results), at, n, is_wide);
        if (status != AT_OK) {
            at_atomic_abandon(&file);
            return status;
        }
        put_bins(file.stream, hist, at, n);
    }
    return at_export_end(e, &file);
}

/* Of a window of the ledger: the rows of /kernels and /cases that it is of, and the results that it names. */
struct of_ledger {
    struct at_export *e;
    const struct at_export_results *r;
    const struct at_frame *ledger;
    const struct at_frame_column *result;
    struct at_frame_column kernel_of, case_of;
    int64_t first, end; /* results that are there, while these are open */
};

static int is_needed(const struct at_frame_column *c) {
    return strcmp(c->name, "case") == 0 || strcmp(c->name, "kernel") == 0 || strcmp(c->name, "tensor") == 0;
}

/* The results from the first to the last that rows of the window are of: in an archive of attest's few more than the rows. */
static at_status load_results(struct of_ledger *o, int64_t n) {
    const int64_t *rows = o->result->at.i64;
    int64_t first = INT64_MAX, end = 0;
    for (int64_t i = 0; i < n; i++) {
        if (rows[i] < 0 || rows[i] >= o->r->results->n)
            return AT_FAIL(AT_USAGE, "%s: row %" PRId64 " of %s refers to no result", o->e->archive,
                           o->result->first + i, o->ledger->group);
        first = rows[i] < first ? rows[i] : first;
        end = rows[i] >= end ? rows[i] + 1 : end;
    }
    if (!o->r->results->is_open || n == 0 || (first >= o->first && end <= o->end))
        return AT_OK;
    first -= first % AT_FRAME_ROWS;
    end = end + AT_FRAME_ROWS < o->r->results->n ? end + AT_FRAME_ROWS : o->r->results->n;
    o->first = first;
    o->end = end;
    AT_TRY(at_frame_window(o->e->archive, frame_of(o->e, o->r->results), first, end - first, is_needed));
    return at_export_check(o->e, o->r);
}

static at_status join_window(void *context, int64_t first, int64_t n) {
    struct of_ledger *o = context;
    AT_TRY(load_results(o, n));
    o->kernel_of.first = o->case_of.first = first;
    for (int64_t i = 0; i < n; i++) {
        o->kernel_of.at.i64[i] = at_export_kernel(o->r, o->result->at.i64[i]);
        o->case_of.at.i64[i] = at_export_case(o->r, o->result->at.i64[i]);
    }
    return AT_OK;
}

/* Rows of the ledger name their result by number; a reader of this file alone needs its names too. */
static at_status write_ledger(struct at_export *e, const struct at_export_results *r, const struct at_frame *ledger,
                              const char *what) {
    static const char *const from_kernel[] = { "family", "variant" };
    const struct at_frame_column *tensor = at_frame_column(r->results, "tensor"), *c;
    struct sheet sheet = { .frame = frame_of(e, ledger) };
    struct of_ledger o = { .e = e, .r = r, .ledger = ledger, .result = at_frame_column(ledger, "result") };
    at_status status = AT_OK;
    const int64_t rows = ledger->is_open ? AT_FRAME_ROWS : ledger->n + 1;
    const int joins = o.result && r->results;
    o.kernel_of = o.case_of = (struct at_frame_column){ .kind = AT_FRAME_I64, .width = 1 };
    o.kernel_of.at.i64 = calloc((size_t)rows, sizeof(int64_t));
    o.case_of.at.i64 = calloc((size_t)rows, sizeof(int64_t));
    if (!o.kernel_of.at.i64 || !o.case_of.at.i64)
        AT_FAIL_OUT(AT_NO_MEMORY, "export: no memory for %s", what);
    if (joins && o.result->kind != AT_FRAME_I64)
        AT_FAIL_OUT(AT_USAGE, "%s: row 0 of %s refers to no result", e->archive, ledger->group);
    AT_TRY_OUT(add_columns(&sheet, ledger, NULL, ""));
    for (int k = 0; joins && k < 2; k++)
        if ((c = at_frame_column(r->kernels, from_kernel[k])))
            AT_TRY_OUT(add_field(&sheet, c, 0, &o.kernel_of, "of_"));
    if (joins && (c = at_frame_column(r->cases, "case_id")))
        AT_TRY_OUT(add_field(&sheet, c, 0, &o.case_of, "of_"));
    if (joins && tensor)
        AT_TRY_OUT(add_field(&sheet, tensor, 0, o.result, "of_"));
    AT_TRY_OUT(write_sheet(e, &sheet, what, joins ? join_window : NULL, &o));
out:
    free(o.kernel_of.at.i64);
    free(o.case_of.at.i64);
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

static at_status write_plain(struct at_export *e, struct at_frame *frame) {
    char what[128];
    struct sheet sheet = { .frame = frame };
    at_status status = AT_OK;
    file_name(frame->group, what, sizeof what);
    AT_TRY_OUT(add_columns(&sheet, frame, NULL, ""));
    AT_TRY_OUT(write_sheet(e, &sheet, what, NULL, NULL));
out:
    free(sheet.fields);
    return status;
}

at_status at_export_csv(struct at_export *e) {
    struct at_export_results r;
    AT_TRY(at_export_results_of(e, &r));
    if (r.results) {
        AT_TRY(load(e, r.cases));
        AT_TRY(load(e, r.kernels));
    }
    for (int i = 0; e->frames.items && i < e->frames.n; i++) {
        struct at_frame *frame = &e->frames.items[i];
        const int joined = frame == r.cases || frame == r.kernels;
        if (r.results && frame == r.results) {
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
