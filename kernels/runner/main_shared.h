/* The command line that all runners share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_MAIN_SHARED_H
#define AT_MAIN_SHARED_H

/* Handles --help, --list, --version and bad arguments; otherwise returns serve(name). `where` says where variants run.
 * The result is the process's exit code. */
int at_runner_main(int argc, char **argv, const char *where, int (*serve)(const char *name));

#endif
