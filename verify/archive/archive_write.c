/* RUN.h5 from results that come one after the other: every group and column of README.md, the same bytes for equal results.
 * SPDX-License-Identifier: Apache-2.0
 *
 * HDF5 gets column after column, results come row by row, and a million of them do not fit memory: what a piece of a column
 * cannot hold goes through a scratch file (column_store.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/columns.h"
#include "verify/archive/h5util.h"
#include "verify/archive/layout.h"
#include "verify/result/record.h"
#include "verify/result/result_heap.h"

/* All that is known of the results when the last one has come. */
struct tables {
    const char *file;
    struct at_scratch scratch;
    struct at_archive_keys cases, kernels;
    struct at_store results, ledger, totals;
    struct at_result **kept; /* copies of the first result of each job with a witness */
    int64_t n_kept, kept_capacity;
};

/* Columns before those of the fields. */
enum { RESULT_CASE, RESULT_KERNEL, RESULT_FIELDS };
enum { LEDGER_RESULT, LEDGER_STAGE, LEDGER_FIELDS };
enum { TOTAL_RESULT, TOTAL_FIELDS };

/* ---- columns ---- */

static at_status fields_of(struct at_store *store, const struct at_field *(*field_at)(int i), int results) {
    const struct at_field *field;
    for (int i = 0; (field = field_at(i)); i++)
        if (!results || field->group == AT_FIELD_RESULTS)
            AT_TRY(at_store_column(store, at_archive_type(field->kind), field->count));
    return AT_OK;
}

static at_status place_columns(struct at_store *store) {
    for (int p = 0; p < AT_PLACE_PARTS; p++)
        AT_TRY(at_store_column(store, AT_H5_I64, 1));
    return AT_OK;
}

static at_status begin(struct tables *t, const char *file) {
    *t = (struct tables){ .file = file, .scratch.beside = file };
    at_store_init(&t->results, file, &t->scratch);
    at_store_init(&t->ledger, file, &t->scratch);
    at_store_init(&t->totals, file, &t->scratch);
    AT_TRY(at_archive_keys_begin(&t->cases, AT_FIELD_CASES));
    AT_TRY(at_archive_keys_begin(&t->kernels, AT_FIELD_KERNELS));
    AT_TRY(at_store_column(&t->results, AT_H5_I64, 1));
    AT_TRY(at_store_column(&t->results, AT_H5_I64, 1));
    AT_TRY(fields_of(&t->results, at_result_field, 1));
    AT_TRY(at_store_column(&t->ledger, AT_H5_I64, 1));
    AT_TRY(at_store_column(&t->ledger, AT_H5_I8, 1));
    AT_TRY(fields_of(&t->ledger, at_ledger_row_field, 0));
    AT_TRY(place_columns(&t->ledger));
    AT_TRY(at_store_column(&t->ledger, AT_H5_F64, 1)); /* headroom */
    AT_TRY(at_store_column(&t->totals, AT_H5_I64, 1));
    AT_TRY(fields_of(&t->totals, at_ledger_total_field, 0));
    return place_columns(&t->totals);
}

static void release(struct tables *t) {
    at_store_release(&t->results);
    at_store_release(&t->ledger);
    at_store_release(&t->totals);
    at_archive_keys_release(&t->cases);
    at_archive_keys_release(&t->kernels);
    at_scratch_release(&t->scratch);
    for (int64_t i = 0; i < t->n_kept; i++)
        free(t->kept[i]);
    free(t->kept);
}

/* ---- a result ---- */

/* -1 where there is none. */
static at_status put_place(struct at_store *store, int *c, int has, const struct at_place *place) {
    for (int p = 0; p < AT_PLACE_PARTS; p++) {
        int64_t value = -1;
        if (has)
            memcpy(&value, (const char *)place + at_archive_parts[p].offset, sizeof value);
        AT_TRY(at_store_put(store, (*c)++, &value));
    }
    return AT_OK;
}

