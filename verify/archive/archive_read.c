/* A record from RUN.h5, equal to the one it was written from except for the times.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the columns of the field tables are read, so columns of a later minor version are ignored. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/columns_read.h"
#include "verify/archive/guard.h"
#include "verify/archive/layout.h"
#include "verify/result/record.h"

/* Rows of a group that is being read; source.context is this struct. */
struct target {
    struct at_archive_source source;
    struct at_result *results;
    const int64_t *result_of; /* rows of the ledger */
    const int8_t *stage_of;
};

static char *result_row(const struct at_archive_source *source, hsize_t i) {
    const struct target *t = source->context;
    return (char *)&t->results[i];
}

static char *total_row(const struct at_archive_source *source, hsize_t i) {
    const struct target *t = source->context;
    return (char *)&t->results[t->result_of[i]].ledger;
}

static char *stage_row(const struct at_archive_source *source, hsize_t i) {
    const struct target *t = source->context;
    return (char *)&t->results[t->result_of[i]].ledger.stage[t->stage_of[i]];
}

/* An int64 column with values 0 .. limit - 1; *values is the caller's, also after a failure. */
static at_status read_index(const struct target *t, const char *name, int64_t limit, int64_t **values) {
    *values = calloc(t->source.n + 1, sizeof **values);
    if (!*values)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", t->source.file, name);
    AT_TRY(at_h5_read(t->source.file, t->source.group, name, AT_H5_I64, 1, &t->source.n, *values));
    for (hsize_t i = 0; i < t->source.n; i++)
        if ((*values)[i] < 0 || (*values)[i] >= limit)
            return AT_FAIL(AT_USAGE, "%s: row %" PRIu64 " of %s refers to row %" PRId64 " of %" PRId64, t->source.file,
                           (uint64_t)i, name, (*values)[i], limit);
    return AT_OK;
}

/* ---- groups ---- */

/* Columns that came with versions 1.2.0 to 1.4.0 and 1.10.0; an older archive has none: nothing was predicted, captured or
 * counted then, and no sum was tested. */
static int came_later(const struct at_field *field) {
    static const char *const begins[] = { "predicted_", "graph_", "counter_", "aggregate_", "resolution", "looseness" };
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(field->name, begins[i], strlen(begins[i])) == 0)
            return 1;
    return 0;
}

static at_status read_fields(const struct target *t, enum at_field_group group) {
    const struct at_field *field;
    for (int i = 0; (field = at_result_field(i)); i++)
        if (field->group == group && !(came_later(field) && H5Lexists(t->source.group, field->name, H5P_DEFAULT) <= 0))
            AT_TRY(at_archive_read_field(&t->source, field));
    return AT_OK;
}

/* Rows of /cases or /kernels, read into results of their own, then copied to the results that refer to them. */
static at_status read_table(const char *file, hid_t root, const char *name, const char *type, const char *scale,
                            enum at_field_group group, const struct target *results) {
    at_status status = AT_OK;
    const struct at_field *field;
    int64_t *index = NULL;
    struct target t = { .source = { .file = file, .row_of = result_row, .context = &t } };
    AT_TRY_OUT(at_archive_open_group(file, root, name, type, &t.source.group));
    AT_TRY_OUT(at_h5_length(file, t.source.group, scale, &t.source.n));
    if (t.source.n > results->source.n)
        AT_FAIL_OUT(AT_USAGE, "%s: %s has %" PRIu64 " rows for %" PRIu64 " results", file, name, (uint64_t)t.source.n,
                    (uint64_t)results->source.n);
    t.results = calloc(t.source.n + 1, sizeof *t.results);
    if (!t.results)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %" PRIu64 " rows of %s", file, (uint64_t)t.source.n, name);
    AT_TRY_OUT(read_fields(&t, group));
    AT_TRY_OUT(read_index(results, scale, (int64_t)t.source.n, &index));
    for (int i = 0; (field = at_result_field(i)); i++)
        for (hsize_t row = 0; field->group == group && row < results->source.n; row++)
            memcpy(at_field_at(field, &results->results[row]), at_field_at(field, &t.results[index[row]]), field->size);
out:
    free(index);
    free(t.results);
    at_h5_close(t.source.group);
    return status;
}

/* A result takes far more than 16 bytes of a file, so a longer axis is a lie, found before memory is asked for. */
static at_status read_results(const char *file, uint64_t bytes, hid_t root, struct target *t) {
    *t = (struct target){ .source = { .file = file, .row_of = result_row, .context = t } };
    AT_TRY(at_archive_open_group(file, root, AT_GROUP_RESULTS, "attest.results", &t->source.group));
    AT_TRY(at_h5_length(file, t->source.group, "result", &t->source.n));
    if (t->source.n > bytes / 16)
        return AT_FAIL(AT_USAGE, "%s: claims %" PRIu64 " results in %" PRIu64 " bytes", file, (uint64_t)t->source.n,
                       bytes);
    t->results = calloc(t->source.n + 1, sizeof *t->results);
    if (!t->results)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %" PRIu64 " results", file, (uint64_t)t->source.n);
    for (hsize_t i = 0; i < t->source.n; i++)
        at_result_begin(&t->results[i]);
    return read_fields(t, AT_FIELD_RESULTS);
}

