/* Sequences: jobs that are held, then run one after the other on one block, on a GPU as one graph.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RUNNER_SEQUENCE_H
#define AT_RUNNER_SEQUENCE_H

#include "kernels/runner/block.h"
#include "kernels/runner/serve.h"

struct at_sequence {
    struct at_job *jobs; /* owned */
    int n;
};

/* Keeps the job; its tensors are looked at when the sequence runs. */
void at_sequence_hold(struct at_sequence *sequence, const struct at_job *job, struct at_reply *reply);
/* Runs the jobs held and `last` behind them. The reply's seconds are those of one replay of all, its launches the kernels in it;
 * where last->mode.steps says, the block gets a struct at_step_cost for each job. */
void at_sequence_run(struct at_sequence *sequence, const struct at_serve *serve, struct at_block *block,
                     const struct at_job *last, struct at_reply *reply);
void at_sequence_release(struct at_sequence *sequence);

#endif
