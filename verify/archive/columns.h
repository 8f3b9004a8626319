/* Columns from arrays of structs or from what was stored of them, and the groups of an archive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COLUMNS_H
#define AT_COLUMNS_H

#include "verify/archive/archive_keys.h"
#include "verify/archive/column_store.h"
#include "verify/archive/h5util.h"
#include "verify/result/record.h"

/* Where columns go: a group, its rows, the scale of the rows and (for arrays) of the values in a row. */
struct at_archive_group {
    const char *file;
    hid_t group, scale, inner;
    hsize_t n;
};

/* The column of one field; structs: g->n addresses of the struct that the field's table describes. All NaNs
 * are written with the same bits. */
at_status at_archive_field(const struct at_archive_group *g, const struct at_field *field, const void *const *structs);
/* The same of column c of a store, into which at_archive_put() has put the field of each row. */
at_status at_archive_stored(const struct at_archive_group *g, const struct at_field *field, struct at_store *store,
                            int c);
enum at_h5_type at_archive_type(enum at_field_kind kind);
/* The value of a field of one struct for the row in hand. */
at_status at_archive_put(struct at_store *store, int c, const struct at_field *field, const void *base);
/* Column c of a store under a name, units, long_name and flags that `column` has; the rest of it is set here. */
at_status at_archive_stored_column(const struct at_archive_group *g, struct at_h5_column *column,
                                   struct at_store *store, int c);
/* One that is no field of a table: integers, with `missing` -1 where there is none, or doubles. */
at_status at_archive_stored_number(const struct at_archive_group *g, const char *name, struct at_store *store, int c,
                                   const char *units, int missing, const char *long_name);
/* What the five columns of a place are called, and where each is in a struct at_place. */
enum { AT_PLACE_PARTS = 5 };
struct at_archive_part {
    const char *name, *meaning;
    size_t offset;
};
extern const struct at_archive_part at_archive_parts[AT_PLACE_PARTS];
at_status at_archive_index(const struct at_archive_group *g, const char *name, const int64_t *values,
                           const char *long_name);
/* Five columns <prefix>_b ... <prefix>_step; -1 where places[i] is NULL. */
at_status at_archive_places(const struct at_archive_group *g, const char *prefix, const struct at_place *const *places);

/* What the root says of the file; `shown_first`: the group that a viewer opens. */
at_status at_archive_write_root(const char *file, hid_t root, const char *shown_first);
at_status at_archive_write_provenance(const char *file, hid_t root, const struct at_run_record *record);
at_status at_archive_write_cases(const char *file, hid_t root, const struct at_archive_keys *cases);
at_status at_archive_write_kernels(const char *file, hid_t root, const struct at_archive_keys *kernels);
/* The tensors of every job that was kept, in the order of the run, read from its file; no group when there is none. */
at_status at_archive_write_witness(const char *file, hid_t root, const struct at_run_record *record,
                                   const struct at_result *const *kept, int64_t n);

#endif
