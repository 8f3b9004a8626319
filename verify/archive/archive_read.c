/* A record from RUN.h5, equal to the one it was written from except for the times.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the columns of the field tables are read, so columns of a later minor version are ignored. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verify/archive/h5util.h"
#include "verify/archive/layout.h"
#include "verify/record.h"

/* Rows of a group that is being read. row_of[i]: the struct that row i fills. */
struct target {
    const char *file;
    hid_t group;
    hsize_t n;
    char *(*row_of)(const struct target *target, hsize_t i);
    struct at_result *results;
    const int64_t *result_of; /* rows of the ledger */
    const int8_t *stage_of;
};

static char *result_row(const struct target *t, hsize_t i) { return (char *)&t->results[i]; }

static char *total_row(const struct target *t, hsize_t i) { return (char *)&t->results[t->result_of[i]].ledger; }

static char *stage_row(const struct target *t, hsize_t i) {
    return (char *)&t->results[t->result_of[i]].ledger.stage[t->stage_of[i]];
}

/* ---- columns into fields ---- */

static at_status read_text_field(const struct target *t, const struct at_field *field) {
    at_status status = AT_OK;
    char **texts = calloc(t->n + 1, sizeof *texts);
    if (!texts)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", t->file, field->name);
    AT_TRY_OUT(at_h5_read(t->file, t->group, field->name, AT_H5_TEXT, 1, &t->n, texts));
    for (hsize_t i = 0; i < t->n; i++) {
        const char *text = texts[i] ? texts[i] : "";
        size_t n = strlen(text);
        if (n >= field->size)
            AT_FAIL_OUT(AT_USAGE, "%s: row %" PRIu64 " of %s has %zu bytes, wanted at most %zu", t->file, (uint64_t)i,
                        field->name, n, field->size - 1);
        memcpy(at_field_at(field, t->row_of(t, i)), text, n + 1);
    }
out:
    at_h5_free_texts(texts, t->n);
    free(texts);
    return status;
}

static at_status copy_values(const struct target *t, const struct at_field *field, const void *data) {
    for (hsize_t i = 0; i < t->n; i++) {
        void *at = at_field_at(field, t->row_of(t, i));
        if (field->kind == AT_FIELD_STATE || field->kind == AT_FIELD_BOOL) {
            const int8_t *values = data;
            const int value = values[i] < 0 ? -1 : (int)(uint8_t)values[i];
            if (value < 0 || value >= (field->kind == AT_FIELD_BOOL ? 2 : (int)AT_STATE_COUNT))
                return AT_FAIL(AT_USAGE, "%s: row %" PRIu64 " of %s is %d, which has no meaning", t->file, (uint64_t)i,
                               field->name, value);
            if (field->kind == AT_FIELD_BOOL)
                *(int *)at = value;
            else
                *(enum at_state *)at = (enum at_state)value;
        } else {
            memcpy(at, (const char *)data + i * field->size, field->size);
        }
    }
    return AT_OK;
}

static at_status read_field(const struct target *t, const struct at_field *field) {
    static const enum at_h5_type types[] = {
        [AT_FIELD_TEXT] = AT_H5_TEXT, [AT_FIELD_STATE] = AT_H5_I8, [AT_FIELD_BOOL] = AT_H5_I8,
        [AT_FIELD_INT] = AT_H5_I32,   [AT_FIELD_I64] = AT_H5_I64,  [AT_FIELD_PLACE] = AT_H5_I64,
        [AT_FIELD_U64] = AT_H5_U64,   [AT_FIELD_F64] = AT_H5_F64,
    };
    if (field->kind == AT_FIELD_TEXT)
        return read_text_field(t, field);
    hsize_t dims[2] = { t->n, (hsize_t)field->count };
    void *data = calloc(t->n + 1, at_h5_type_bytes(types[field->kind]) * (size_t)field->count);
    if (!data)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", t->file, field->name);
    at_status status =
        at_h5_read(t->file, t->group, field->name, types[field->kind], field->count > 1 ? 2 : 1, dims, data);
    if (status == AT_OK)
        status = copy_values(t, field, data);
    free(data);
    return status;
}