static at_status put_stage(struct tables *t, int64_t result, enum at_stage stage, const struct at_ledger_row *row) {
    const struct at_field *field;
    const int8_t number = (int8_t)stage;
    const double headroom = at_ledger_headroom(row);
    int c = LEDGER_FIELDS;
    AT_TRY(at_store_put(&t->ledger, LEDGER_RESULT, &result));
    AT_TRY(at_store_put(&t->ledger, LEDGER_STAGE, &number));
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY(at_archive_put(&t->ledger, c++, field, row));
    AT_TRY(put_place(&t->ledger, &c, row->has_first, &row->first));
    AT_TRY(at_store_put(&t->ledger, c, &headroom));
    return at_store_end_row(&t->ledger);
}

static at_status put_ledger(struct tables *t, int64_t result, const struct at_ledger *ledger) {
    const struct at_field *field;
    int c = TOTAL_FIELDS;
    for (int s = 0; s < AT_STAGE_COUNT; s++)
        AT_TRY(put_stage(t, result, (enum at_stage)s, &ledger->stage[s]));
    AT_TRY(at_store_put(&t->totals, TOTAL_RESULT, &result));
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        AT_TRY(at_archive_put(&t->totals, c++, field, ledger));
    AT_TRY(put_place(&t->totals, &c, ledger->has_laundered, &ledger->first_laundered));
    return at_store_end_row(&t->totals);
}

/* Results of one job follow one another, and its witness is one. */
static at_status keep(struct tables *t, const struct at_result *r) {
    if (t->n_kept && t->kept[t->n_kept - 1]->plan_index == r->plan_index)
        return AT_OK;
    if (t->n_kept == t->kept_capacity) {
        const int64_t capacity = 2 * t->kept_capacity + 16;
        struct at_result **grown = realloc(t->kept, (size_t)capacity * sizeof *grown);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "%s: no memory for the list of witnesses", t->file);
        t->kept = grown;
        t->kept_capacity = capacity;
    }
    struct at_result *copy = malloc(sizeof *copy);
    if (!copy)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for the list of witnesses", t->file);
    *copy = *r;
    t->kept[t->n_kept++] = copy;
    return AT_OK;
}

static at_status put_result(struct tables *t, const struct at_result *r) {
    const struct at_field *field;
    const int64_t row = t->results.n;
    int64_t at;
    int c = RESULT_FIELDS;
    AT_TRY(at_archive_keys_find(&t->cases, r, &at));
    AT_TRY(at_store_put(&t->results, RESULT_CASE, &at));
    AT_TRY(at_archive_keys_find(&t->kernels, r, &at));
    AT_TRY(at_store_put(&t->results, RESULT_KERNEL, &at));
    for (int i = 0; (field = at_result_field(i)); i++)
        if (field->group == AT_FIELD_RESULTS)
            AT_TRY(at_archive_put(&t->results, c++, field, r));
    AT_TRY(at_store_end_row(&t->results));
    if (r->has_ledger)
        AT_TRY(put_ledger(t, row, &r->ledger));
    return r->kept ? keep(t, r) : AT_OK;
}

/* ---- /results ---- */

