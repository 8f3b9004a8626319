/* Covering arrays: cases of an operator's domain that hold every pair (or triple) of classes, for each variant that takes it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DESIGN_H
#define AT_DESIGN_H

#include <stdio.h>

#include "datasets/design/domain_draw.h"
#include "verify/cli/progress.h"
#include "verify/design/design_asked.h"
#include "verify/runner/runner.h"

enum { AT_DESIGN_STRENGTH = 3, AT_DESIGN_VARIANTS = 64 };

/* One case of an array. */
struct at_design_row {
    int classes[AT_DOMAIN_FACTORS];
    uint64_t takes; /* bit v: variants[v] takes it */
    double work;    /* multiply-adds */
    char line[AT_DOMAIN_LINE];
};

/* The classes of `strength` factors; tuple (c0, c1, ...) has number first + ((c0 * n1) + c1) * n2 + ... */
struct at_design_combination {
    int factors[AT_DESIGN_STRENGTH];
    int64_t first, n;
};

struct at_design {
    struct at_domain domain;
    struct at_runner *runner;
    struct at_asked asked;
    int variants[AT_DESIGN_VARIANTS], n_variants; /* of the runner, of the family */
    int strength;
    struct at_design_combination *combinations;
    int64_t n_combinations, n_tuples;
    uint64_t *covered, *impossible;                          /* [n_tuples] bit v */
    uint64_t takes[AT_DOMAIN_FACTORS][AT_DOMAIN_CLASSES];    /* bit v: has taken some case with this class */
    uint64_t far_done[AT_DOMAIN_FACTORS][AT_DOMAIN_CLASSES]; /* bit v: has a case with this far class */
    /* speaks[f][c][g] bit d: the case language takes class c of factor f and class d of factor g in one line. */
    uint32_t speaks[AT_DOMAIN_FACTORS][AT_DOMAIN_CLASSES][AT_DOMAIN_FACTORS];
    struct at_design_row base[AT_DESIGN_VARIANTS]; /* some case that v takes */
    uint64_t has_base;
    struct at_design_row *rows;
    int64_t n_rows;
    int64_t n_loaded; /* cases that were there before the search */
    int thorough; /* asks for more classes even where the first round adds nothing: of what is written, not counted */
    struct at_draws draws;
    struct at_progress progress;
};

/* The domain of a family for the variants of a runner; strength 3 takes the factors that are marked for it alone. */
at_status at_design_open(struct at_runner *runner, const struct at_family *family, int strength, uint64_t seed,
                         struct at_design *design);
void at_design_release(struct at_design *design);

/* Draws row->line from row->classes; *speaks: the case language takes it. */
at_status at_design_draw(struct at_design *design, struct at_design_row *row, int *speaks);
/* Asks the case language and the variants of `who`. What cannot be had is no error: row->takes is 0 then. */
at_status at_design_ask(struct at_design *design, uint64_t who, struct at_design_row *row);
/* The same of a line whose classes are not known: nothing is learnt from it. */
at_status at_design_ask_line(struct at_design *design, struct at_design_row *row);

/* design_cover.c: what rows cover. */
at_status at_cover_open(struct at_design *design);
int64_t at_cover_tuple(const struct at_design *design, const struct at_design_combination *combination,
                       const int *classes);
/* (variant, tuple)s that a row would be the first to have; *add: they count as had from now on. */
int64_t at_cover_row(struct at_design *design, const struct at_design_row *row, int add);
/* All, had, impossible. */
void at_cover_counts(const struct at_design *design, int64_t *all, int64_t *had, int64_t *impossible);

/* design_learn.c, with progress: finds out which classes each variant takes at all. */
at_status at_design_learn(struct at_design *design);
at_status at_design_learn_again(struct at_design *design); /* harder, what the first time has not shown */
/* design_search.c, with progress: adds rows until every (variant, tuple) is covered or taken for impossible. */
at_status at_design_search(struct at_design *design);
/* What a row costs to be judged on, in multiply-adds: launches and decoys take their time without any. */
double at_design_cost(const struct at_design_row *row);
/* design_thin.c: leaves out rows, the dearest first, of which others have every (variant, tuple) and far class. */
at_status at_design_thin(struct at_design *design);
/* design_file.c: counts the cases of the family in a case file as had, and writes each to `kept` as it stands (NULL: nowhere);
 * comments, other families and lines that are no instance of the domain count nothing and are not written. */
at_status at_design_load(struct at_design *design, const char *path, FILE *kept);
/* The rows of the search; seeds go on behind the loaded cases. */
void at_design_print(const struct at_design *design, FILE *out);
/* What a case file says of the family in a comment of at_design_print_impossible: cases, and (variant, tuple)s that are had.
 * AT_NOT_FOUND: nothing. */
at_status at_design_stated(const struct at_design *design, const char *path, int64_t *cases, int64_t *had);
/* What nobody takes and what the case language refuses, as comments. */
void at_design_print_impossible(const struct at_design *design, FILE *out);

#endif
