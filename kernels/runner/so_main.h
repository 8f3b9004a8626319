/* The command line that runners of shared libraries share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SO_MAIN_H
#define AT_SO_MAIN_H

#include "kernels/runner/main_shared.h"

/* attest-so LIBRARY.so: loads it and serves its variants on the place's device, whose tensors lie where device_type says (1: host,
 * 2: CUDA); --list, --help, --version. The result is the process's exit code. */
int at_so_main(int argc, char **argv, const struct at_runner_place *place, int device_type);

#endif
