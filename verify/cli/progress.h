/* A progress bar on stderr when it is a terminal, a line now and then when it is not.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_PROGRESS_H
#define AT_PROGRESS_H

#include <stdint.h>

/* Shows nothing during the first two seconds. Calls must not overlap. */
struct at_progress {
    const char *what;
    int64_t total, done, failed;
    double started, shown;
    int visible;
};

void at_progress_start(struct at_progress *progress, const char *what, int64_t total);
void at_progress_step(struct at_progress *progress, int64_t done, int64_t failed, const char *current);
/* Clears the bar. */
void at_progress_end(struct at_progress *progress);

#endif