/* An int64 column with values 0 .. limit - 1; *values is the caller's, also after a failure. */
static at_status read_index(const struct target *t, const char *name, int64_t limit, int64_t **values) {
    *values = calloc(t->n + 1, sizeof **values);
    if (!*values)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", t->file, name);
    AT_TRY(at_h5_read(t->file, t->group, name, AT_H5_I64, 1, &t->n, *values));
    for (hsize_t i = 0; i < t->n; i++)
        if ((*values)[i] < 0 || (*values)[i] >= limit)
            return AT_FAIL(AT_USAGE, "%s: row %" PRIu64 " of %s refers to row %" PRId64 " of %" PRId64, t->file,
                           (uint64_t)i, name, (*values)[i], limit);
    return AT_OK;
}

/* ---- groups ---- */

/* "1.2.0" -> 1; -1 if it starts with no number. */
static long major_of(const char *version) {
    char *end;
    long major = strtol(version, &end, 10);
    return end != version && (*end == '.' || *end == 0) ? major : -1;
}

static at_status check_version(const char *file, hid_t object, const char *type, const char *name) {
    at_status status = AT_OK;
    char *have = NULL, *version = NULL;
    AT_TRY_OUT(at_h5_read_attr(file, object, "encoding-type", &have));
    AT_TRY_OUT(at_h5_read_attr(file, object, "encoding-version", &version));
    if (strcmp(have, type) != 0)
        AT_FAIL_OUT(AT_USAGE, "%s: %s is a \"%.40s\", wanted \"%s\"", file, name, have, type);
    if (major_of(version) < 1 || major_of(version) > AT_ARCHIVE_MAJOR)
        AT_FAIL_OUT(AT_UNSUPPORTED, "%s: %s has encoding-version \"%.20s\", this program reads version %d", file, name,
                    version, AT_ARCHIVE_MAJOR);
out:
    free(have);
    free(version);
    return status;
}

static at_status open_group(const char *file, hid_t parent, const char *name, const char *type, hid_t *group) {
    *group = H5I_INVALID_HID;
    if (H5Lexists(parent, name, H5P_DEFAULT) <= 0)
        return AT_FAIL(AT_USAGE, "%s: group %s is missing", file, name);
    *group = H5Gopen2(parent, name, H5P_DEFAULT);
    if (*group < 0)
        return at_h5_fail(AT_USAGE, file, "open group", name);
    return check_version(file, *group, type, name);
}

/* Columns that came with versions 1.2.0 and 1.3.0; an older archive has none: nothing was predicted, captured or
 * counted then. */
static int came_later(const struct at_field *field) {
    static const char *const begins[] = { "predicted_", "graph_", "counter_" };
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(field->name, begins[i], strlen(begins[i])) == 0)
            return 1;
    return 0;
}

static at_status read_fields(const struct target *t, enum at_field_group group) {
    const struct at_field *field;
    for (int i = 0; (field = at_result_field(i)); i++)
        if (field->group == group && !(came_later(field) && H5Lexists(t->group, field->name, H5P_DEFAULT) <= 0))
            AT_TRY(read_field(t, field));
    return AT_OK;
}

