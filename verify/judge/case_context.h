/* What the jobs of one case share: its inputs from the first job on, its answer from the first kernel that ran on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CASE_CONTEXT_H
#define AT_CASE_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "verify/judge/answer.h"
#include "verify/judge/judge.h"

/* Jobs on several threads read it at the same time. */
struct at_case_context {
    const struct at_plan_case *item;
    const struct at_judge_options *options;
    struct at_case_data data; /* after at_case_context_data() */
    struct at_answer answer;  /* after at_case_context_answer() */
    /* Held while either is made, so that each is made once; and while a job uses the answer's decoys, which are those
     * of one split at a time. */
    pthread_mutex_t making, decoys;
    int has_data, has_answer;
    int is_given;    /* the data came with it */
    atomic_int jobs; /* now at work on the case */
};

/* The case's inputs, made by the first job that comes; the others wait. */
at_status at_case_context_data(struct at_case_context *context);
/* Exact values of every output. A job asks for them when its own kernel has run, and not before: nothing of the answer
 * exists in memory while the first one runs. Who waits for it lends its processor: a thread for each job at work. */
at_status at_case_context_answer(struct at_case_context *context);

#endif
