/* Tables of an archive as they stand in the file: columns by name, for programs that show whatever is there.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike the readers of record.h and table.h, nothing here knows what a column means: a study or a column of a later
 * minor version is read like any other. */
#ifndef AT_FRAME_H
#define AT_FRAME_H

#include <stdint.h>

#include "attest/status.h"

enum at_frame_kind { AT_FRAME_TEXT, AT_FRAME_FLAG, AT_FRAME_I64, AT_FRAME_U64, AT_FRAME_F64 };

/* n x width values, row-major. Texts are valid UTF-8. A flag is an index of `flags`. Narrow integers are widened. */
struct at_frame_column {
    char *name, *units, *long_name; /* never NULL */
    enum at_frame_kind kind;
    int width;         /* values of a row; 1 but for arrays */
    int has_missing;   /* integers: -1 says there is none */
    char *flag_text;   /* with AT_FRAME_FLAG: the space-separated names, cut at the spaces */
    const char **flag; /* n_flags of them, inside flag_text */
    int n_flags;
    int64_t rows;  /* for which there are values */
    int64_t first; /* row of the first value there is: 0, but for a window */
    union {
        char **text;
        int64_t *i64; /* flags, too */
        uint64_t *u64;
        double *f64;
    } at;
};

/* A group whose columns have one axis in common. The axis itself (0, 1, 2, ...) is the first column. */
struct at_frame {
    char *group; /* path without the first slash: "results", "studies/accumulate" */
    char *type;  /* encoding-type: "attest.bench" */
    int64_t n;   /* rows */
    int is_open; /* columns are described, values come by windows */
    struct at_frame_column *columns;
    int n_columns;
};

struct at_frames {
    char *request, *build; /* provenance: canonical JSON */
    char *version;         /* encoding-version of the file */
    struct at_frame *items;
    int n;
    int has_distributions; /* verify/archive/distributions.h reads them */
};

/* Reads every table: /cases, /kernels, /results, /ledger, /ledger/totals, /bench, each group of /studies and the tables
 * in /distributions. Groups and columns of other kinds are ignored. Refuses a newer major version, and axes and texts
 * that the file cannot hold. `frames` needs no initialising and is released by the caller, also after a failure. */
at_status at_frames_read(const char *path, struct at_frames *frames);
/* The same, but tables of more than `most` rows have no values yet (is_open). */
at_status at_frames_open(const char *path, int64_t most, struct at_frames *frames);
/* Of a table that is open: values of rows [first, first + n) of those columns that `wanted` (NULL: all) says, in place of what
 * they had; the other columns lose theirs. Fast where first is a multiple of AT_FRAME_ROWS, which bounds memory. */
enum { AT_FRAME_ROWS = 1 << 16 };
at_status at_frame_window(const char *path, struct at_frame *frame, int64_t first, int64_t n,
                          int (*wanted)(const struct at_frame_column *column));
/* Gives the values of a column back. */
void at_frame_forget(struct at_frame_column *column);
void at_frames_release(struct at_frames *frames);

/* NULL: not there. */
const struct at_frame *at_frame_find(const struct at_frames *frames, const char *group);
const struct at_frame_column *at_frame_column(const struct at_frame *frame, const char *name);
/* A number of any kind as double; NaN where there is none, for texts, and for a column that is NULL. */
double at_frame_number(const struct at_frame_column *column, int64_t row, int place);
/* Text or flag name; "" for numbers and a column that is NULL. */
const char *at_frame_text(const struct at_frame_column *column, int64_t row);

#endif
