/* One job in the making: a variant on a case, and what the jobs of that case share. Private to judging.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_JOB_H
#define AT_JOB_H

#include "verify/judge/judge.h"
#include "verify/runner/launch.h"
#include "verify/judge/verdict.h"

/* What the jobs of one case share. */
struct at_bench {
    struct at_runner *runner;
    const struct at_plan_case *item;
    const struct at_judge_options *options;
    struct at_case_data data;
    struct at_answer answer;
    int has_answer;
};

struct at_job {
    struct at_bench *bench;
    int variant;
    int64_t plan_index;
    const struct at_variant *v;
    struct at_outputs outputs;
    struct at_judgement judgement;
    struct at_decoy_report decoys[AT_MAX_TENSORS];
    int64_t poison_read[AT_MAX_TENSORS]; /* by output: elements that follow what stands in rows nobody owns */
    struct at_result *results;           /* one per output tensor; [0] alone for a job without outputs to judge */
    int n_results;
    int capturable;          /* of the judged launch, as its reply has it */
    int64_t path;            /* of the judged launch, as its reply has it */
    enum at_state late_fate; /* of a later launch that the runner ended; with status AT_PROTOCOL */
};

/* The state of a job whose launch did not run to its end, by what the runner said of it. */
enum at_state at_job_fate(enum at_run_outcome outcome);
/* Seconds that one launch may take. */
double at_job_time_limit(const struct at_job *job);
/* Seed of the marks, guards and poison of a job's launch number `launch`; 0 is the one that is judged. */
uint64_t at_job_seed(const struct at_job *job, uint64_t launch);

/* The launches after the one that is judged. Each fills the counts of job->results, and adds what hygiene finds to
 * job->outputs. Statuses as at_guarded_launch; AT_PROTOCOL when the variant now fails on what it ran before. */
at_status at_job_rerun(struct at_job *job);
/* The same launch by options->predictor, when it has a variant made from the same source: its bits must be equal. */
at_status at_job_predict(struct at_job *job);
/* The launch captured in a graph while the longest request had one key, then replayed: no bit may depend on it. Of
 * decode families, which engines capture; not of variants whose launch cannot be captured, or whose bits do not repeat.
 */
at_status at_job_graph(struct at_job *job);
/* Three units alone, and the whole batch backwards: a kernel whose bits depend on its neighbours shows here. */
at_status at_job_other_batches(struct at_job *job);
/* Writes the job's tensors and references to its file where options->keep asks for it, and marks its results. */
at_status at_job_keep(struct at_job *job);

#endif
