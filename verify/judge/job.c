/* What every launch of a job goes by: its fate, its time, its seed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/job.h"

#include <math.h>

#include "attest/buffer.h"
#include "verify/plan/cost.h"

/* A plain loop does some 10^8 multiply-adds a second under the slowest sanitizer; a bit-exact tensor-core model 10^7. */
double at_launch_seconds(const struct at_problem *problem) { return fmax(10.0, 20.0 * at_problem_work(problem) / 5e7); }

double at_job_time_limit(const struct at_job *j) {
    const double given = j->context->options->timeout;
    return given > 0 ? given : at_launch_seconds(&j->context->data.problem);
}

enum at_state at_job_fate(enum at_run_outcome outcome) {
    switch (outcome) {
    case AT_RUN_UNSUPPORTED:
        return AT_STATE_UNSUPPORTED;
    case AT_RUN_RACY:
        return AT_STATE_RACY;
    case AT_RUN_DIRTY:
        return AT_STATE_DIRTY;
    case AT_RUN_DEADLOCKED:
        return AT_STATE_HUNG;
    default:
        return AT_STATE_ERROR;
    }
}

uint64_t at_job_seed(const struct at_job *j, uint64_t launch) {
    uint64_t parts[3] = { j->context->options->seed, j->context->item->c->hash, launch };
    return at_hash_bytes(parts, sizeof parts, AT_HASH_START);
}
