/* RUN.h5 from a record: every group and column of README.md, the same bytes for equal records.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The file is built in memory and written by our own code, so that a full disk is an ordinary error. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/columns.h"
#include "verify/archive/h5util.h"
#include "verify/archive/layout.h"
#include "verify/result/record.h"

/* ---- /results ---- */

static at_status write_results(const char *file, hid_t root, const struct at_archive_rows *rows) {
    static const char *const axes[] = { "result" };
    static const char *const starts[] = { "err_bin", "axis" };
    at_status status = AT_OK;
    const struct at_field *field;
    struct at_archive_group g = { .file = file, .n = (hsize_t)rows->n };
    hid_t bins = H5I_INVALID_HID, axis = H5I_INVALID_HID;
    AT_TRY(at_h5_group(file, root, AT_GROUP_RESULTS, "attest.results", "NXdata", &g.group));
    AT_TRY_OUT(at_h5_attr_text(file, g.group, "signal", "ratio_max"));
    AT_TRY_OUT(at_h5_attr_texts(file, g.group, "axes", 1, axes));
    AT_TRY_OUT(at_h5_scale(file, g.group, axes[0], g.n, 0, "row: one case, variant and tensor", &g.scale));
    AT_TRY_OUT(at_h5_scale(file, g.group, starts[0], AT_HIST_BINS, -56,
                           "lower end of a bin of log2(error/limit); first bin: anything below, last: anything above",
                           &bins));
    AT_TRY_OUT(at_h5_scale(file, g.group, starts[1], 4, 0, "coordinate of an element", &axis));
    AT_TRY_OUT(at_archive_index(&g, "case", rows->case_of, "row of /cases"));
    AT_TRY_OUT(at_archive_index(&g, "kernel", rows->kernel_of, "row of /kernels"));
    for (int i = 0; (field = at_result_field(i)); i++) {
        if (field->group != AT_FIELD_RESULTS)
            continue;
        g.inner = field->count == AT_HIST_BINS ? bins : axis;
        AT_TRY_OUT(at_archive_field(&g, field, (const void *const *)rows->results));
    }
out:
    at_h5_close(axis);
    at_h5_close(bins);
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}

/* ---- /ledger ---- */

struct ledger_rows {
    int64_t n, n_totals;
    const void **rows, **totals; /* struct at_ledger_row / struct at_ledger */
    int64_t *result, *total_result;
    int8_t *stage;
    double *headroom;
    const struct at_place **first, **first_laundered; /* NULL: none */
};

static void release_ledger(struct ledger_rows *l) {
    free(l->rows);
    free(l->totals);
    free(l->result);
    free(l->total_result);
    free(l->stage);
    free(l->headroom);
    free(l->first);
    free(l->first_laundered);
}

static at_status gather_ledger(const char *file, const struct at_archive_rows *rows, struct ledger_rows *l) {
    *l = (struct ledger_rows){ 0 };
    for (int64_t i = 0; i < rows->n; i++)
        l->n_totals += rows->results[i]->has_ledger != 0;
    size_t totals = (size_t)l->n_totals + 1, n = totals * AT_STAGE_COUNT;
    l->rows = calloc(n, sizeof *l->rows);
    l->totals = calloc(totals, sizeof *l->totals);
    l->result = calloc(n, sizeof *l->result);
    l->total_result = calloc(totals, sizeof *l->total_result);
    l->stage = calloc(n, sizeof *l->stage);
    l->headroom = calloc(n, sizeof *l->headroom);
    l->first = calloc(n, sizeof *l->first);
    l->first_laundered = calloc(totals, sizeof *l->first_laundered);
    if (!l->rows || !l->totals || !l->result || !l->total_result || !l->stage || !l->headroom || !l->first ||
        !l->first_laundered)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %zu rows of the ledger", file, n);
    for (int64_t i = 0, t = 0; i < rows->n; i++) {
        const struct at_ledger *ledger = &rows->results[i]->ledger;
        if (!rows->results[i]->has_ledger)
            continue;
        l->totals[t] = ledger;
        l->total_result[t] = i;
        l->first_laundered[t++] = ledger->has_laundered ? &ledger->first_laundered : NULL;
        for (int s = 0; s < AT_STAGE_COUNT; s++) {
            const struct at_ledger_row *row = &ledger->stage[s];
            l->rows[l->n] = row;
            l->result[l->n] = i;
            l->stage[l->n] = (int8_t)s;
            l->headroom[l->n] = at_ledger_headroom(row);
            l->first[l->n++] = row->has_first ? &row->first : NULL;
        }
    }
    return AT_OK;
}

