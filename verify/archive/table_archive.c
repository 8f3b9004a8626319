/* Tables of studies and benchmarks in an archive: a group of columns each.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/columns.h"
#include "verify/archive/columns_read.h"
#include "verify/archive/guard.h"
#include "verify/archive/layout.h"
#include "verify/result/table.h"

/* ---- writing ---- */

static at_status write_ledger(struct at_archive_group *g, const struct at_table_rows *t, const void **structs) {
    at_status status = AT_OK;
    const struct at_field *field;
    const struct at_place **places = calloc((size_t)t->n + 1, sizeof *places);
    if (!places)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %" PRId64 " rows", g->file, t->n);
    for (int64_t i = 0; i < t->n; i++) {
        const struct at_ledger_row *row =
            (const void *)((const char *)t->rows + (size_t)i * t->table->row_bytes + t->table->ledger);
        structs[i] = row;
        places[i] = row->has_first ? &row->first : NULL;
    }
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY_OUT(at_archive_field(g, field, structs));
    AT_TRY_OUT(at_archive_places(g, "first", places));
out:
    free(places);
    return status;
}

static at_status write_columns(struct at_archive_group *g, const struct at_table_rows *t) {
    at_status status = AT_OK;
    const struct at_field *field;
    const void **structs = calloc((size_t)t->n + 1, sizeof *structs);
    if (!structs)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %" PRId64 " rows", g->file, t->n);
    for (int64_t i = 0; i < t->n; i++)
        structs[i] = (const char *)t->rows + (size_t)i * t->table->row_bytes;
    for (int i = 0; (field = t->table->field(i)); i++)
        AT_TRY_OUT(at_archive_field(g, field, structs));
    if (t->table->has_ledger)
        AT_TRY_OUT(write_ledger(g, t, structs));
out:
    free(structs);
    return status;
}

static at_status write_table(const char *file, hid_t parent, const struct at_table_rows *t) {
    static const char *const axes[] = { "row" };
    at_status status = AT_OK;
    struct at_archive_group g = {
        .file = file, .n = (hsize_t)t->n, .scale = H5I_INVALID_HID, .group = H5I_INVALID_HID
    };
    AT_TRY_OUT(at_h5_group(file, parent, t->table->group, t->table->type, "NXdata", &g.group));
    AT_TRY_OUT(at_h5_attr_text(file, g.group, "signal", t->table->signal));
    AT_TRY_OUT(at_h5_attr_texts(file, g.group, "axes", 1, axes));
    AT_TRY_OUT(at_h5_scale(file, g.group, axes[0], g.n, 0, t->table->row, &g.scale));
    AT_TRY_OUT(write_columns(&g, t));
out:
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}

/* The group that tables share; all of a file have the same. */
static at_status open_parent(const char *file, hid_t root, const struct at_table *first, hid_t *parent) {
    char type[64];
    *parent = H5I_INVALID_HID;
    snprintf(type, sizeof type, "attest.%s", first->parent);
    AT_TRY(at_h5_group(file, root, first->parent, type, "NXentry", parent));
    return at_h5_attr_text(file, *parent, "default", first->group);
}

static at_status write_all(const char *file, hid_t root, const struct at_table_rows *tables, int n_tables,
                           const struct at_run_record *record) {
    const struct at_table *first = tables[0].table;
    hid_t parent = H5I_INVALID_HID;
    at_status status = AT_OK;
    AT_TRY_OUT(at_archive_write_root(file, root, first->parent ? first->parent : first->group));
    AT_TRY_OUT(at_archive_write_provenance(file, root, record));
    if (first->parent)
        AT_TRY_OUT(open_parent(file, root, first, &parent));
    for (int i = 0; i < n_tables; i++)
        AT_TRY_OUT(write_table(file, first->parent ? parent : root, &tables[i]));
out:
    at_h5_close(parent);
    return status;
}

at_status at_archive_write_tables(const struct at_table_rows *tables, int n_tables, const struct at_run_record *record,
                                  const char *path) {
    struct at_h5_image image;
    hid_t id;
    at_h5_quiet();
    AT_TRY(at_h5_create(path, &image, &id));
    const at_status status = write_all(path, id, tables, n_tables, record);
    if (status == AT_OK)
        return at_h5_save(path, id, &image);
    at_h5_abandon(id, &image);
    return status;
}

/* ---- reading ---- */

static char *table_row(const struct at_archive_source *source, hsize_t i) {
    const struct at_table_rows *t = source->context;
    return (char *)t->rows + i * t->table->row_bytes;
}

