/* Tests of whole outputs, and what fresh data say of an alarm.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REDRAW_H
#define AT_REDRAW_H

#include "verify/judge/job.h"

/* Fills job->aggregates of a job with limits. Where a modelled value decides, it has decided every bit (or all that the
 * exponential leaves open), and no sum is tested; nor where the case's data are not continuous. An alarm is confirmed when
 * two launches on data of fresh seeds give it again. Statuses as the launches of relaunch.h. */
at_status at_job_aggregates(struct at_job *job);

#endif
