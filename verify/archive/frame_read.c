/* Tables of an archive as they stand in the file, being read.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/columns_read.h"
#include "verify/archive/frame.h"
#include "verify/archive/guard.h"
#include "verify/archive/h5type.h"
#include "verify/archive/layout.h"
#include "verify/result/text.h"

/* Values of one row at most: nothing that attest writes has more than 64. */
enum { MAX_WIDTH = 1024 };

/* A group being read into a frame. */
struct source {
    const char *file;
    uint64_t bytes; /* of the file */
    int64_t most;   /* rows of a table that is read at once; -1: of any */
    hid_t group;
    struct at_frame *frame;
};

static int h5_type_of(hid_t dataset, enum at_h5_type *type) {
    static const enum at_h5_type known[] = { AT_H5_I8, AT_H5_I32, AT_H5_I64, AT_H5_U64, AT_H5_F64 };
    hid_t have = H5Dget_type(dataset);
    int found = have >= 0 && H5Tis_variable_str(have) > 0;
    *type = AT_H5_TEXT;
    for (size_t i = 0; i < sizeof known / sizeof *known && !found; i++) {
        hid_t want = at_h5_make_type(known[i]);
        *type = known[i];
        found = H5Tequal(have, want) > 0;
        at_h5_close(want);
    }
    at_h5_close(have);
    return found;
}

/* Extent of a dataset; 0 when it is no column of n rows. */
static int shape_of(hid_t dataset, hsize_t n, hsize_t dims[2]) {
    hid_t space = H5Dget_space(dataset);
    const int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    dims[1] = 1;
    const int fits = (rank == 1 || rank == 2) && H5Sget_simple_extent_dims(space, dims, NULL) == rank && dims[0] == n &&
                     dims[1] >= 1 && dims[1] <= MAX_WIDTH;
    at_h5_close(space);
    return fits ? rank : 0;
}

/* ---- what a column says of itself ---- */

static at_status attribute_or(const char *file, hid_t dataset, const char *name, const char *otherwise, char **text) {
    if (H5Aexists(dataset, name) > 0)
        return at_h5_read_attr(file, dataset, name, text);
    *text = strdup(otherwise);
    return *text ? AT_OK : AT_FAIL(AT_NO_MEMORY, "%s: no memory for an attribute", file);
}

static at_status read_flags(const char *file, hid_t dataset, struct at_frame_column *c) {
    if (H5Aexists(dataset, "flag_meanings") <= 0)
        return AT_OK;
    AT_TRY(at_h5_read_attr(file, dataset, "flag_meanings", &c->flag_text));
    at_text_clean(c->flag_text);
    c->flag = calloc(strlen(c->flag_text) + 1, sizeof *c->flag);
    if (!c->flag)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for the flags of %s", file, c->name);
    char *rest = c->flag_text, *word;
    while ((word = strsep(&rest, " ")))
        if (*word)
            c->flag[c->n_flags++] = word;
    c->kind = c->n_flags ? AT_FRAME_FLAG : c->kind;
    return AT_OK;
}

static at_status check_flags(const char *file, const struct at_frame *frame, const struct at_frame_column *c) {
    for (int64_t i = 0; i < c->rows * c->width; i++)
        if (c->at.i64[i] < 0 || c->at.i64[i] >= c->n_flags)
            return AT_FAIL(AT_USAGE, "%s: row %" PRId64 " of %s/%s is %" PRId64 ", which has no meaning", file,
                           c->first + i / c->width, frame->group, c->name, c->at.i64[i]);
    return AT_OK;
}

/* ---- values ---- */

static at_status read_rows(const struct source *s, const struct at_frame_column *c, enum at_h5_type type, int rank,
                           void *values) {
    const hsize_t dims[2] = { (hsize_t)s->frame->n, (hsize_t)c->width };
    return c->rows == s->frame->n ? at_h5_read(s->file, s->group, c->name, type, rank, dims, values)
                                  : at_h5_read_rows(s->file, s->group, c->name, type, c->width, (hsize_t)c->first,
                                                    (hsize_t)c->rows, values);
}