/* ---- ledger ---- */

static at_status read_totals(const char *file, hid_t ledger, const struct target *results) {
    static const struct at_archive_place first = { offsetof(struct at_ledger, has_laundered),
                                                   offsetof(struct at_ledger, first_laundered), "first_laundered" };
    at_status status = AT_OK;
    const struct at_field *field;
    int64_t *index = NULL;
    struct target t = { .source = { .file = file, .row_of = total_row, .context = &t }, .results = results->results };
    AT_TRY_OUT(at_archive_open_group(file, ledger, AT_GROUP_TOTALS, "attest.ledger_totals", &t.source.group));
    AT_TRY_OUT(at_h5_length(file, t.source.group, "total", &t.source.n));
    AT_TRY_OUT(read_index(&t, "result", (int64_t)results->source.n, &index));
    t.result_of = index;
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        AT_TRY_OUT(at_archive_read_field(&t.source, field));
    AT_TRY_OUT(at_archive_read_places(&t.source, &first));
out:
    free(index);
    at_h5_close(t.source.group);
    return status;
}

static at_status read_stages(const struct target *t, int8_t **stages) {
    *stages = calloc(t->source.n + 1, 1);
    if (!*stages)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column stage", t->source.file);
    AT_TRY(at_h5_read(t->source.file, t->source.group, "stage", AT_H5_I8, 1, &t->source.n, *stages));
    for (hsize_t i = 0; i < t->source.n; i++)
        if ((*stages)[i] < 0 || (*stages)[i] >= (int)AT_STAGE_COUNT)
            return AT_FAIL(AT_USAGE, "%s: row %" PRIu64 " of stage is %d, which has no meaning", t->source.file,
                           (uint64_t)i, (*stages)[i]);
    return AT_OK;
}

static at_status read_ledger(const char *file, hid_t root, const struct target *results) {
    static const struct at_archive_place first = { offsetof(struct at_ledger_row, has_first),
                                                   offsetof(struct at_ledger_row, first), "first" };
    at_status status = AT_OK;
    const struct at_field *field;
    int64_t *index = NULL;
    int8_t *stages = NULL;
    struct target t = { .source = { .file = file, .row_of = stage_row, .context = &t }, .results = results->results };
    AT_TRY_OUT(at_archive_open_group(file, root, AT_GROUP_LEDGER, "attest.ledger", &t.source.group));
    AT_TRY_OUT(at_h5_length(file, t.source.group, "row", &t.source.n));
    AT_TRY_OUT(read_index(&t, "result", (int64_t)results->source.n, &index));
    AT_TRY_OUT(read_stages(&t, &stages));
    t.result_of = index;
    t.stage_of = stages;
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY_OUT(at_archive_read_field(&t.source, field));
    AT_TRY_OUT(at_archive_read_places(&t.source, &first));
    AT_TRY_OUT(read_totals(file, t.source.group, results));
out:
    free(index);
    free(stages);
    at_h5_close(t.source.group);
    return status;
}

/* ---- the file ---- */

static at_status read_all(const char *file, uint64_t bytes, hid_t id, struct at_run_record *record) {
    at_status status = AT_OK;
    struct target results = { .source.group = H5I_INVALID_HID };
    AT_TRY_OUT(at_archive_check_version(file, id, "attest.archive", "the file"));
    AT_TRY_OUT(at_archive_read_provenance(file, id, record));
    AT_TRY_OUT(read_results(file, bytes, id, &results));
    AT_TRY_OUT(read_table(file, id, AT_GROUP_CASES, "attest.cases", "case", AT_FIELD_CASES, &results));
    AT_TRY_OUT(read_table(file, id, AT_GROUP_KERNELS, "attest.kernels", "kernel", AT_FIELD_KERNELS, &results));
    AT_TRY_OUT(read_ledger(file, id, &results));
    for (hsize_t i = 0; i < results.source.n; i++)
        AT_TRY_OUT(at_result_check(&results.results[i], file));
    record->results = results.results;
    record->n = record->capacity = (int64_t)results.source.n;
    results.results = NULL;
out:
    free(results.results);
    at_h5_close(results.source.group);
    return status;
}

static at_status read_file(const char *path, struct at_run_record *record) {
    uint64_t bytes;
    hid_t id;
    AT_TRY(at_archive_open(path, &id, &bytes));
    at_status status = read_all(path, bytes, id, record);
    if (H5Fclose(id) < 0 && status == AT_OK)
        status = at_h5_fail(AT_USAGE, path, "close", "the archive");
    return status;
}

at_status at_archive_read(const char *path, struct at_run_record *record) {
    at_run_record_init(record);
    at_guard_begin(path);
    const at_status status = read_file(path, record);
    at_guard_end();
    if (status != AT_OK)
        at_run_record_release(record);
    return status;
}
