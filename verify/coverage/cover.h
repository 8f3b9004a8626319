/* What of the kernels' sources has run: lines, branches and instances of templates, as gcov reports them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COVER_H
#define AT_COVER_H

#include <stdint.h>

#include "attest/status.h"

/* The branches of one line, in the order of its conditions. Instances of a template in which the compiler has left other
 * conditions of the line than in the rest (`if constexpr`, a parameter that decides) have a list of their own. */
struct at_cover_branches {
    int n;
    int64_t *taken; /* [n]; owned */
};

struct at_cover_line {
    int is_code; /* some instance has instructions of it */
    int64_t count;
    int n_lists;
    struct at_cover_branches *lists; /* owned */
    char *reason;                    /* why it is not reached, by its own source; NULL: nothing said; owned */
};

/* A function, or an instance of one: those of a template share their place. */
struct at_cover_instance {
    char *name; /* demangled; owned */
    int line, column;
    int64_t calls;
};

struct at_cover_file {
    char *path; /* "kernels/..."; owned */
    int n;
    struct at_cover_line *lines; /* [n], of line number i + 1; owned */
    int n_instances, room;
    struct at_cover_instance *instances; /* by line, column and name; owned */
};

/* By path. Zeroed: empty. */
struct at_cover {
    int n;
    struct at_cover_file *files;
};

/* What there is and what ran. `explained`: branches of marked lines that were not taken. */
struct at_cover_sum {
    int64_t lines, lines_run, branches, taken, explained;
    int64_t instances, instances_run; /* of templates that have several; several names at one place */
    int64_t functions, functions_run; /* by place: some instance was called */
};

void at_cover_release(struct at_cover *cover);
/* The file of that path, made when it is not there; NULL: no memory. Valid until the next one is made. */
struct at_cover_file *at_cover_file(struct at_cover *cover, const char *path);
at_status at_cover_add_line(struct at_cover_file *file, int number, int64_t count, const int64_t *taken, int n);
at_status at_cover_add_instance(struct at_cover_file *file, const char *name, int line, int column, int64_t calls);
/* Adds the counts of another one. */
at_status at_cover_merge(struct at_cover *into, const struct at_cover *from);
/* Adds those of a file. */
void at_cover_count(const struct at_cover_file *file, struct at_cover_sum *sum);
/* Branches of a line, and those of them that nothing took. */
int at_cover_line_branches(const struct at_cover_line *line, int *missed);
/* The instances at one place: those from i on; *called of them ran. */
int at_cover_place(const struct at_cover_file *file, int i, int *called);

#endif
