/* Several devices of one machine: which of them a run uses.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A runner sees one device, the one that CUDA_VISIBLE_DEVICES names in its environment. Which ones there are is known without
 * CUDA: by that variable of this process, which a scheduler sets, else by the driver's files /dev/nvidia0, 1, ... A runner
 * on another host gets its device by its command line: --runner 'ssh HOST CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES attest-cuda'. */
#ifndef AT_DEVICES_H
#define AT_DEVICES_H

#include "attest/status.h"

enum { AT_MAX_DEVICES = 64, AT_DEVICE_NAME = 64 };

struct at_device_list {
    int n;                                     /* 0: nothing was said of devices */
    int there;                                 /* devices that are seen, at least n */
    char name[AT_MAX_DEVICES][AT_DEVICE_NAME]; /* what the runner's CUDA_VISIBLE_DEVICES becomes */
};

/* text: "all", or numbers with commas, from 0, of the devices that this process sees; NULL: an empty list. Where it sees none,
 * numbers are taken as they are. AT_USAGE; AT_ENVIRONMENT for "all" of none. */
at_status at_devices_parse(const char *text, struct at_device_list *list);
/* Jobs at the same time where nobody said: each device brings its share of the processors, at least one; without a list all
 * processors. */
int at_devices_jobs(const struct at_device_list *list);

#endif
