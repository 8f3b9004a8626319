/* Which variants take a problem, without launching any.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ASK_H
#define AT_ASK_H

#include "verify/runner/runner.h"

/* *takes = 1 when variant i takes the problem, 0 when it declines. Inputs are copied into the runner's memory. Statuses as
 * at_runner_run. */
at_status at_runner_ask(struct at_runner *runner, int variant, const struct at_problem *problem, int *takes);

#endif