static at_status write_results(const char *file, hid_t root, struct tables *t) {
    static const char *const axes[] = { "result" };
    static const char *const starts[] = { "err_bin", "axis" };
    at_status status = AT_OK;
    const struct at_field *field;
    struct at_store *store = &t->results;
    int c = RESULT_FIELDS;
    struct at_archive_group g = { .file = file, .n = (hsize_t)store->n };
    hid_t bins = H5I_INVALID_HID, axis = H5I_INVALID_HID;
    AT_TRY(at_h5_group(file, root, AT_GROUP_RESULTS, "attest.results", "NXdata", &g.group));
    AT_TRY_OUT(at_h5_attr_text(file, g.group, "signal", "ratio_max"));
    AT_TRY_OUT(at_h5_attr_texts(file, g.group, "axes", 1, axes));
    AT_TRY_OUT(at_h5_scale(file, g.group, axes[0], g.n, 0, "row: one case, variant and tensor", &g.scale));
    AT_TRY_OUT(at_h5_scale(file, g.group, starts[0], AT_HIST_BINS, -56,
                           "lower end of a bin of log2(error/limit); first bin: anything below, last: anything above",
                           &bins));
    AT_TRY_OUT(at_h5_scale(file, g.group, starts[1], 4, 0, "coordinate of an element", &axis));
    AT_TRY_OUT(at_archive_stored_number(&g, "case", store, RESULT_CASE, "1", 0, "row of /cases"));
    AT_TRY_OUT(at_archive_stored_number(&g, "kernel", store, RESULT_KERNEL, "1", 0, "row of /kernels"));
    for (int i = 0; (field = at_result_field(i)); i++) {
        if (field->group != AT_FIELD_RESULTS)
            continue;
        g.inner = field->count == AT_HIST_BINS ? bins : axis;
        AT_TRY_OUT(at_archive_stored(&g, field, store, c++));
    }
out:
    at_h5_close(axis);
    at_h5_close(bins);
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}

/* ---- /ledger ---- */

static at_status write_places(const struct at_archive_group *g, const char *prefix, struct at_store *store, int *c) {
    for (int p = 0; p < AT_PLACE_PARTS; p++) {
        char name[64], meaning[96];
        snprintf(name, sizeof name, "%s_%s", prefix, at_archive_parts[p].name);
        snprintf(meaning, sizeof meaning, "first place it happened at: %s", at_archive_parts[p].meaning);
        AT_TRY(at_archive_stored_number(g, name, store, (*c)++, "1", 1, meaning));
    }
    return AT_OK;
}

static at_status write_totals(const char *file, hid_t ledger, struct tables *t) {
    at_status status = AT_OK;
    const struct at_field *field;
    int c = TOTAL_FIELDS;
    struct at_archive_group g = { .file = file, .n = (hsize_t)t->totals.n };
    AT_TRY(at_h5_group(file, ledger, AT_GROUP_TOTALS, "attest.ledger_totals", "NXcollection", &g.group));
    AT_TRY_OUT(at_h5_scale(file, g.group, "total", g.n, 0, "row: one result that has a ledger", &g.scale));
    AT_TRY_OUT(at_archive_stored_number(&g, "result", &t->totals, TOTAL_RESULT, "1", 0, "row of /results"));
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        AT_TRY_OUT(at_archive_stored(&g, field, &t->totals, c++));
    AT_TRY_OUT(write_places(&g, "first_laundered", &t->totals, &c));
out:
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}

static at_status write_stage(const struct at_archive_group *g, struct at_store *ledger) {
    char meanings[256] = "";
    for (int s = 0; s < AT_STAGE_COUNT; s++)
        snprintf(meanings + strlen(meanings), sizeof meanings - strlen(meanings), "%s%s", s ? " " : "",
                 at_stage_name((enum at_stage)s));
    struct at_h5_column column = { .name = "stage",
                                   .units = "1",
                                   .long_name = "stage of the evaluation",
                                   .flag_meanings = meanings,
                                   .n_flags = AT_STAGE_COUNT };
    return at_archive_stored_column(g, &column, ledger, LEDGER_STAGE);
}

static at_status write_ledger(const char *file, hid_t root, struct tables *t) {
    static const char *const axes[] = { "row" };
    at_status status = AT_OK;
    const struct at_field *field;
    struct at_store *store = &t->ledger;
    int c = LEDGER_FIELDS;
    struct at_archive_group g = { .file = file, .n = (hsize_t)store->n, .scale = H5I_INVALID_HID };
    AT_TRY(at_h5_group(file, root, AT_GROUP_LEDGER, "attest.ledger", "NXdata", &g.group));
    AT_TRY_OUT(at_h5_attr_text(file, g.group, "signal", "headroom"));
    AT_TRY_OUT(at_h5_attr_texts(file, g.group, "axes", 1, axes));
    AT_TRY_OUT(at_h5_scale(file, g.group, axes[0], g.n, 0, "row: one result and stage", &g.scale));
    AT_TRY_OUT(at_archive_stored_number(&g, "result", store, LEDGER_RESULT, "1", 0, "row of /results"));
    AT_TRY_OUT(write_stage(&g, store));
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY_OUT(at_archive_stored(&g, field, store, c++));
    AT_TRY_OUT(write_places(&g, "first", store, &c));
    AT_TRY_OUT(at_archive_stored_number(&g, "headroom", store, c, "bit", 0,
                                        "log2(65504 / max_abs); inf: nothing but zeros; NaN: no finite value"));
    AT_TRY_OUT(write_totals(file, g.group, t));
out:
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}

