/* Arguments by their codes, in order, through an operator of one argument x and one result y.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_LAUNCH_H
#define AT_STUDY_LAUNCH_H

#include "verify/runner/runner.h"

/* Codes (first + i) * step, i < n. */
struct at_special_codes {
    int64_t first, step, n;
};

/* Runs a variant on them: x in the runner's memory, y filled with NaNs of all ones before, so that what is not written is seen.
 * `problem` has its operator, format and parameters, and gets its sizes and tensors; they are there until the next launch. */
at_status at_special_launch(struct at_runner *runner, int variant, const struct at_special_codes *codes, int threads,
                            struct at_problem *problem, struct at_run_reply *reply);

/* 1: it ran. 0, and *why says why: it declines, or, *broken raised by one, it breaks on its way. */
int at_special_ran(const struct at_run_reply *reply, char *why, size_t size, int *broken);

#endif