/* Rows of /cases or /kernels, read into results of their own, then copied to the results that refer to them. */
static at_status read_table(const char *file, hid_t root, const char *name, const char *type, const char *scale,
                            enum at_field_group group, const struct target *results) {
    at_status status = AT_OK;
    const struct at_field *field;
    int64_t *index = NULL;
    struct target t = { .file = file, .row_of = result_row };
    AT_TRY_OUT(open_group(file, root, name, type, &t.group));
    AT_TRY_OUT(at_h5_length(file, t.group, scale, &t.n));
    if (t.n > results->n)
        AT_FAIL_OUT(AT_USAGE, "%s: %s has %" PRIu64 " rows for %" PRIu64 " results", file, name, (uint64_t)t.n,
                    (uint64_t)results->n);
    t.results = calloc(t.n + 1, sizeof *t.results);
    if (!t.results)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %" PRIu64 " rows of %s", file, (uint64_t)t.n, name);
    AT_TRY_OUT(read_fields(&t, group));
    AT_TRY_OUT(read_index(results, scale, (int64_t)t.n, &index));
    for (int i = 0; (field = at_result_field(i)); i++)
        for (hsize_t row = 0; field->group == group && row < results->n; row++)
            memcpy(at_field_at(field, &results->results[row]), at_field_at(field, &t.results[index[row]]), field->size);
out:
    free(index);
    free(t.results);
    at_h5_close(t.group);
    return status;
}

/* A result takes far more than 16 bytes of a file, so a longer axis is a lie, found before memory is asked for. */
static at_status read_results(const char *file, uint64_t bytes, hid_t root, struct target *t) {
    *t = (struct target){ .file = file, .row_of = result_row };
    AT_TRY(open_group(file, root, AT_GROUP_RESULTS, "attest.results", &t->group));
    AT_TRY(at_h5_length(file, t->group, "result", &t->n));
    if (t->n > bytes / 16)
        return AT_FAIL(AT_USAGE, "%s: claims %" PRIu64 " results in %" PRIu64 " bytes", file, (uint64_t)t->n, bytes);
    t->results = calloc(t->n + 1, sizeof *t->results);
    if (!t->results)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %" PRIu64 " results", file, (uint64_t)t->n);
    for (hsize_t i = 0; i < t->n; i++)
        at_result_begin(&t->results[i]);
    return read_fields(t, AT_FIELD_RESULTS);
}

/* ---- ledger ---- */

struct place_target {
    size_t has, place; /* offsets of the flag and the place in a row */
    const char *prefix;
};

static at_status read_places(const struct target *t, const struct place_target *p) {
    static const struct {
        const char *name;
        size_t offset;
    } parts[] = { { "b", offsetof(struct at_place, b) },
                  { "h", offsetof(struct at_place, h) },
                  { "q", offsetof(struct at_place, q) },
                  { "k", offsetof(struct at_place, k) },
                  { "step", offsetof(struct at_place, step) } };
    at_status status = AT_OK;
    int64_t *values = calloc(t->n + 1, sizeof *values);
    if (!values)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for places", t->file);
    for (size_t part = 0; part < sizeof parts / sizeof parts[0] && status == AT_OK; part++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", p->prefix, parts[part].name);
        status = at_h5_read(t->file, t->group, name, AT_H5_I64, 1, &t->n, values);
        for (hsize_t i = 0; i < t->n && status == AT_OK; i++) {
            char *row = t->row_of(t, i);
            int has;
            memcpy(&has, row + p->has, sizeof has);
            if (has)
                memcpy(row + p->place + parts[part].offset, &values[i], sizeof values[i]);
        }
    }
    free(values);
    return status;
}

static at_status read_totals(const char *file, hid_t ledger, const struct target *results) {
    static const struct place_target first = { offsetof(struct at_ledger, has_laundered),
                                               offsetof(struct at_ledger, first_laundered), "first_laundered" };
    at_status status = AT_OK;
    const struct at_field *field;
    int64_t *index = NULL;
    struct target t = { .file = file, .row_of = total_row, .results = results->results };
    AT_TRY_OUT(open_group(file, ledger, AT_GROUP_TOTALS, "attest.ledger_totals", &t.group));
    AT_TRY_OUT(at_h5_length(file, t.group, "total", &t.n));
    AT_TRY_OUT(read_index(&t, "result", (int64_t)results->n, &index));
    t.result_of = index;
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        AT_TRY_OUT(read_field(&t, field));
    AT_TRY_OUT(read_places(&t, &first));
out:
    free(index);
    at_h5_close(t.group);
    return status;
}

