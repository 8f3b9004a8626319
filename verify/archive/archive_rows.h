/* Results of a large archive without all of it in memory: a look at every row, and some rows whole.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ARCHIVE_ROWS_H
#define AT_ARCHIVE_ROWS_H

#include "verify/result/record.h"

/* Rows of /results. Errors as of at_archive_read(). */
at_status at_archive_count(const char *path, int64_t *n);

/* Gives `visit` every result in turn with the fields that are named (NULL at the end; columns that an old archive does not have
 * keep what at_result_begin() sets, everything else is 0) and nothing else. `cause` is there only where the state is of
 * AT_CLASS_DECLINED: texts are what takes time. A failure of `visit` ends it. Memory: a piece of each column, and the texts of
 * cases and kernels. */
at_status at_archive_scan(const char *path, const char *const *fields,
                          at_status (*visit)(void *context, int64_t row, const struct at_result *result),
                          void *context);

/* Rows `rows` (ascending, n of them) of the archive with all fields but arrays of more than 8 values, and of the ledger what
 * its stages counted; into a record that is initialised here. */
at_status at_archive_read_rows(const char *path, const int64_t *rows, int64_t n, struct at_run_record *record);

#endif
