/* The journal of a study, `S.h5.jsonl`: what a kill -9 leaves, --resume goes on from.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_JOURNAL_H
#define AT_STUDY_JOURNAL_H

#include "verify/run/journal_file.h"
#include "verify/study/accumulate/study.h"

/* As at_journal_file_open; with `resume` the rows of finished cases are added to `rows`, and at_journal_lines() says
 * how many cases that were. record: request and provenance. */
at_status at_study_journal_open(const char *path, const struct at_run_record *record, int resume,
                                struct at_study_rows *rows, struct at_journal **journal);
/* The rows of one case, before their fits: those need all of them. */
at_status at_study_journal_append(struct at_journal *journal, const struct at_study_row *rows, int64_t n);

#endif
