/* /study: a row for each mode of accumulation on the sums of one product of a case.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/archive/columns.h"
#include "verify/archive/layout.h"
#include "verify/study.h"

static at_status write_columns(struct at_archive_group *g, const struct at_study_rows *rows, const void **structs,
                               const struct at_place **places) {
    const struct at_field *field;
    for (int64_t i = 0; i < rows->n; i++)
        structs[i] = &rows->items[i];
    for (int i = 0; (field = at_study_field(i)); i++)
        AT_TRY(at_archive_field(g, field, structs));
    for (int64_t i = 0; i < rows->n; i++) {
        structs[i] = &rows->items[i].ledger;
        places[i] = rows->items[i].ledger.has_first ? &rows->items[i].ledger.first : NULL;
    }
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY(at_archive_field(g, field, structs));
    return at_archive_places(g, "first", places);
}

static at_status write_rows(const char *file, hid_t root, const struct at_study_rows *rows) {
    static const char *const axes[] = { "row" };
    at_status status = AT_OK;
    const void **structs = calloc((size_t)rows->n + 1, sizeof *structs);
    const struct at_place **places = calloc((size_t)rows->n + 1, sizeof *places);
    struct at_archive_group g = {
        .file = file, .n = (hsize_t)rows->n, .scale = H5I_INVALID_HID, .group = H5I_INVALID_HID
    };
    if (!structs || !places)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %lld rows", file, (long long)rows->n);
    AT_TRY_OUT(at_h5_group(file, root, AT_GROUP_STUDY, "attest.study", "NXdata", &g.group));
    AT_TRY_OUT(at_h5_attr_text(file, g.group, "signal", "err_mean"));
    AT_TRY_OUT(at_h5_attr_texts(file, g.group, "axes", 1, axes));
    AT_TRY_OUT(at_h5_scale(file, g.group, axes[0], g.n, 0, "row: one mode on one product of a case", &g.scale));
    AT_TRY_OUT(write_columns(&g, rows, structs, places));
out:
    free(structs);
    free(places);
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}

at_status at_study_archive(const struct at_study_rows *rows, const struct at_run_record *record, const char *path) {
    struct at_h5_image image;
    hid_t id;
    at_h5_quiet();
    AT_TRY(at_h5_create(path, &image, &id));
    at_status status = at_archive_write_root(path, id, AT_GROUP_STUDY);
    if (status == AT_OK)
        status = at_archive_write_provenance(path, id, record);
    if (status == AT_OK)
        status = write_rows(path, id, rows);
    if (status == AT_OK)
        return at_h5_save(path, id, &image);
    at_h5_abandon(id, &image);
    return status;
}
