/* A tiny AsyncT problem with a known answer, laid out in a runner's memory, and a runner of test kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_RUNNER_RIG_H
#define AT_TEST_RUNNER_RIG_H

#include "kernels/runner/serve.h"
#include "verify/runner/runner.h"

/* One query, three keys, head size 2: with scale 1/4 and sigma 3/8 every step is exact in f32, and
 * o = { 3.28125, 32.8125 }. */
#define AT_RIG_O0 3.28125
#define AT_RIG_O1 32.8125

struct at_rig {
    struct at_problem problem; /* its tensors point into the runner's block */
    int64_t used;
    float *o;
};

/* Fills the first bytes of the runner's block, at `offset` (a multiple of 256). */
at_status at_rig_place(struct at_runner *runner, int64_t offset, struct at_rig *rig);
/* Index of a variant, -1 if the runner has none of that name. */
int at_rig_find(const struct at_runner *runner, const char *family, const char *name);

enum { AT_RIG_STARVED_US = 700000 };

/* The kernels of the test runner; each does one thing a kernel may do wrong, or looks at its surroundings
 * and writes what it saw to o[0]. */
enum at_rig_kernel {
    AT_RIG_GOOD,           /* the known answer */
    AT_RIG_PRINTS,         /* printf, then the known answer */
    AT_RIG_REFUSES,        /* supports() declines */
    AT_RIG_RETURNS_7,      /* launch fails with 7 */
    AT_RIG_OVERRUNS,       /* writes a byte past its workspace */
    AT_RIG_WANTS_TOO_MUCH, /* workspace beyond any memory */
    AT_RIG_SEES_WORKSPACE, /* o[0] = 1 when all of its workspace reads as NaN */
    AT_RIG_CUTS_MEMORY,    /* o[0] = 1 when shrinking the shared memory was refused */
    AT_RIG_SEES_ALARM,     /* o[0] = seconds until the runner's own alarm */
    AT_RIG_ABORTS,         /* abort() */
    AT_RIG_SPINS,          /* for ever */
    AT_RIG_SLEEPS,         /* for ever */
    AT_RIG_STARVES,        /* is stopped for AT_RIG_STARVED_US, then the known answer */
    AT_RIG_KERNELS
};
/* Serves these kernels on standard input and output; returns an exit code. */
int at_rig_serve(void);
/* The same with other kernels. */
int at_rig_serve_list(const struct at_kernel_list *list);
/* Opens the running program as a runner: its main() serves when its first argument is --serve. */
at_status at_rig_open_self(struct at_runner **runner);

#endif
