/* Which cases a text selects: one glob for role:id, or @NAME, the globs of a file NAME.selection beside the case files.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A selection is committed, so that everybody who says @check means the same cases. Its file has a glob a line, and may
 * have one line `random N SEED` for N cases drawn from the domains (random_cases.h), which have the role random; what
 * stands behind a # at the beginning of a line or after a space is a comment.
 *
 * A line `only VARIANTS CASES` selects nothing: of the selected cases that its glob CASES matches, variants are judged whose
 * family/variant its glob VARIANTS matches; several such lines for one case add up. It is for what is dear and tells of
 * few variants something that cheaper cases do not. A runner that has none of the named variants in the case's family is
 * judged on the case as if the line were not there, and so is every runner that is not this project's (plan.c). A mutant has
 * the name of the variant that it was made of. */
#ifndef AT_CASE_GLOBS_H
#define AT_CASE_GLOBS_H

#include <stdint.h>

#include "attest/status.h"

struct at_case_glob {
    const char *text;
    const char *only; /* glob of the variants that a line `only` leaves to its cases; NULL: a line that selects */
    int line;         /* of the selection's file; 0: given as it is */
    int hits;         /* names that it has matched */
    int variants;     /* of a line `only`: those that it has let pass, each case's anew */
    int is_here;      /* it matches the name that was matched last */
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
/* Does some line that selects match role:id? Counts a hit of every glob that does, those of lines `only` too. */
int at_case_globs_match(struct at_case_globs *globs, const char *name);
/* Do lines `only` match the name that was matched last? */
int at_case_globs_restrict(const struct at_case_globs *globs);
/* Does one of those lines let family/variant pass? */
int at_case_globs_allow(struct at_case_globs *globs, const char *variant);
void at_case_globs_close(struct at_case_globs *globs);

#endif
