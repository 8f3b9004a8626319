/* Notebooks (nbformat 4.5) from Python files in the percent format.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_NOTEBOOK_H
#define AT_NOTEBOOK_H

#include <jansson.h>

#include "attest/status.h"

/* What @TITLE@, @ARCHIVE@ and @GROUP@ stand for. In code they are put as the inside of a string in double quotes, in
 * markdown as letters, digits and "_ ./-"; anything else is '?' there. NULL is "". */
struct at_notebook_words {
    const char *title, *archive, *group;
};

struct at_notebook {
    json_t *cells;
};

at_status at_notebook_init(struct at_notebook *notebook);
void at_notebook_release(struct at_notebook *notebook);
/* Adds the cells of a file: a line "# %% [markdown]" or "# %%" begins one, lines of markdown begin with '#'. Lines
 * before the first are left out. lines: NULL at the end. The cells' ids are <id>-1, <id>-2, ... */
at_status at_notebook_add(struct at_notebook *notebook, const char *id, const char *const *lines,
                          const struct at_notebook_words *words);
/* The whole notebook as text, keys sorted; the caller frees it. */
at_status at_notebook_text(const struct at_notebook *notebook, char **text);

#endif
