/* /bench: a row for each variant that was verified and timed on a case.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/archive/columns.h"
#include "verify/archive/layout.h"
#include "verify/bench.h"

static at_status write_rows(const char *file, hid_t root, const struct at_bench_row *rows, int n) {
    static const char *const axes[] = { "row" };
    at_status status = AT_OK;
    const struct at_field *field;
    const void **structs = calloc((size_t)n + 1, sizeof *structs);
    struct at_archive_group g = { .file = file, .n = (hsize_t)n, .scale = H5I_INVALID_HID, .group = H5I_INVALID_HID };
    if (!structs)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %d rows", file, n);
    for (int i = 0; i < n; i++)
        structs[i] = &rows[i];
    AT_TRY_OUT(at_h5_group(file, root, AT_GROUP_BENCH, "attest.bench", "NXdata", &g.group));
    AT_TRY_OUT(at_h5_attr_text(file, g.group, "signal", "cold"));
    AT_TRY_OUT(at_h5_attr_texts(file, g.group, "axes", 1, axes));
    AT_TRY_OUT(at_h5_scale(file, g.group, axes[0], g.n, 0, "row: one variant on one case", &g.scale));
    for (int i = 0; (field = at_bench_field(i)); i++)
        AT_TRY_OUT(at_archive_field(&g, field, structs));
out:
    free(structs);
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}

at_status at_bench_archive(const struct at_bench_row *rows, int n, const struct at_run_record *record,
                           const char *path) {
    struct at_h5_image image;
    hid_t id;
    at_h5_quiet();
    AT_TRY(at_h5_create(path, &image, &id));
    at_status status = at_archive_write_root(path, id, AT_GROUP_BENCH);
    if (status == AT_OK)
        status = at_archive_write_provenance(path, id, record);
    if (status == AT_OK)
        status = write_rows(path, id, rows, n);
    if (status == AT_OK)
        return at_h5_save(path, id, &image);
    at_h5_abandon(id, &image);
    return status;
}