static at_status write_totals(const char *file, hid_t ledger, const struct ledger_rows *l) {
    at_status status = AT_OK;
    const struct at_field *field;
    struct at_archive_group g = { .file = file, .n = (hsize_t)l->n_totals };
    AT_TRY(at_h5_group(file, ledger, AT_GROUP_TOTALS, "attest.ledger_totals", "NXcollection", &g.group));
    AT_TRY_OUT(at_h5_scale(file, g.group, "total", g.n, 0, "row: one result that has a ledger", &g.scale));
    AT_TRY_OUT(at_archive_index(&g, "result", l->total_result, "row of /results"));
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        AT_TRY_OUT(at_archive_field(&g, field, l->totals));
    AT_TRY_OUT(at_archive_places(&g, "first_laundered", l->first_laundered));
out:
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}

static at_status write_stage(const struct at_archive_group *g, const int8_t *stage) {
    char meanings[256] = "";
    for (int s = 0; s < AT_STAGE_COUNT; s++)
        snprintf(meanings + strlen(meanings), sizeof meanings - strlen(meanings), "%s%s", s ? " " : "",
                 at_stage_name((enum at_stage)s));
    struct at_h5_column column = { .name = "stage",
                                   .type = AT_H5_I8,
                                   .rank = 1,
                                   .dims = { g->n },
                                   .scales = { g->scale },
                                   .units = "1",
                                   .long_name = "stage of the evaluation",
                                   .flag_meanings = meanings,
                                   .n_flags = AT_STAGE_COUNT,
                                   .data = stage };
    return at_h5_write(g->file, g->group, &column);
}

static at_status write_ledger(const char *file, hid_t root, const struct at_archive_rows *rows) {
    static const char *const axes[] = { "row" };
    at_status status = AT_OK;
    const struct at_field *field;
    struct ledger_rows l;
    struct at_archive_group g = { .file = file, .group = H5I_INVALID_HID, .scale = H5I_INVALID_HID };
    AT_TRY_OUT(gather_ledger(file, rows, &l));
    g.n = (hsize_t)l.n;
    AT_TRY_OUT(at_h5_group(file, root, AT_GROUP_LEDGER, "attest.ledger", "NXdata", &g.group));
    AT_TRY_OUT(at_h5_attr_text(file, g.group, "signal", "headroom"));
    AT_TRY_OUT(at_h5_attr_texts(file, g.group, "axes", 1, axes));
    AT_TRY_OUT(at_h5_scale(file, g.group, axes[0], g.n, 0, "row: one result and stage", &g.scale));
    AT_TRY_OUT(at_archive_index(&g, "result", l.result, "row of /results"));
    AT_TRY_OUT(write_stage(&g, l.stage));
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY_OUT(at_archive_field(&g, field, l.rows));
    AT_TRY_OUT(at_archive_places(&g, "first", l.first));
    struct at_h5_column headroom = { .name = "headroom",
                                     .type = AT_H5_F64,
                                     .rank = 1,
                                     .dims = { g.n },
                                     .scales = { g.scale },
                                     .units = "bit",
                                     .long_name = "log2(65504 / max_abs); inf: nothing but zeros; NaN: no finite value",
                                     .data = l.headroom };
    AT_TRY_OUT(at_h5_write(file, g.group, &headroom));
    AT_TRY_OUT(write_totals(file, g.group, &l));
out:
    release_ledger(&l);
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

static at_status write_all(const char *file, hid_t id, const struct at_run_record *record) {
    at_status status = AT_OK;
    struct at_archive_rows rows = { 0 };
    AT_TRY_OUT(at_archive_rows_make(file, record, &rows));
    AT_TRY_OUT(at_archive_write_root(file, id, AT_GROUP_RESULTS));
    AT_TRY_OUT(at_archive_write_provenance(file, id, record));
    AT_TRY_OUT(at_archive_write_cases(file, id, &rows));
    AT_TRY_OUT(at_archive_write_kernels(file, id, &rows));
    AT_TRY_OUT(write_results(file, id, &rows));
    AT_TRY_OUT(write_ledger(file, id, &rows));
    AT_TRY_OUT(at_archive_write_witness(file, id, record, &rows));
out:
    at_archive_rows_release(&rows);
    return status;
}

at_status at_archive_write(const struct at_run_record *record, const char *path) {
    struct at_h5_image image;
    hid_t id;
    at_h5_quiet();
    AT_TRY(at_h5_create(path, &image, &id));
    at_status status = write_all(path, id, record);
    if (status == AT_OK)
        return at_h5_save(path, id, &image);
    at_h5_abandon(id, &image);
    return status;
}
