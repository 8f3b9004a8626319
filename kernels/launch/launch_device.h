/* Launch files as variants of a runner: a device around the runner's own that launches their device code itself.
 * SPDX-License-Identifier: Apache-2.0
 *
 * No host code of a candidate runs. Its module is loaded for each job and unloaded behind it, so that nothing is kept in device
 * variables; a judged launch has memory of its own between guard bands (guarded_arena.h); times are those of the device below, in
 * whose graphs the launches are captured as a built-in variant's are. */
#ifndef AT_LAUNCH_DEVICE_H
#define AT_LAUNCH_DEVICE_H

#include "kernels/runner/serve.h"

enum { AT_LAUNCH_FILES = 16 };

/* Reads a launch file; its variant stands behind those read before. AT_USAGE: the file says something wrong, there are more
 * than AT_LAUNCH_FILES, or two have one name. They stay for the life of the process. */
at_status at_launch_files_add(const char *path);
/* The variants of the files read so far. */
struct at_kernel_list at_launch_files_list(void);

/* A device that runs them by `below`, which must outlive it, and the driver of that name, whose context this thread must have.
 * NULL: it cannot be had; at_error_message() says why. There is one a process. */
struct at_device *at_launch_device_open(struct at_device *below, const char *driver);
void at_launch_device_close(void);

#endif
