/* The command line that all runners share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_MAIN_SHARED_H
#define AT_MAIN_SHARED_H

#include "kernels/runner/serve.h"

/* Where a runner's variants run. */
struct at_runner_place {
    const char *words; /* "this machine's processor" */
    void *context;     /* of the two below */
    /* Takes the device and writes its name into `text`; NULL when it cannot be had, `text` then says why and what to
     * do. */
    struct at_device *(*open)(void *context, char *text, size_t size);
    void (*close)(void *context);
    void (*after_job)(const struct at_kernel_entry *entry); /* as in struct at_serve */
    struct at_kernel_list kernels;                          /* n 0: those it was built with */
    const char *more_help;                                  /* lines of arguments that its main takes; NULL: none */
};

/* Handles --help, --list, --version and bad arguments; otherwise serves the protocol on standard input and output. The
 * result is the process's exit code. */
int at_runner_main(int argc, char **argv, const struct at_runner_place *place);

#endif