static char *ledger_row(const struct at_archive_source *source, hsize_t i) {
    const struct at_table_rows *t = source->context;
    return table_row(source, i) + t->table->ledger;
}

static void set_missing(const struct at_field *field, void *at) {
    if (field->kind == AT_FIELD_PLACE)
        *(int64_t *)at = -1;
    else if (field->kind == AT_FIELD_F64)
        *(double *)at = NAN; /* the rest is 0 already */
}

static int came_later(const struct at_table *table, const char *name) {
    for (int i = 0; table->later && table->later[i]; i++)
        if (strcmp(table->later[i], name) == 0)
            return 1;
    return 0;
}

static at_status read_columns(struct at_archive_source *source, const struct at_table *table) {
    static const struct at_archive_place first = { offsetof(struct at_ledger_row, has_first),
                                                   offsetof(struct at_ledger_row, first), "first" };
    const struct at_field *field;
    for (int i = 0; (field = table->field(i)); i++) {
        if (came_later(table, field->name) && H5Lexists(source->group, field->name, H5P_DEFAULT) == 0) {
            for (hsize_t row = 0; row < source->n; row++)
                set_missing(field, at_field_at(field, source->row_of(source, row)));
            continue;
        }
        AT_TRY(at_archive_read_field(source, field));
    }
    if (!table->has_ledger)
        return AT_OK;
    source->row_of = ledger_row;
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY(at_archive_read_field(source, field));
    return at_archive_read_places(source, &first);
}

/* A row takes far more than 16 bytes of a file, so a longer axis is a lie, found before memory is asked for. */
static at_status read_table(const char *file, uint64_t bytes, hid_t parent, struct at_table_rows *t) {
    at_status status = AT_OK;
    struct at_archive_source source = { .file = file, .row_of = table_row, .context = t };
    AT_TRY_OUT(at_archive_open_group(file, parent, t->table->group, t->table->type, &source.group));
    AT_TRY_OUT(at_h5_length(file, source.group, "row", &source.n));
    if (source.n > bytes / 16)
        AT_FAIL_OUT(AT_USAGE, "%s: claims %" PRIu64 " rows of %s in %" PRIu64 " bytes", file, (uint64_t)source.n,
                    t->table->group, bytes);
    t->rows = calloc(source.n + 1, t->table->row_bytes);
    if (!t->rows)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %" PRIu64 " rows of %s", file, (uint64_t)source.n,
                    t->table->group);
    AT_TRY_OUT(read_columns(&source, t->table));
    t->n = (int64_t)source.n;
out:
    at_h5_close(source.group);
    return status;
}

static at_status read_if_there(const char *file, uint64_t bytes, hid_t root, struct at_table_rows *t) {
    const char *name = t->table->parent;
    at_status status = AT_OK;
    hid_t parent = H5I_INVALID_HID;
    char type[64];
    if (name) {
        if (H5Lexists(root, name, H5P_DEFAULT) <= 0)
            return AT_OK;
        snprintf(type, sizeof type, "attest.%s", name);
        AT_TRY_OUT(at_archive_open_group(file, root, name, type, &parent));
    }
    if (H5Lexists(name ? parent : root, t->table->group, H5P_DEFAULT) > 0)
        status = read_table(file, bytes, name ? parent : root, t);
out:
    at_h5_close(parent);
    return status;
}

static at_status read_file(const char *path, struct at_table_rows *tables, int n_tables, struct at_run_record *record) {
    uint64_t bytes;
    hid_t id;
    AT_TRY(at_archive_open(path, &id, &bytes));
    at_status status = at_archive_check_version(path, id, "attest.archive", "the file");
    if (status == AT_OK)
        status = at_archive_read_provenance(path, id, record);
    for (int i = 0; i < n_tables && status == AT_OK; i++)
        status = read_if_there(path, bytes, id, &tables[i]);
    if (H5Fclose(id) < 0 && status == AT_OK)
        status = at_h5_fail(AT_USAGE, path, "close", "the archive");
    return status;
}

at_status at_archive_read_tables(const char *path, struct at_table_rows *tables, int n_tables,
                                 struct at_run_record *record) {
    for (int i = 0; i < n_tables; i++) {
        tables[i].rows = NULL;
        tables[i].n = -1;
    }
    at_guard_begin(path);
    const at_status status = read_file(path, tables, n_tables, record);
    at_guard_end();
    return status;
}
