/* The plan of a run: which cases meet which variants, in which order, and which of them a shard takes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_PLAN_H
#define AT_PLAN_H

#include "datasets/language/case.h"
#include "verify/runner/runner.h"

/* One case with the variants of its family that were selected. Jobs of one case share their references. */
struct at_plan_case {
    const struct at_case *c;
    int *variants; /* indices of the runner's list; owned */
    int n_variants;
    int64_t
        first_index; /* plan index of (this case, variants[0]) in the whole plan, same in every shard. A shard may have a
                            case more than once, with other variants each time */
};

struct at_plan {
    struct at_case_list cases; /* every case loaded, selected or not */
    int borrows;               /* `cases` belongs to who gave the selection */
    struct at_plan_case *items;
    int64_t n_items, n_jobs;
    uint64_t cases_hash; /* of the ids of all selected cases, in order, before sharding */
};

struct at_selection {
    const char *const *globs; /* family/variant; none: all */
    int n_globs;
    const char *cases_glob; /* role:id, or @NAME: case_globs.h */
    const char *line_of;   /* @NAME whose lines `only` hold, as cases_glob is a line of it; NULL: cases_glob's own do */
    const char *cases_dir; /* folder of the case files below datasets; NULL: cases */
    const struct at_case_list
        *loaded; /* what at_case_load_dir makes of that folder, for runs one after another; NULL: loaded here */
    const char *case_line; /* one case given as text instead of the case files; NULL otherwise */
    int64_t random;        /* cases drawn from the domains instead of the case files; 0: none */
    uint64_t random_seed;
    int shard, shards; /* 0-based; shards 1: everything */
    int64_t again;     /* as in struct at_judge_options: such jobs cost more */
};

/* Builds the plan. A GLOB that matches no variant, or a glob that matches no case (a selection has several), is
 * AT_NOT_FOUND and names the nearest. */
at_status at_plan_make(const struct at_selection *selection, struct at_runner *runner, struct at_plan *plan);
void at_plan_release(struct at_plan *plan);
/* Is the variant one of those that the selection's globs name? hits[i] = 1 for each that does; NULL: not asked. */
int at_selects_variant(const struct at_selection *selection, const struct at_variant *v, char *hits);
struct at_case_globs;
/* The globs of its cases; at_case_globs_close() them. Of a selection without case_line and without random. */
at_status at_selection_globs(const struct at_selection *selection, struct at_case_globs *globs);
/* Puts the cases with the fewest bytes first and those of data sets last, without a change to any plan index. */
void at_plan_small_first(struct at_plan *plan);

/* "i/N" (1-based) -> 0-based shard; without text: TEST_SHARD_INDEX and TEST_TOTAL_SHARDS, or a Slurm array's
 * SLURM_ARRAY_TASK_ID/_MIN/_MAX/_STEP/_COUNT, else the whole plan. AT_USAGE for what cannot be read. */
at_status at_shard_parse(const char *text, int *shard, int *shards);

#endif
