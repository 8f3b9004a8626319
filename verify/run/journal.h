/* The journal of a run of verify, `RUN.h5.jsonl`: every result that was printed survives a kill -9.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_JOURNAL_H
#define AT_JOURNAL_H

#include "verify/run/journal_file.h"
#include "verify/result/record.h"

/* Opens or creates. With `resume`: reads the finished results of an earlier run into `done` after checking
 * that its request equals record->request (AT_USAGE otherwise: what differs); a torn last line is dropped.
 * Without: an existing journal is an error unless it is empty or its run ended. */
at_status at_journal_open(const char *path, const struct at_run_record *record, int resume, struct at_run_record *done,
                          struct at_journal **journal);
/* The same into a `done` that was made by the caller, whose results may be `stored`. When what was read is of a run that ended,
 * it is empty and not stored. */
at_status at_journal_open_into(const char *path, const struct at_run_record *record, int resume,
                               struct at_run_record *done, struct at_journal **journal);
/* Appends the results of one finished job (all tensors) as one durable step. */
at_status at_journal_append(struct at_journal *journal, const struct at_result *results, int n);
/* Reads a whole journal and gives each result to `put` in turn, whose failure ends the reading: results of a large run need not
 * all be in memory. `head` (initialised here) gets request and provenance; shard as "1/4"; *finished: it has the end mark. */
at_status at_journal_visit(const char *path, at_status (*put)(void *context, const struct at_result *result),
                           void *context, struct at_run_record *head, char shard[32], int *finished);
/* The same into a record. */
at_status at_journal_read(const char *path, struct at_run_record *record, char shard[32], int *finished);

#endif
