/* What a case costs, estimated from its sizes alone: for time limits, and to cut a run into shards that take as long as
 * each other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COST_H
#define AT_COST_H

#include "verify/plan/plan.h"

/* Multiply-adds of all rows of a problem, which may be an outline; where requests have few queries, of as many as a tile
 * has, since a kernel's block takes as long. */
double at_problem_work(const struct at_problem *problem);

/* Whether a job is one of those that are launched again, one in `again`: the same in every run, whatever else is selected. */
int at_is_launched_again(const struct at_case *c, const struct at_variant *v, int64_t again);

/* In seconds of one processor, roughly: `shared` once for the case however many of its variants are judged, variant[i] for
 * item->variants[i] alone. The same on every machine. */
struct at_plan_cost {
    double shared;
    double *variant; /* [item->n_variants], owned */
};
/* again: as in struct at_judge_options. A case whose outline cannot be made (more memory than there is) counts by its bytes.
 * AT_NO_MEMORY. */
at_status at_plan_cost_make(const struct at_plan_case *item, const struct at_runner *runner, int64_t again,
                            struct at_plan_cost *cost);
void at_plan_cost_release(struct at_plan_cost *cost);

#endif
