/* The tables of /distributions as columns, and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/distributions_columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/columns.h"
#include "verify/archive/layout.h"

#define FIELD(kind, name, units, meaning) AT_ROW_FIELD(at_dist_summary, kind, name, units, meaning)

static const struct at_field summary_fields[] = {
    FIELD(U64, n, "1", "values, NaNs among them") FIELD(U64, nan, "1", "of them NaN, which have no bin")
        FIELD(U64, masked, "1", "(query, key) hidden by the mask, which are not counted") FIELD(
            U64, zero, "1", "values whose code is a zero") FIELD(U64, subnormal, "1", "values whose code is subnormal")
            FIELD(U64, overflow, "1", "finite values whose code is an infinity")
                FIELD(U64, n_empty, "1", "rows without this statistic: no visible key, or a sum of 0")
                    FIELD(F64, mean, "1", "mean of the finite values, as they were rounded")
                        FIELD(F64, std, "1", "standard deviation of these") FIELD(F64, min, "1", "smallest of these")
                            FIELD(F64, max, "1", "largest of these")
                                FIELD(F64, abs_max, "1", "largest magnitude of these")
                                    FIELD(F64, headroom, "bit",
                                          "log2(65504 / abs_max); inf: nothing but zeros; NaN: no finite value")
};

static const struct at_field unit_fields[] = {
    AT_ROW_FIELD(at_dist_unit_row, I64, layer, "1", "layer, by its number in the source")
        AT_ROW_FIELD(at_dist_unit_row, I64, request, "1", "request")
            AT_ROW_FIELD(at_dist_unit_row, I64, queries, "1", "queries of the request")
                AT_ROW_FIELD(at_dist_unit_row, I64, keys, "1", "keys of the request")
                    AT_ROW_FIELD(at_dist_unit_row, TEXT, hash, "1", "64-bit hash of the codes of q, k and v")
                        AT_ROW_FIELD(at_dist_unit_row, TEXT, identity, "1",
                                     "64-bit hash of the ids of its tokens; empty: the source has none")
};

const struct at_field *at_dist_summary_field(int i) {
    return i < (int)(sizeof summary_fields / sizeof *summary_fields) ? &summary_fields[i] : NULL;
}

const struct at_field *at_dist_unit_field(int i) {
    return i < (int)(sizeof unit_fields / sizeof *unit_fields) ? &unit_fields[i] : NULL;
}

/* ---- writing ---- */

static at_status open_table(const char *file, hid_t parent, const char *name, const char *type, const char *signal,
                            const char *row, struct at_archive_group *g) {
    static const char *const axes[] = { "row" };
    g->file = file;
    g->scale = H5I_INVALID_HID;
    AT_TRY(at_h5_group(file, parent, name, type, signal ? "NXdata" : "NXcollection", &g->group));
    if (signal) {
        AT_TRY(at_h5_attr_text(file, g->group, "signal", signal));
        AT_TRY(at_h5_attr_texts(file, g->group, "axes", 1, axes));
    }
    return at_h5_scale(file, g->group, "row", g->n, 0, row, &g->scale);
}

static at_status write_stage(const struct at_archive_group *g) {
    char meanings[256] = "";
    int8_t *stage = malloc(g->n + 1);
    if (!stage)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column stage", g->file);
    for (hsize_t i = 0; i < g->n; i++)
        stage[i] = (int8_t)at_dist_stage((int)(i % AT_DIST_STAGES));
    for (int s = 0; s < AT_STAGE_COUNT; s++)
        snprintf(meanings + strlen(meanings), sizeof meanings - strlen(meanings), "%s%s", s ? " " : "",
                 at_stage_name((enum at_stage)s));
    const struct at_h5_column column = { .name = "stage",
                                         .type = AT_H5_I8,
                                         .rank = 1,
                                         .dims = { g->n },
                                         .scales = { g->scale },
                                         .units = "1",
                                         .long_name = "stage of the evaluation",
                                         .flag_meanings = meanings,
                                         .n_flags = AT_STAGE_COUNT,
                                         .data = stage };
    const at_status status = at_h5_write(g->file, g->group, &column);
    free(stage);
    return status;
}

static at_status write_rows(const struct at_archive_group *g, const struct at_ledger_row *rows) {
    at_status status = AT_OK;
    const struct at_field *field;
    const void **structs = calloc(g->n + 1, sizeof *structs);
    const struct at_place **places = calloc(g->n + 1, sizeof *places);
    double *headroom = calloc(g->n + 1, sizeof *headroom);
    if (!structs || !places || !headroom)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %" PRIu64 " rows of the ledger", g->file, (uint64_t)g->n);
    for (hsize_t i = 0; i < g->n; i++) {
        structs[i] = &rows[i];
        places[i] = rows[i].has_first ? &rows[i].first : NULL;
        headroom[i] = at_ledger_headroom(&rows[i]);
    }
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY_OUT(at_archive_field(g, field, structs));
    AT_TRY_OUT(at_archive_places(g, "first", places));
    const struct at_h5_column column = { .name = "headroom",
                                         .type = AT_H5_F64,
                                         .rank = 1,
                                         .dims = { g->n },
                                         .scales = { g->scale },
                                         .units = "bit",
                                         .long_name =
                                             "log2(65504 / max_abs); inf: nothing but zeros; NaN: no finite value",
                                         .data = headroom };
    AT_TRY_OUT(at_h5_write(g->file, g->group, &column));
out:
    free(headroom);
    free(places);
    free(structs);
    return status;
}

