/* The counters of the coverage runner, read through gcov.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_GCOV_H
#define AT_GCOV_H

#include "verify/coverage/cover.h"

/* What `make coverage-runner` wrote beside the program: attest-cpu-coverage.txt. */
struct at_gcov {
    char tree[2048];   /* folder of the sources that the runner was built from */
    char notes[2048];  /* folder of what the compiler noted of each kernel */
    char gcov[1024];   /* the program */
    char folder[2048]; /* where the counters of this run are; "" while there is none */
};

/* AT_ENVIRONMENT: not built, its sources are gone or newer than it, no gcov, a gcov of another compiler. */
at_status at_gcov_open(struct at_gcov *gcov);
/* Makes a folder for counters and tells the runners that are started from now on. */
at_status at_gcov_begin(struct at_gcov *gcov);
/* Adds to `cover` what a variant's file and the device headers that it includes have run, in all runner processes that have
 * ended since it was read last: the counters are removed. Without any, and with an empty `cover`, everything counts as not
 * run. */
at_status at_gcov_read(const struct at_gcov *gcov, const char *family, const char *variant, struct at_cover *cover);
/* Removes the folder. */
void at_gcov_close(struct at_gcov *gcov);

#endif
