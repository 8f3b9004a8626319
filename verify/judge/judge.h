/* Judging: the jobs of a case, and every check that needs no second device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_JUDGE_H
#define AT_JUDGE_H

#include "verify/judge/keep.h"
#include "verify/plan/plan.h"
#include "verify/result/result.h"

struct at_judge_options {
    uint64_t seed;      /* of marks, guard bytes and batch orders; data seeds are part of the case */
    double timeout;     /* as for at_time_limit; 0: 20 x the expected time and at least 10 s */
    int threads;        /* of a job */
    int shared_threads; /* for what the jobs of a case share, however few of them are at work yet */
    int64_t again; /* later launches are made of one job in so many, drawn by variant and case; 0, 1: of every job */
    double limit_factor; /* 1; a test makes limits wider by hand and must see VACUOUS */
    const char *runner_spec;
    int sandbox; /* the runner is kept in one: for `repro` */
    int64_t
        model_rows;    /* 0: a declared order is modelled on all rows; else on so many drawn ones where all take long */
    const char *repro; /* how a result is had again; NULL: `attest replay` with its case */
    const char *dump;  /* replay: write every intermediate of the (single) job to this HDF5 file; NULL otherwise */
    int counters;      /* 1: count accesses of the judged launch, where the runner can */
    int launch_only; /* 1: launched once, and on parts of the batch without any row, unchecked; nothing is judged: who ran is SKIPPED */
    enum at_keep keep;
    const char *witness; /* folder for what is kept, which exists */
    /* Called after each job with its results, by the thread that judged it; owns nothing. */
    at_status (*emit)(void *context, const struct at_result *results, int n);
    /* NULL, or called before that, with what the judged launch left and the exact values (owns neither): tensors by their
     * index in the operator's table. */
    at_status (*look)(void *context, const struct at_tensor *outputs, double *const *exact);
    void *context;
};

/* What the jobs of one case share. It stays cheap until the first of them; both arguments are borrowed. */
struct at_case_context;
at_status at_case_context_create(const struct at_plan_case *item, const struct at_judge_options *options,
                                 struct at_case_context **context);
/* The same for a problem whose inputs are there already (borrowed): the case names it, and is never built. Sums over outputs
 * are not tested, since data of other seeds, which an alarm would take, are not to be had. */
at_status at_case_context_create_given(const struct at_plan_case *item, const struct at_problem *problem,
                                       const struct at_judge_options *options, struct at_case_context **context);
void at_case_context_destroy(struct at_case_context *context); /* after its jobs; NULL is allowed */

/* Judges item->variants[i] and emits its results. Several threads may judge jobs of one case, each with runners of its
 * own. `predictor` runs the same sources on the SIMT machine; NULL: nothing is predicted. A runner that dies costs one
 * job. */
at_status at_judge_job(struct at_case_context *context, struct at_runner *runner, struct at_runner *predictor, int i);

/* Does not judge item->variants[i]: emits one result, SKIPPED for this reason. */
at_status at_judge_skip(struct at_case_context *context, struct at_runner *runner, int i, const char *why);

#endif