at_status at_dist_write_ledger(const char *file, hid_t parent, const struct at_dist_shape *shape, const int64_t *layer,
                               const struct at_ledger_row *rows) {
    at_status status = AT_OK;
    const int64_t per_layer = shape->h * AT_DIST_STAGES, n = shape->n_layers * per_layer;
    struct at_archive_group g = { .n = (hsize_t)n, .group = H5I_INVALID_HID, .scale = H5I_INVALID_HID };
    int64_t *index = malloc((size_t)(n + 1) * sizeof *index);
    if (!index)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %" PRId64 " rows of the ledger", file, n);
    AT_TRY_OUT(open_table(file, parent, AT_GROUP_LEDGER, "attest.distribution_ledger", "headroom",
                          "row: one layer, head and stage", &g));
    for (int64_t i = 0; i < n; i++)
        index[i] = layer[i / per_layer];
    AT_TRY_OUT(at_archive_index(&g, "layer", index, "layer, by its number in the source"));
    for (int64_t i = 0; i < n; i++)
        index[i] = i % per_layer / AT_DIST_STAGES;
    AT_TRY_OUT(at_archive_index(&g, "head", index, "query head"));
    AT_TRY_OUT(write_stage(&g));
    AT_TRY_OUT(write_rows(&g, rows));
out:
    at_h5_close(g.scale);
    at_h5_close(g.group);
    free(index);
    return status;
}

at_status at_dist_write_units(const char *file, hid_t parent, const struct at_dist_unit_row *units, int64_t n) {
    at_status status = AT_OK;
    const struct at_field *field;
    struct at_archive_group g = { .n = (hsize_t)n, .group = H5I_INVALID_HID, .scale = H5I_INVALID_HID };
    const void **structs = calloc((size_t)n + 1, sizeof *structs);
    if (!structs)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %" PRId64 " units", file, n);
    for (int64_t i = 0; i < n; i++)
        structs[i] = &units[i];
    AT_TRY_OUT(open_table(file, parent, "unit", "attest.distribution_units", NULL,
                          "row: one request of one layer that was counted", &g));
    for (int i = 0; (field = at_dist_unit_field(i)); i++)
        AT_TRY_OUT(at_archive_field(&g, field, structs));
out:
    at_h5_close(g.scale);
    at_h5_close(g.group);
    free(structs);
    return status;
}

/* ---- reading ---- */

static char *ledger_row(const struct at_archive_source *source, hsize_t i) {
    return (char *)((struct at_ledger_row *)source->context + i);
}

static char *unit_row(const struct at_archive_source *source, hsize_t i) {
    return (char *)((struct at_dist_unit_row *)source->context + i);
}

static at_status check_stages(const struct at_archive_source *t) {
    at_status status = AT_OK;
    int8_t *stage = malloc(t->n + 1);
    if (!stage)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column stage", t->file);
    AT_TRY_OUT(at_h5_read(t->file, t->group, "stage", AT_H5_I8, 1, &t->n, stage));
    for (hsize_t i = 0; i < t->n; i++)
        if (stage[i] != (int8_t)at_dist_stage((int)(i % AT_DIST_STAGES)))
            AT_FAIL_OUT(AT_USAGE, "%s: row %" PRIu64 " of stage is %d, wanted %d", t->file, (uint64_t)i, stage[i],
                        (int)at_dist_stage((int)(i % AT_DIST_STAGES)));
out:
    free(stage);
    return status;
}

at_status at_dist_read_ledger(const char *file, hid_t parent, const struct at_dist_shape *shape,
                              struct at_ledger_row *rows) {
    static const struct at_archive_place first = { offsetof(struct at_ledger_row, has_first),
                                                   offsetof(struct at_ledger_row, first), "first" };
    const struct at_field *field;
    at_status status = AT_OK;
    struct at_archive_source t = { .file = file, .row_of = ledger_row, .context = rows };
    t.n = (hsize_t)shape->n_layers * (hsize_t)shape->h * AT_DIST_STAGES;
    AT_TRY_OUT(at_archive_open_group(file, parent, AT_GROUP_LEDGER, "attest.distribution_ledger", &t.group));
    AT_TRY_OUT(check_stages(&t));
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY_OUT(at_archive_read_field(&t, field));
    AT_TRY_OUT(at_archive_read_places(&t, &first));
out:
    at_h5_close(t.group);
    return status;
}

/* A unit takes far more than 16 bytes of a file: a longer axis is a lie, found before memory is asked for. */
at_status at_dist_read_units(const char *file, hid_t parent, uint64_t bytes, struct at_dist_unit_row **units,
                             int64_t *n) {
    const struct at_field *field;
    at_status status = AT_OK;
    struct at_archive_source t = { .file = file, .row_of = unit_row };
    AT_TRY_OUT(at_archive_open_group(file, parent, "unit", "attest.distribution_units", &t.group));
    AT_TRY_OUT(at_h5_length(file, t.group, "row", &t.n));
    if (t.n > bytes / 16)
        AT_FAIL_OUT(AT_USAGE, "%s: claims %" PRIu64 " units in %" PRIu64 " bytes", file, (uint64_t)t.n, bytes);
    *units = calloc(t.n + 1, sizeof **units);
    if (!*units)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %" PRIu64 " units", file, (uint64_t)t.n);
    t.context = *units;
    for (int i = 0; (field = at_dist_unit_field(i)); i++) /* before 1.7.0 requests had no identity: it stays empty */
        if (strcmp(field->name, "identity") != 0 || H5Lexists(t.group, field->name, H5P_DEFAULT) > 0)
            AT_TRY_OUT(at_archive_read_field(&t, field));
    *n = (int64_t)t.n;
out:
    at_h5_close(t.group);
    return status;
}
