/* The journal of a recording, D.h5.jsonl: which layers are finished, and their units.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DIST_JOURNAL_H
#define AT_DIST_JOURNAL_H

#include "verify/archive/distributions.h"
#include "verify/journal_file.h"

struct at_dist_journal {
    struct at_journal *file;
    int64_t *done; /* numbers of finished layers, also of those without a unit in this shard */
    int64_t n, capacity;
    char shard[32];
};

/* As at_journal_file_open(). shard: "2/5" or "", which a resumed recording must have too. */
at_status at_dist_journal_open(const char *out, const struct at_run_record *record, const char *shard, int resume,
                               struct at_dist_journal *journal);
int at_dist_journal_has(const struct at_dist_journal *journal, int64_t layer);
/* A finished layer and its units, as one durable line. */
at_status at_dist_journal_append(struct at_dist_journal *journal, int64_t layer, const struct at_dist_unit_row *units,
                                 int64_t n);
at_status at_dist_journal_finish(struct at_dist_journal *journal);
void at_dist_journal_abandon(struct at_dist_journal *journal);

#endif
