/* What an archive may hold beside results: each feature describes its own, so that show and merge name none of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CONTENT_H
#define AT_CONTENT_H

#include <stdio.h>

#include "verify/result/table.h"

/* Either a table of rows (table, show_rows), or a content with files of its own (is, show). */
struct at_content {
    const char *what; /* as "distributions": what merge says it has joined */

    const struct at_table *table;
    void (*show_rows)(const struct at_table_rows *rows, const struct at_run_record *record, FILE *out);

    int (*is)(const char *path);                    /* 1: the file has this content; errors give 0. NULL: nobody asks */
    at_status (*show)(const char *path, FILE *out); /* NULL: by its table */
    /* Writes the archive that one process would have written. NULL: this content has no shards. */
    at_status (*merge)(const char *const *paths, int n, const char *out);
};

/* Content i of all there are, NULL past the end. A file's are shown in this order. verify/contents.c */
const struct at_content *at_content_at(int i);

#endif