static at_status read_texts(const struct source *s, struct at_frame_column *c, int rank) {
    at_status status = AT_OK;
    const hsize_t n = (hsize_t)c->rows * (hsize_t)c->width;
    char **read = calloc(n + 1, sizeof *read);
    c->at.text = calloc(n + 1, sizeof *c->at.text);
    if (!read || !c->at.text)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for column %s", s->file, c->name);
    AT_TRY_OUT(read_rows(s, c, AT_H5_TEXT, rank, read));
    for (hsize_t i = 0; i < n; i++) {
        c->at.text[i] = strdup(read[i] ? read[i] : "");
        if (!c->at.text[i])
            AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for column %s", s->file, c->name);
        at_text_clean(c->at.text[i]);
    }
out:
    if (read)
        at_h5_free_texts(read, n);
    free(read);
    return status;
}

/* From the back: the narrow values lie in the front of the same array. */
static void widen(int64_t *values, hsize_t n, enum at_h5_type type) {
    const int8_t *bytes = (const int8_t *)values;
    int32_t word;
    for (hsize_t i = n; i-- > 0;)
        if (type == AT_H5_I8) {
            values[i] = (int64_t)((uint8_t)bytes[i] ^ 0x80) - 0x80; /* with its sign */
        } else {
            memcpy(&word, bytes + 4 * i, sizeof word);
            values[i] = word;
        }
}

static at_status read_numbers(const struct source *s, struct at_frame_column *c, enum at_h5_type type, int rank) {
    const hsize_t n = (hsize_t)c->rows * (hsize_t)c->width;
    c->at.i64 = calloc(n + 1, sizeof *c->at.i64);
    if (!c->at.i64)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", s->file, c->name);
    AT_TRY(read_rows(s, c, type, rank, c->at.i64));
    if (type == AT_H5_I8 || type == AT_H5_I32)
        widen(c->at.i64, n, type);
    return c->kind == AT_FRAME_FLAG ? check_flags(s->file, s->frame, c) : AT_OK;
}

/* Values of rows [first, first + n) in place of those that are there. */
static at_status read_values(const struct source *s, struct at_frame_column *c, hid_t dataset, int64_t first,
                             int64_t n) {
    enum at_h5_type type;
    hsize_t dims[2];
    const int rank = shape_of(dataset, (hsize_t)s->frame->n, dims);
    at_frame_forget(c);
    if (!rank || (int)dims[1] != c->width || !h5_type_of(dataset, &type))
        return AT_FAIL(AT_USAGE, "%s: %s has another shape than before", s->file, c->name);
    c->first = first;
    c->rows = n;
    return type == AT_H5_TEXT ? read_texts(s, c, rank) : read_numbers(s, c, type, rank);
}

static at_status read_column(const struct source *s, const char *name, hid_t dataset) {
    struct at_frame *frame = s->frame;
    enum at_h5_type type;
    hsize_t dims[2];
    const int rank = shape_of(dataset, (hsize_t)frame->n, dims);
    if (!rank || !h5_type_of(dataset, &type))
        return AT_OK; /* of another kind: not ours to show */
    struct at_frame_column *grown = realloc(frame->columns, ((size_t)frame->n_columns + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", s->file, name);
    frame->columns = grown;
    struct at_frame_column *c = &grown[frame->n_columns++];
    *c = (struct at_frame_column){ .width = (int)dims[1], .name = strdup(name) };
    if (!c->name)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", s->file, name);
    c->kind = type == AT_H5_TEXT  ? AT_FRAME_TEXT
              : type == AT_H5_U64 ? AT_FRAME_U64
              : type == AT_H5_F64 ? AT_FRAME_F64
                                  : AT_FRAME_I64;
    c->has_missing = c->kind == AT_FRAME_I64 && H5Aexists(dataset, "_FillValue") > 0;
    AT_TRY(attribute_or(s->file, dataset, "units", "1", &c->units));
    AT_TRY(attribute_or(s->file, dataset, "long_name", "", &c->long_name));
    at_text_clean(c->units);
    at_text_clean(c->long_name);
    if (type == AT_H5_I8)
        AT_TRY(read_flags(s->file, dataset, c));
    if (!frame->is_open)
        AT_TRY(read_values(s, c, dataset, 0, frame->n));
    at_text_clean(c->name); /* after it was used to find the column */
    return AT_OK;
}

/* ---- groups ---- */

struct names {
    char **items;
    size_t n;
    int no_memory;
};

static int has_control(const char *name) {
    for (; *name; name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7f)
            return 1;
    return 0;
}

static herr_t add_name(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    struct names *names = context;
    (void)group;
    if (info->type != H5L_TYPE_HARD || has_control(name))
        return 0; /* soft and external links, and names that would break a line, are never ours */
    char **grown = realloc(names->items, (names->n + 1) * sizeof *grown);
    if (grown)
        names->items = grown;
    if (!grown || !(grown[names->n] = strdup(name))) {
        names->no_memory = 1;
        return -1;
    }
    names->n++;
    return 0;
}

static void release_names(struct names *names) {
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
}

/* In the order in which they were made, which is that of the tables in C; by name in files that did not keep it. */
static at_status list_names(const char *file, hid_t group, struct names *names) {
    *names = (struct names){ 0 };
    if (H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, add_name, names) >= 0)
        return AT_OK;
    release_names(names);
    *names = (struct names){ 0 };
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, add_name, names) >= 0)
        return AT_OK;
    return names->no_memory ? AT_FAIL(AT_NO_MEMORY, "%s: no memory for names", file)
                            : at_h5_fail(AT_USAGE, file, "list", "a group");
}

