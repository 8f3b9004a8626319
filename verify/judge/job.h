/* One job in the making: a variant on a case. Private to judging.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_JOB_H
#define AT_JOB_H

#include "verify/judge/aggregate.h"
#include "verify/judge/case_context.h"
#include "verify/judge/verdict.h"
#include "verify/runner/launch.h"

struct at_job {
    struct at_case_context *context;
    struct at_runner *runner, *predictor; /* of the thread that judges it; the second may be NULL */
    int variant;
    int64_t plan_index;
    const struct at_variant *v;
    struct at_numerics declared; /* what the variant declares on the case's problem */
    struct at_numerics numerics; /* that, on the case's activations */
    struct at_outputs outputs;
    struct at_judgement judgement;
    struct at_decoy_report decoys[AT_MAX_TENSORS];
    struct at_aggregate aggregates[AT_MAX_TENSORS]; /* of outputs that limits decide */
    int64_t poison_read[AT_MAX_TENSORS];  /* by output: elements that follow what stands in rows nobody owns */
    char other_data[AT_MAX_TENSORS][320]; /* by output: what was wrong on other data in the same memory, "" */
    struct at_result *results;            /* one per output tensor; [0] alone for a job without outputs to judge */
    int n_results;
    int capturable;          /* of the judged launch, as its reply has it */
    int64_t path;            /* of the judged launch, as its reply has it */
    enum at_state late_fate; /* of a later launch that the runner ended; with status AT_PROTOCOL */
};

/* The state of a job whose launch did not run to its end, by what the runner said of it. */
enum at_state at_job_fate(enum at_run_outcome outcome);
/* Seconds of processor time that a launch may take where none are given: 20 x what the SIMT machine may need under a sanitizer,
 * and at least 10. */
double at_launch_seconds(const struct at_problem *problem);

/* Time that one launch may take, as for at_time_limit. */
double at_job_time_limit(const struct at_job *job);
/* Seed of the marks, guards and poison of a job's launch number `launch`; 0 is the one that is judged. */
uint64_t at_job_seed(const struct at_job *job, uint64_t launch);

#endif
