/* Mutants that are no fault: tests/mutants/equivalent.txt, each line with the reason why.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   FILE 'text of the source from the mutated place on' 'old' -> 'new' : reason
 *
 * As much text as tells the place from the others of the file; white space and ends of lines are alike. FILE@GLOB holds for
 * variants that GLOB matches alone, where others that are made of the file would miss it. */
#ifndef AT_MUTATE_EQUIVALENT_H
#define AT_MUTATE_EQUIVALENT_H

#include <stdint.h>

#include "attest/status.h"

struct equivalent {
    char *line; /* owned, cut into the parts below */
    const char *file, *variants, *text, *old, *new, *reason;
    int number;   /* of its line */
    int64_t site; /* bytes from the file's beginning, of its place */
};

struct equivalent_list {
    struct equivalent *items; /* owned */
    int n;
};

/* Reads the list and finds every place in the sources as they are. AT_USAGE with the line for what cannot be read, fits
 * no place or several, or is there twice. */
at_status equivalents_open(const char *path, struct equivalent_list *list);
void equivalents_release(struct equivalent_list *list);
/* The reason why this mutant is no fault; NULL: none is known. `site`: bytes from the file's beginning. */
const struct equivalent *equivalent_find(const struct equivalent_list *list, const char *file, int64_t site,
                                         const char *old, const char *new, const char *variant);

#endif
