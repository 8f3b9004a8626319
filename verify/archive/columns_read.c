/* Columns of an archive back into structs, and what every reader of archives checks first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/columns_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verify/archive/layout.h"

/* ---- the file and its groups ---- */

at_status at_archive_open(const char *path, hid_t *id, uint64_t *bytes) {
    struct stat info;
    at_h5_quiet();
    if (stat(path, &info) != 0)
        return AT_FAIL(errno == ENOENT ? AT_NOT_FOUND : AT_IO, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return AT_FAIL(AT_USAGE, "%s is no regular file, wanted an archive", path);
    *bytes = (uint64_t)info.st_size;
    return at_h5_open(path, id);
}

/* "1.2.0" -> 1; -1 if it starts with no number. */
static long major_of(const char *version) {
    char *end;
    long major = strtol(version, &end, 10);
    return end != version && (*end == '.' || *end == 0) ? major : -1;
}

at_status at_archive_check_version(const char *file, hid_t object, const char *type, const char *name) {
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

at_status at_archive_open_group(const char *file, hid_t parent, const char *name, const char *type, hid_t *group) {
    *group = H5I_INVALID_HID;
    if (H5Lexists(parent, name, H5P_DEFAULT) <= 0)
        return AT_FAIL(AT_USAGE, "%s: group %s is missing", file, name);
    *group = H5Gopen2(parent, name, H5P_DEFAULT);
    if (*group < 0)
        return at_h5_fail(AT_USAGE, file, "open group", name);
    return at_archive_check_version(file, *group, type, name);
}

at_status at_archive_read_provenance(const char *file, hid_t root, struct at_run_record *record) {
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID;
    AT_TRY_OUT(at_archive_open_group(file, root, AT_GROUP_PROVENANCE, "attest.provenance", &group));
    AT_TRY_OUT(at_h5_read_text(file, group, "request", &record->request));
    AT_TRY_OUT(at_h5_read_text(file, group, "build", &record->provenance));
out:
    at_h5_close(group);
    return status;
}

/* ---- columns into fields ---- */

static at_status read_text_field(const struct at_archive_source *t, const struct at_field *field) {
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

static at_status copy_values(const struct at_archive_source *t, const struct at_field *field, const void *data) {
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

at_status at_archive_read_field(const struct at_archive_source *t, const struct at_field *field) {
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

at_status at_archive_read_places(const struct at_archive_source *t, const struct at_archive_place *p) {
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
