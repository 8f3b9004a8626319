/* Which lines and branches of a kernel have run: gcc's counters, written to files. Linked into attest-cpu-coverage alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RUNNER_COVERAGE_H
#define AT_RUNNER_COVERAGE_H

#include "attest/kernel.h"

/* Writes the counters of the variant, of all its jobs in this process, to the folder that the environment variable
 * AT_COVERAGE_DIR names, as FAMILY+VARIANT+PROCESS.gcda; without the variable nothing. After each job, because a runner may be
 * killed at any time: what a job reached is lost only when it is the one that is killed. NULL in every other runner. */
__attribute__((weak)) void at_coverage_write(const struct at_kernel_entry *entry);

#endif
