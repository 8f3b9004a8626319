/* Rows of a study or a benchmark: any array of structs that a table of fields describes, into an archive and back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TABLE_H
#define AT_TABLE_H

#include "verify/result/record.h"

struct at_table {
    const char *group, *parent; /* "accumulate" in "studies"; parent NULL: in the root */
    const char *type;           /* encoding-type */
    const char *signal;         /* the column that viewers plot */
    const char *row;            /* what a row is */
    const struct at_field *(*field)(int i);
    /* Columns that older archives do not have, NULL at the end; then numbers are NaN, places -1, counts 0, texts empty. NULL: none. */
    const char *const *later;
    size_t row_bytes;
    int has_ledger;
    size_t ledger; /* with has_ledger: offset of a struct at_ledger_row in a row */
};

struct at_table_rows {
    const struct at_table *table;
    void *rows;
    int64_t n; /* after reading, -1: the file has no such group */
};

/* verify/archive: a file with these tables (the first is what viewers open) and the provenance of `record`. Equal rows
 * give equal bytes; temp + fsync + rename. */
at_status at_archive_write_tables(const struct at_table_rows *tables, int n_tables, const struct at_run_record *record,
                                  const char *path);
/* Reads those of the tables that the file has into arrays that the caller frees, also after a failure; and what
 * `record` (initialised) has of provenance. Refuses a newer major version, ignores columns and groups that it does not
 * know. */
at_status at_archive_read_tables(const char *path, struct at_table_rows *tables, int n_tables,
                                 struct at_run_record *record);

#endif
