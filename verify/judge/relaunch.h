/* The launches after the one that is judged.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each fills the counts of job->results, and adds what hygiene finds to job->outputs. Statuses as at_guarded_launch;
 * AT_PROTOCOL when the variant now fails on what it ran before. */
#ifndef AT_RELAUNCH_H
#define AT_RELAUNCH_H

#include "verify/judge/job.h"

/* AT_OK when a later launch, on `what`, ran; else AT_PROTOCOL, and job->late_fate: a launch that the runner ends later is
 * no smaller fault than the first one's. */
at_status at_job_check_ran(struct at_job *job, const struct at_run_reply *reply, const char *what);
/* The same launch by job->predictor, when it has a variant made from the same source: its bits must be equal. */
at_status at_job_predict(struct at_job *job);
/* The same again at other addresses, with other poison and in another order of warps (and where bits change and rows have no
 * owner, until it is clear whether they follow the poison); of decode families the launch captured in a graph while the
 * longest request had one key, then replayed; the batch backwards, and two units alone: no bit may depend on any of
 * it. The first three are one launch, where the variant says that bits repeat: where all its bits are those of the judged
 * launch, it has answered all three, and else each is launched for itself, which says what the bits depend on. */
at_status at_job_relaunch(struct at_job *job);
/* Two units alone, and the whole batch backwards. */
at_status at_job_launch_parts(struct at_job *job);

#endif
