/* How long a runner may take to answer: by its processor time, and by the clock for one that sleeps.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Other work on the machine makes a runner late, and it is late by the clock alone. So the clock decides only for a
 * runner that uses no processor here: one that waits for a device, sleeps, or runs on another host (`ssh HOST ...`). */
#ifndef AT_TIME_LIMIT_H
#define AT_TIME_LIMIT_H

#include <sys/types.h>

#include "attest/status.h"

/* In seconds. `processor`: of all processes of the runner's group together, waited-for children included; it ends a
 * runner no sooner than as many seconds have passed by the clock, so that several threads have no less time than one.
 */
struct at_time_limit {
    double processor, wall;
};
/* That much processor time, and ten times as long by the clock. */
struct at_time_limit at_time_limit(double seconds);

/* A limit while it runs. */
struct at_countdown {
    struct at_time_limit limit;
    double start, look_at; /* at_seconds() of the beginning, and of the next look */
    double before;         /* processor time of the group at the first look; < 0: not known yet */
};
void at_countdown_start(struct at_countdown *countdown, struct at_time_limit limit);
/* AT_OK, and *wait seconds (> 0) until it wants to be asked again; AT_HUNG with the clock that ran out and its limit,
 * in a message that names `name`. Cheap until a tenth of the limit has passed: processor time is counted from then on,
 * because that of a group takes a walk over all of /proc. Where /proc does not show it, the clock decides. */
at_status at_countdown_look(struct at_countdown *countdown, pid_t group, const char *name, double *wait);

/* Processor time of a process group until now, in seconds; 0 for a group of which nothing is seen. */
double at_group_processor_seconds(pid_t group);

#endif
