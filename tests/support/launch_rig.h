/* Launch files on memory of the host and a driver of the tests: as a device, and as a runner.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_LAUNCH_RIG_H
#define AT_TEST_LAUNCH_RIG_H

#include "kernels/launch/launch_device.h"

/* The device of the launch files read so far; its clock launches as often as it is told and says 1 ms. NULL: at_error_message(). */
struct at_device *at_launch_rig_open(const char *driver);
void at_launch_rig_close(void);

/* Serves the protocol with the files of `--load FILE`, once or more; the process's exit code. */
int at_launch_rig_serve(const char *driver, int argc, char **argv);

#endif