static hid_t open_if(hid_t group, const char *name, H5I_type_t kind) {
    hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    if (object >= 0 && H5Iget_type(object) == kind)
        return object;
    at_h5_close(object);
    return H5I_INVALID_HID;
}

static at_status read_columns(struct source *s) {
    struct names names;
    at_status status = list_names(s->file, s->group, &names);
    for (size_t i = 0; i < names.n && status == AT_OK; i++) {
        hid_t dataset = open_if(s->group, names.items[i], H5I_DATASET);
        if (dataset >= 0)
            status = read_column(s, names.items[i], dataset);
        at_h5_close(dataset);
    }
    release_names(&names);
    return status;
}

static at_status add_frame(const char *file, struct at_frames *frames, const char *path, struct at_frame **frame) {
    struct at_frame *grown = realloc(frames->items, ((size_t)frames->n + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for group %s", file, path);
    frames->items = grown;
    *frame = &grown[frames->n++];
    **frame = (struct at_frame){ .group = strdup(path) };
    return (*frame)->group ? AT_OK : AT_FAIL(AT_NO_MEMORY, "%s: no memory for group %s", file, path);
}

/* Group `path` of the file, whose rows the scale `axis` counts. A row takes far more than 16 bytes of a file, so a
 * longer axis is a lie, found before memory is asked for. */
static at_status read_frame(struct source *s, hid_t root, const char *path, const char *axis,
                            struct at_frames *frames) {
    at_status status = AT_OK;
    hsize_t n = 0;
    s->group = H5Gopen2(root, path, H5P_DEFAULT);
    if (s->group < 0)
        AT_FAIL_OUT(AT_USAGE, "%s: %s is no group", s->file, path);
    AT_TRY_OUT(add_frame(s->file, frames, path, &s->frame));
    at_text_clean(s->frame->group);
    AT_TRY_OUT(at_h5_read_attr(s->file, s->group, "encoding-type", &s->frame->type));
    AT_TRY_OUT(at_archive_check_version(s->file, s->group, s->frame->type, path));
    AT_TRY_OUT(at_h5_length(s->file, s->group, axis, &n));
    if (n > s->bytes / 16)
        AT_FAIL_OUT(AT_USAGE, "%s: claims %" PRIu64 " rows of %s in %" PRIu64 " bytes", s->file, (uint64_t)n, path,
                    s->bytes);
    s->frame->n = (int64_t)n;
    s->frame->is_open = s->most >= 0 && s->frame->n > s->most;
    AT_TRY_OUT(read_columns(s));
out:
    at_h5_close(s->group);
    return status;
}

static at_status read_studies(struct source *s, hid_t root, struct at_frames *frames) {
    char path[512];
    hid_t studies = H5I_INVALID_HID;
    struct names names = { 0 };
    at_status status = AT_OK;
    AT_TRY_OUT(at_archive_open_group(s->file, root, "studies", "attest.studies", &studies));
    AT_TRY_OUT(list_names(s->file, studies, &names));
    for (size_t i = 0; i < names.n; i++) {
        hid_t group = open_if(studies, names.items[i], H5I_GROUP);
        const int rows = group >= 0 && H5Lexists(group, "row", H5P_DEFAULT) > 0;
        at_h5_close(group);
        snprintf(path, sizeof path, "studies/%s", names.items[i]);
        if (rows)
            AT_TRY_OUT(read_frame(s, root, path, "row", frames));
    }
out:
    release_names(&names);
    at_h5_close(studies);
    return status;
}

static int is_there(hid_t root, const char *path) {
    char parent[64];
    const char *slash = strchr(path, '/');
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) : 63, path);
    return H5Lexists(root, parent, H5P_DEFAULT) > 0 && (!slash || H5Lexists(root, path, H5P_DEFAULT) > 0);
}

