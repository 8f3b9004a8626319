/* Which variants a run judges no further: those of which a result failed (first_failure), and those that have hung or crashed
 * often enough (set_aside).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_GIVEN_UP_H
#define AT_GIVEN_UP_H

#include "verify/plan/plan.h"
#include "verify/result/record.h"

/* How often a variant has hung or crashed. */
struct at_broken {
    int64_t n;
    char why[256]; /* once it is enough */
};

struct at_given_up {
    const struct at_plan *plan;
    char *failed;             /* [variants of the runner] 1: a result failed; NULL without first_failure */
    struct at_broken *broken; /* [variants of the runner]; NULL without set_aside */
    int64_t set_aside;
    int quiet;
};

/* For a runner of n_variants. set_aside 0: never. The plan is read as long as g is used. AT_NO_MEMORY. */
at_status at_given_up_open(struct at_given_up *g, const struct at_plan *plan, int n_variants, int first_failure,
                           int64_t set_aside, int quiet);
/* The first result of a job, which fails the run or not. Says on stderr when a variant is set aside, unless quiet. */
void at_given_up_note(struct at_given_up *g, const struct at_result *result, int fails);
int at_given_up_failed(const struct at_given_up *g, int variant);
/* Why the variant is set aside; "": it is not. Changes with the next note: workers that share g hold its lock meanwhile. */
const char *at_given_up_why(const struct at_given_up *g, int variant);
void at_given_up_close(struct at_given_up *g);

#endif
