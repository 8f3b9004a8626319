/* Launches on other data in the memory of the judged launch: a result that was kept from before shows there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_OTHER_DATA_H
#define AT_OTHER_DATA_H

#include "verify/judge/job.h"

/* Two launches with every tensor at the address and of the shape that it had in the judged one, one right after the other,
 * since some keep but their last result: the case on data of another seed (where it has none, on its own once more); then
 * that but for one late element of an input, drawn by the run's seed, whose change must show in some output by the exact
 * values. Fills job->other_data[o] (a cause; "" where nothing was found) of each
 * output with finite values beyond their limits, and adds what hygiene finds to job->outputs. Where an output may be one of
 * several (at_op.admits), where bits are moved (at_op.bits; exact values say nothing of those) or no element is found that matters, nothing is asked. Statuses as the launches of relaunch.h. */
at_status at_job_other_data(struct at_job *job);

#endif