static at_status read_all(struct source *s, hid_t root, struct at_frames *frames) {
    static const struct {
        const char *group, *axis;
    } known[] = { { "cases", "case" },       { "kernels", "kernel" },         { "results", "result" },
                  { "ledger", "row" },       { "ledger/totals", "total" },    { "bench", "row" },
                  { "certificates", "row" }, { "distributions/unit", "row" }, { "distributions/ledger", "row" } };
    struct at_run_record record;
    at_run_record_init(&record);
    AT_TRY(at_archive_check_version(s->file, root, "attest.archive", "the file"));
    AT_TRY(at_h5_read_attr(s->file, root, "encoding-version", &frames->version));
    const at_status status = at_archive_read_provenance(s->file, root, &record);
    frames->request = record.request; /* the frames' from here on */
    frames->build = record.provenance;
    AT_TRY(status);
    at_text_clean(frames->version);
    at_text_clean(frames->request);
    at_text_clean(frames->build);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_there(root, known[i].group))
            AT_TRY(read_frame(s, root, known[i].group, known[i].axis, frames));
    frames->has_distributions = is_there(root, "distributions");
    return is_there(root, "studies") ? read_studies(s, root, frames) : AT_OK;
}

static at_status read_file(const char *path, int64_t most, struct at_frames *frames) {
    struct source s = { .file = path, .most = most };
    hid_t id;
    AT_TRY(at_archive_open(path, &id, &s.bytes));
    at_status status = read_all(&s, id, frames);
    if (H5Fclose(id) < 0 && status == AT_OK)
        status = at_h5_fail(AT_USAGE, path, "close", "the archive");
    return status;
}

at_status at_frames_open(const char *path, int64_t most, struct at_frames *frames) {
    *frames = (struct at_frames){ 0 };
    at_guard_begin(path);
    const at_status status = read_file(path, most, frames);
    at_guard_end();
    return status;
}

at_status at_frames_read(const char *path, struct at_frames *frames) { return at_frames_open(path, -1, frames); }

/* ---- windows ---- */

static at_status read_window(struct source *s, int64_t first, int64_t n,
                             int (*wanted)(const struct at_frame_column *column)) {
    for (int i = 0; i < s->frame->n_columns; i++) {
        struct at_frame_column *c = &s->frame->columns[i];
        at_frame_forget(c);
        if (wanted && !wanted(c))
            continue;
        hid_t dataset = open_if(s->group, c->name, H5I_DATASET);
        const at_status status = dataset >= 0
                                     ? read_values(s, c, dataset, first, n)
                                     : AT_FAIL(AT_USAGE, "%s: column %s is not there any more", s->file, c->name);
        at_h5_close(dataset);
        AT_TRY(status);
    }
    return AT_OK;
}

at_status at_frame_window(const char *path, struct at_frame *frame, int64_t first, int64_t n,
                          int (*wanted)(const struct at_frame_column *column)) {
    struct source s = { .file = path, .frame = frame, .group = H5I_INVALID_HID };
    hid_t id = H5I_INVALID_HID;
    if (!frame->is_open)
        return AT_OK;
    at_guard_begin(path);
    at_status status = at_archive_open(path, &id, &s.bytes);
    if (status == AT_OK && (s.group = H5Gopen2(id, frame->group, H5P_DEFAULT)) < 0)
        status = AT_FAIL(AT_USAGE, "%s: %s is no group any more", path, frame->group);
    if (status == AT_OK)
        status = read_window(&s, first, n, wanted);
    at_h5_close(s.group);
    if (id >= 0 && H5Fclose(id) < 0 && status == AT_OK)
        status = at_h5_fail(AT_USAGE, path, "close", "the archive");
    at_guard_end();
    return status;
}
