/* A journal of anything: a file of JSON lines, appended and fsynced, that a kill -9 leaves whole but for its last line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_JOURNAL_FILE_H
#define AT_JOURNAL_FILE_H

#include <stdint.h>

#include <jansson.h>

#include "attest/status.h"

/* What a journal holds: entries, some to a line, under one name. Reading hands over each in turn. */
struct at_journal_content {
    const char *name; /* "results": the event, and the key of its array */
    void *context;
    at_status (*take)(void *context, const char *where, const json_t *entry); /* where: "file:line" */
    void (*forget)(void *context); /* what was taken is of an earlier run, which is written over */
    /* Takes all entries of a line at once, faster than through JSON; `text` ends with a newline and a 0. *n is their number;
     * 0: the line is not as this content writes it, nothing was taken, and the ordinary way takes or refuses it. NULL: there is
     * no faster way. */
    at_status (*take_line)(void *context, const char *where, const char *text, int64_t *n);
};

/* What was asked for and by what: canonical JSON, kept as texts because archives keep their bytes. */
struct at_journal_head {
    const char *request, *provenance; /* NULL: "{}" */
};

struct at_journal;

/* Opens or creates. With `resume`: hands over the entries of an earlier run after checking that its head equals this
 * one (AT_USAGE otherwise: what differs); a torn last line is dropped. Without: an existing journal is an error unless
 * it is empty or its run ended. A lock keeps a second process away. */
at_status at_journal_file_open(const char *path, const struct at_journal_head *head, int resume,
                               const struct at_journal_content *content, struct at_journal **journal);
/* Lines of entries there are: steps that were finished. */
int64_t at_journal_lines(const struct at_journal *journal);
/* Appends n entries (JSON texts; none is allowed) as one durable line, of which the journal counts a step. Threads may
 * append at the same time: lines come in any order, and they share the waits for the disk. AT_IO: the file has nothing of it. */
at_status at_journal_file_append(struct at_journal *journal, const char *const *entries, int64_t n);
/* Marks the end of the run and closes. `shard`: "1/4", "" or NULL. */
at_status at_journal_finish(struct at_journal *journal, const char *shard);
void at_journal_abandon(struct at_journal *journal); /* close without the end mark; NULL is allowed */

/* Reads a whole journal. *request and *provenance are the caller's to free, also after a failure; *finished: it has the
 * end mark. */
at_status at_journal_file_read(const char *path, const struct at_journal_content *content, char **request,
                               char **provenance, char shard[32], int *finished);

#endif
