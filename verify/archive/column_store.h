/* Columns that are filled row by row and read column by column, as HDF5 wants them: what is full goes to a scratch file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COLUMN_STORE_H
#define AT_COLUMN_STORE_H

#include "verify/archive/h5util.h"
#include "verify/result/scratch.h"

enum { AT_STORE_COLUMNS = 160 };

struct at_store_piece {
    int64_t offset; /* in the scratch file */
    size_t packed, bytes;
};

struct at_store_column {
    enum at_h5_type type;
    size_t row;            /* bytes of the values of a row; texts: 0 */
    char *data;            /* of the rows in hand; texts one after the other with their zeros */
    size_t used, capacity; /* in bytes */
    struct at_store_piece *pieces;
};

/* A table in the making: all its rows but at most AT_H5_PIECE_ROWS are in the file, which tables may share. */
struct at_store {
    const char *file; /* for errors: what is being written */
    struct at_scratch *scratch;
    struct at_store_column columns[AT_STORE_COLUMNS];
    int n_columns;
    int64_t n, n_pieces;
    void *unpacked, *packed; /* of the piece that was read last */
    size_t unpacked_bytes, packed_bytes;
    const char **texts;
};

/* `scratch` must outlive the store. */
void at_store_init(struct at_store *store, const char *file, struct at_scratch *scratch);
void at_store_release(struct at_store *store);
/* A column before the first row: `count` values in each row (texts: 1). Its number is that of columns before it. */
at_status at_store_column(struct at_store *store, enum at_h5_type type, int count);
/* Value(s) of the row in hand for column c, once each; of a text its address. */
at_status at_store_put(struct at_store *store, int c, const void *value);
at_status at_store_end_row(struct at_store *store);
/* Rows from `first`, a multiple of AT_H5_PIECE_ROWS, to the end of their piece: values, or addresses of texts, good until the
 * next call. */
at_status at_store_read(struct at_store *store, int c, int64_t first, const void **data);

#endif
