/* What a run of `attest coverage` has found, and its shapes: text, JSON, HTML, and the gate.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COVER_REPORT_H
#define AT_COVER_REPORT_H

#include <stdio.h>

#include "verify/coverage/cover.h"
#include "verify/coverage/source.h"
#include "verify/plan/plan.h"

struct at_cover_variant {
    char family[64], name[96], path[160];
    int64_t ran, declined, broken; /* its jobs */
    char why[384];                 /* of the first broken one */
    struct at_cover_sum own, all;  /* of its own file; with the headers that it includes, as it uses them */
    struct at_cover cover;         /* the same, line by line */
    int is_read;                   /* `cover` is up to date */
    int is_closed;                 /* it was launched, and nothing of its sources is open any more */
};

/* A case by itself, on all selected variants that take it. */
struct at_cover_case {
    char id[1024], role[32];
    int64_t taken, own, added; /* branches; those that no other case takes; that none before it by id takes */
    int is_enough;             /* one of the few that take together what all take */
};

struct at_cover_report {
    const char *const *globs; /* as typed; none: all */
    int n_globs;
    const char *cases;
    struct at_cover cover;           /* of all selected variants */
    struct at_cover_source *sources; /* [cover.n] */
    int n_sources;                   /* of them that are open */
    char *is_whole;                  /* [cover.n]: every variant that may include the file was selected */
    int n_variants;
    struct at_cover_variant *variants;
    int64_t n_cases;                   /* asked for case by case; 0: not */
    struct at_cover_case *cases_alone; /* [n_cases], owned; those first that have the fewest branches of their own */
};

/* What a file has to answer for. */
enum at_cover_fault {
    AT_COVER_UNTAKEN,  /* a branch that nothing takes, and no reason */
    AT_COVER_UNCALLED, /* a function that nothing calls, and no reason */
    AT_COVER_REACHED   /* a reason, and everything on the line is reached */
};

/* Calls `put` for each fault of the files that are whole; their number. `line`: 1-based. NULL: only counts. */
int64_t at_cover_faults(const struct at_cover_report *r,
                        void (*put)(void *context, const struct at_cover_report *r, int file, int line,
                                    enum at_cover_fault fault),
                        void *context);
/* Of the whole files together. */
void at_cover_whole(const struct at_cover_report *r, struct at_cover_sum *sum);
/* 1 when nothing is left open, no job went wrong and, where no file is left out, under 1 % of all branches are explained. */
int at_cover_gate(const struct at_cover_report *r);
/* "2 of 4 branches never taken", "never run": what a line lacks; "" for nothing. */
void at_cover_words(const struct at_cover_line *line, char *text, size_t size);

/* `gate`: what is wrong is said in words that belong to a failure. */
void at_cover_table(const struct at_cover_report *r, int gate, FILE *out);
at_status at_cover_json(const struct at_cover_report *r, const char *path);
/* The cases that are enough, as a selection; `of`: what was run, whose lines `only` hold for them. */
at_status at_cover_selection(const struct at_cover_report *r, const struct at_selection *of, const char *path);
at_status at_cover_html(const struct at_cover_report *r, const char *path);

#endif
