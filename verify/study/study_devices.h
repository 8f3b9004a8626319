/* The runners of a study: two for each device, so that it computes while the processors look at what it has given before; one
 * where there is one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_DEVICES_H
#define AT_STUDY_DEVICES_H

#include <stdint.h>

#include "verify/cli/options.h"
#include "verify/runner/device_seat.h"

enum { AT_RUNNERS_A_DEVICE = 2 };

struct at_study_devices {
    struct at_device_list list;
    struct at_device_pool *pool;
    char device[256]; /* what the first one calls itself, and so all */
    int n;            /* seats, each a worker's own */
    struct at_device_seat seats[AT_RUNNERS_A_DEVICE * AT_MAX_DEVICES];
};

/* Reads --runner, which must be there, and --devices, and starts the first runner; the others start when they have work. The
 * list of devices and the arguments stay where they are until it is closed. AT_USAGE, AT_ENVIRONMENT. */
at_status at_study_devices_open(const struct at_args *args, struct at_study_devices *devices);
void at_study_devices_close(struct at_study_devices *devices); /* all zero is allowed */
/* Which variants there are: a runner that lives until the next run, after which its device may have been given up. */
struct at_runner *at_study_devices_first(const struct at_study_devices *devices);

/* Calls step(context, i, runner) for every i of [0, n), at the same time on as many runners as there are and in any order;
 * what they share is theirs to lock. Where a device fails, the step is tried once more on another one, so a step changes
 * nothing before its launch has come back. The first failure, of the lowest i. */
at_status at_study_devices_run(struct at_study_devices *devices, int64_t n,
                               at_status (*step)(void *context, int64_t i, struct at_runner *runner), void *context);

#endif
