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
/* What hygiene found in a later launch, where those before were clean; `where` goes behind the finding. */
void at_job_keep_dirt(struct at_job *job, const struct at_outputs *later, const char *where);
/* The same again, and where bits change and rows have no owner, until it is clear whether they follow the poison. */
at_status at_job_rerun(struct at_job *job);
/* The same launch by job->predictor, when it has a variant made from the same source: its bits must be equal. */
at_status at_job_predict(struct at_job *job);
/* The launch captured in a graph while the longest request had one key, then replayed: no bit may depend on it. Of
 * decode families, which engines capture; not of variants whose launch cannot be captured, or whose bits do not repeat.
 */
at_status at_job_graph(struct at_job *job);
/* Three units alone, and the whole batch backwards: a kernel whose bits depend on its neighbours shows here. */
at_status at_job_other_batches(struct at_job *job);

#endif
