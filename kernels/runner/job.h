/* One job on a device: where its tensors lie, who declines it, what came of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RUNNER_JOB_H
#define AT_RUNNER_JOB_H

#include "kernels/runner/block.h"
#include "kernels/runner/serve.h"

/* The job's problem, its tensors at `base` and their offsets. */
void at_job_place(const struct at_job *job, uint8_t *base, struct at_problem *problem);
/* The kernel that takes the problem: the variant's own, or the one that it chooses, which *way then names ("" before). NULL where the
 * family, the variant or the device does not take it, and then *refusal says why. */
const struct at_kernel *at_job_kernel(struct at_device *device, const struct at_kernel_entry *entry,
                                      const struct at_problem *problem, const char **way, const char **refusal);
/* The reply of a call of the device that returned `code` while `doing` something. */
void at_device_failed(const struct at_device *device, const char *doing, int code, struct at_reply *reply);
/* Runs the variant on the block as it stands; every way out fills the reply. */
void at_job_run(const struct at_serve *serve, struct at_block *block, const struct at_job *job, struct at_reply *reply);

#endif
