/* Which cases a text selects: one glob for role:id, or @NAME, the globs of a file NAME.selection beside the case files.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A selection is committed, so that everybody who says @check means the same cases. Its file has a glob a line, and may
 * have one line `random N SEED` for N cases drawn from the domains (random_cases.h), which have the role random; what
 * stands behind a # at the beginning of a line or after a space is a comment. */
#ifndef AT_CASE_GLOBS_H
#define AT_CASE_GLOBS_H

#include <stdint.h>

#include "attest/status.h"

struct at_case_glob {
    const char *text;
    int line; /* of the selection's file; 0: given as it is */
    int hits; /* names that it has matched */
};

struct at_case_globs {
    struct at_case_glob *items;
    int n;
    char path[1100]; /* of the selection's file, "" without one */
    char *memory;
    int64_t random; /* random cases that a line `random N SEED` wants beside the committed ones; 0: none */
    uint64_t random_seed;
};

/* Is `text` the name of a selection? @(a|b):* is a glob. */
int at_is_selection(const char *text);
/* `dir` is the folder of the case files. AT_NOT_FOUND names the selections that there are; AT_USAGE: a file without a
 * glob. */
at_status at_case_globs_open(const char *dir, const char *text, struct at_case_globs *globs);
/* Does some glob match role:id? Counts a hit of every glob that does. */
int at_case_globs_match(struct at_case_globs *globs, const char *name);
void at_case_globs_close(struct at_case_globs *globs);

#endif
