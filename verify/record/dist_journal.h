/* The journal of a recording, D.h5.jsonl: which layers are begun or finished, and the units of these.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DIST_JOURNAL_H
#define AT_DIST_JOURNAL_H

#include "verify/archive/distributions.h"
#include "verify/run/journal_file.h"

/* What the journal says of a layer. Begun: its part is there, and holds its first requests. */
enum at_dist_progress { AT_DIST_UNKNOWN, AT_DIST_BEGUN, AT_DIST_DONE };

struct at_dist_journal {
    struct at_journal *file;
    struct at_dist_journal_layer {
        int64_t number;
        enum at_dist_progress progress;
    } * layer; /* also those without a unit in this shard */
    int64_t n, capacity;
    char shard[32];
};

/* As at_journal_file_open(). shard: "2/5" or "", which a resumed recording must have too. */
at_status at_dist_journal_open(const char *out, const struct at_run_record *record, const char *shard, int resume,
                               struct at_dist_journal *journal);
enum at_dist_progress at_dist_journal_of(const struct at_dist_journal *journal, int64_t layer);
/* A layer that is begun, or that is done with its units, as one durable line. Saying it again does nothing. */
at_status at_dist_journal_append(struct at_dist_journal *journal, int64_t layer, enum at_dist_progress progress,
                                 const struct at_dist_unit_row *units, int64_t n);
at_status at_dist_journal_finish(struct at_dist_journal *journal);
void at_dist_journal_abandon(struct at_dist_journal *journal);

#endif
