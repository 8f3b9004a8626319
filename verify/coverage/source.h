/* The text of a source file, and what it says of lines that are not reached.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COVER_SOURCE_H
#define AT_COVER_SOURCE_H

#include "verify/coverage/cover.h"

struct at_cover_source {
    char *text;   /* owned; ends of lines are zeros */
    char **lines; /* [n]; owned array */
    int n;
};

/* The file at tree/path. */
at_status at_cover_source_open(const char *tree, const char *path, struct at_cover_source *source);
void at_cover_source_close(struct at_cover_source *source);

/* Line (1-based) in which the lambda ends whose `[` stands at that line and column (both 1-based); `line` itself where none
 * begins there. */
int at_cover_lambda_end(const struct at_cover_source *source, int line, int column);

/* Gives lines of `file` the reasons that the source states: a comment that begins with `not reached: ` speaks of its own
 * line, or, where it stands alone, of the line after it. AT_USAGE for one without a reason, and, where all
 * variants that may include the file were selected, for one of a line that has no code. */
at_status at_cover_mark(const struct at_cover_source *source, int is_whole, struct at_cover_file *file);

#endif