/* ---- the file ---- */

at_status at_archive_write_root(const char *file, hid_t id, const char *shown_first) {
    AT_TRY(at_h5_attr_text(file, id, "NX_class", "NXroot"));
    AT_TRY(at_h5_attr_text(file, id, "default", shown_first));
    AT_TRY(at_h5_attr_text(file, id, "encoding-type", "attest.archive"));
    return at_h5_attr_text(file, id, "encoding-version", AT_ARCHIVE_VERSION);
}

static at_status write_all(const char *file, hid_t id, const struct at_run_record *head, struct tables *t) {
    AT_TRY(at_archive_write_root(file, id, AT_GROUP_RESULTS));
    AT_TRY(at_archive_write_provenance(file, id, head));
    AT_TRY(at_archive_write_cases(file, id, &t->cases));
    AT_TRY(at_archive_write_kernels(file, id, &t->kernels));
    AT_TRY(write_results(file, id, t));
    AT_TRY(write_ledger(file, id, t));
    return at_archive_write_witness(file, id, head, (const struct at_result *const *)t->kept, t->n_kept);
}

static at_status write_file(const struct at_run_record *head, struct tables *t, const char *path) {
    struct at_h5_out *out;
    hid_t id;
    AT_TRY(at_h5_create_out(path, &out, &id));
    const at_status status = write_all(path, id, head, t);
    if (status == AT_OK)
        return at_h5_save_out(out, id);
    const at_status failed = at_h5_out_failed(out); /* what HDF5 says of it is a consequence */
    at_h5_abandon_out(out, id);
    return failed != AT_OK ? failed : status;
}

at_status at_archive_write_from(const struct at_run_record *head, const struct at_result_source *source,
                                const char *path) {
    at_status status = AT_OK;
    struct tables t = { .file = path };
    at_h5_quiet();
    AT_TRY_OUT(begin(&t, path));
    for (int64_t i = 0; i < source->n; i++) {
        const struct at_result *result;
        AT_TRY_OUT(source->get(source->context, i, &result));
        AT_TRY_OUT(put_result(&t, result));
    }
    AT_TRY_OUT(write_file(head, &t, path));
out:
    release(&t);
    return status;
}

/* ---- from a record ---- */

static int compare(const void *a, const void *b) {
    return at_result_compare(*(const struct at_result *const *)a, *(const struct at_result *const *)b);
}

static at_status get_sorted(void *context, int64_t i, const struct at_result **result) {
    *result = ((const struct at_result *const *)context)[i];
    return AT_OK;
}

at_status at_archive_write(const struct at_run_record *record, const char *path) {
    const struct at_result_source stored = { record->n, at_result_heap_get, record->stored };
    if (record->stored)
        return at_archive_write_from(record, &stored, path);
    const struct at_result **sorted = calloc((size_t)record->n + 1, sizeof *sorted);
    if (!sorted)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %lld rows", path, (long long)record->n);
    for (int64_t i = 0; i < record->n; i++)
        sorted[i] = &record->results[i];
    qsort(sorted, (size_t)record->n, sizeof *sorted, compare);
    const struct at_result_source source = { .n = record->n, .get = get_sorted, .context = (void *)sorted };
    const at_status status = at_archive_write_from(record, &source, path);
    free(sorted);
    return status;
}
