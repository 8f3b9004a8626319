/* Judging: one case, its variants, and every check that needs no second device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_JUDGE_H
#define AT_JUDGE_H

#include "verify/plan/plan.h"
#include "verify/result/result.h"

/* Whose tensors are kept (verify/archive/witness.h): nobody's, those of results that fail the run or are VACUOUS, or
 * every judged job's. */
enum at_keep { AT_KEEP_NEVER, AT_KEEP_WRONG, AT_KEEP_ALL, AT_KEEP_COUNT };
const char *at_keep_name(enum at_keep keep);
at_status at_keep_parse(const char *name, enum at_keep *keep);

struct at_judge_options {
    uint64_t seed;       /* of marks, guard bytes and batch orders; data seeds are part of the case */
    double timeout;      /* seconds; 0: 20 x the expected time and at least 10 s */
    int threads;         /* for references */
    double limit_factor; /* 1; a test makes limits wider by hand and must see VACUOUS */
    const char *runner_spec;
    struct at_runner *predictor; /* runs the same sources on the SIMT machine; NULL: nothing is predicted */
    const char *dump; /* replay: write every intermediate of the (single) job to this HDF5 file; NULL otherwise */
    int counters;     /* 1: count accesses of the judged launch, where the runner can */
    enum at_keep keep;
    const char *witness; /* folder for what is kept, which exists */
    /* Called after each job with its results, in plan order within the case; owns nothing. */
    at_status (*emit)(void *context, const struct at_result *results, int n);
    /* 1: this job is not to be judged: it is in the journal already, or the run is being stopped. May be NULL. */
    int (*is_off)(void *context, int64_t plan_index);
    void *context;
};

/* Runs every variant of item->variants on the case and emits their results. A runner that dies costs one job. */
at_status at_judge_case(struct at_runner *runner, const struct at_plan_case *item,
                        const struct at_judge_options *options);

#endif
