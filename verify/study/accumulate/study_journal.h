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

/* A whole journal of a shard: its rows and, beside them, at which row each case begins. Both are owned; record gets request and
 * provenance. AT_USAGE when its study did not end. */
struct at_study_shard {
    struct at_study_rows rows;
    int64_t *begins; /* [n_cases + 1] */
    int64_t n_cases, capacity;
    char place[512]; /* of the line that was read last */
    char shard[32];
};
at_status at_study_journal_read(const char *path, struct at_study_shard *shard, struct at_run_record *record);
void at_study_shard_release(struct at_study_shard *shard);

#endif