static at_status read_stages(const struct target *t, int8_t **stages) {
    *stages = calloc(t->n + 1, 1);
    if (!*stages)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column stage", t->file);
    AT_TRY(at_h5_read(t->file, t->group, "stage", AT_H5_I8, 1, &t->n, *stages));
    for (hsize_t i = 0; i < t->n; i++)
        if ((*stages)[i] < 0 || (*stages)[i] >= (int)AT_STAGE_COUNT)
            return AT_FAIL(AT_USAGE, "%s: row %" PRIu64 " of stage is %d, which has no meaning", t->file, (uint64_t)i,
                           (*stages)[i]);
    return AT_OK;
}

static at_status read_ledger(const char *file, hid_t root, const struct target *results) {
    static const struct place_target first = { offsetof(struct at_ledger_row, has_first),
                                               offsetof(struct at_ledger_row, first), "first" };
    at_status status = AT_OK;
    const struct at_field *field;
    int64_t *index = NULL;
    int8_t *stages = NULL;
    struct target t = { .file = file, .row_of = stage_row, .results = results->results };
    AT_TRY_OUT(open_group(file, root, AT_GROUP_LEDGER, "attest.ledger", &t.group));
    AT_TRY_OUT(at_h5_length(file, t.group, "row", &t.n));
    AT_TRY_OUT(read_index(&t, "result", (int64_t)results->n, &index));
    AT_TRY_OUT(read_stages(&t, &stages));
    t.result_of = index;
    t.stage_of = stages;
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY_OUT(read_field(&t, field));
    AT_TRY_OUT(read_places(&t, &first));
    AT_TRY_OUT(read_totals(file, t.group, results));
out:
    free(index);
    free(stages);
    at_h5_close(t.group);
    return status;
}

/* ---- the file ---- */

static at_status read_provenance(const char *file, hid_t root, struct at_run_record *record) {
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID;
    AT_TRY_OUT(open_group(file, root, AT_GROUP_PROVENANCE, "attest.provenance", &group));
    AT_TRY_OUT(at_h5_read_text(file, group, "request", &record->request));
    AT_TRY_OUT(at_h5_read_text(file, group, "build", &record->provenance));
out:
    at_h5_close(group);
    return status;
}

static at_status read_all(const char *file, uint64_t bytes, hid_t id, struct at_run_record *record) {
    at_status status = AT_OK;
    struct target results = { .group = H5I_INVALID_HID };
    AT_TRY_OUT(check_version(file, id, "attest.archive", "the file"));
    AT_TRY_OUT(read_provenance(file, id, record));
    AT_TRY_OUT(read_results(file, bytes, id, &results));
    AT_TRY_OUT(read_table(file, id, AT_GROUP_CASES, "attest.cases", "case", AT_FIELD_CASES, &results));
    AT_TRY_OUT(read_table(file, id, AT_GROUP_KERNELS, "attest.kernels", "kernel", AT_FIELD_KERNELS, &results));
    AT_TRY_OUT(read_ledger(file, id, &results));
    for (hsize_t i = 0; i < results.n; i++)
        AT_TRY_OUT(at_result_check(&results.results[i], file));
    record->results = results.results;
    record->n = record->capacity = (int64_t)results.n;
    results.results = NULL;
out:
    free(results.results);
    at_h5_close(results.group);
    return status;
}

at_status at_archive_read(const char *path, struct at_run_record *record) {
    struct stat info;
    hid_t id;
    at_run_record_init(record);
    at_h5_quiet();
    if (stat(path, &info) != 0)
        return AT_FAIL(errno == ENOENT ? AT_NOT_FOUND : AT_IO, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return AT_FAIL(AT_USAGE, "%s is no regular file, wanted an archive", path);
    AT_TRY(at_h5_open(path, &id));
    at_status status = read_all(path, (uint64_t)info.st_size, id, record);
    if (H5Fclose(id) < 0 && status == AT_OK)
        status = at_h5_fail(AT_BUG, path, "close", "the archive");
    if (status != AT_OK)
        at_run_record_release(record);
    return status;
}
