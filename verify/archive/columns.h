/* Columns from arrays of structs, and the tables of cases and kernels that results refer to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COLUMNS_H
#define AT_COLUMNS_H

#include "verify/archive/h5util.h"
#include "verify/result/record.h"

/* Where columns go: a group, its rows, the scale of the rows and (for arrays) of the values in a row. */
struct at_archive_group {
    const char *file;
    hid_t group, scale, inner;
    hsize_t n;
};

/* The results in canonical order, and the rows of /cases and /kernels they belong to. */
struct at_archive_rows {
    int64_t n, n_cases, n_kernels;
    const struct at_result **results;          /* n */
    const struct at_result **cases, **kernels; /* a result that has the case / the kernel */
    int64_t *case_of, *kernel_of;              /* n */
};

at_status at_archive_rows_make(const char *file, const struct at_run_record *record, struct at_archive_rows *rows);
void at_archive_rows_release(struct at_archive_rows *rows);

/* The column of one field; structs: g->n addresses of the struct that the field's table describes. All NaNs
 * are written with the same bits. */
at_status at_archive_field(const struct at_archive_group *g, const struct at_field *field, const void *const *structs);
at_status at_archive_index(const struct at_archive_group *g, const char *name, const int64_t *values,
                           const char *long_name);
/* Five columns <prefix>_b ... <prefix>_step; -1 where places[i] is NULL. */
at_status at_archive_places(const struct at_archive_group *g, const char *prefix, const struct at_place *const *places);

/* What the root says of the file; `shown_first`: the group that a viewer opens. */
at_status at_archive_write_root(const char *file, hid_t root, const char *shown_first);
at_status at_archive_write_provenance(const char *file, hid_t root, const struct at_run_record *record);
at_status at_archive_write_cases(const char *file, hid_t root, const struct at_archive_rows *rows);
at_status at_archive_write_kernels(const char *file, hid_t root, const struct at_archive_rows *rows);
/* The tensors of every job that was kept, read from its file; no group when there is none. */
at_status at_archive_write_witness(const char *file, hid_t root, const struct at_run_record *record,
                                   const struct at_archive_rows *rows);

#endif
