/* attest selftest --cheats: runners that cheat, and honest ones, each judged on the cases of its own head.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SELFTEST_CHEATS_H
#define AT_SELFTEST_CHEATS_H

#include "attest/status.h"
#include "verify/result/result.h"
#include "verify/runner/sandbox.h"

struct at_cheats_options {
    const char *glob;   /* of their names; NULL: all */
    const char *python; /* what runs them; NULL: /usr/bin/python3 where it is, else python3 */
    int verbose;        /* what each got on each of its cases */
};

/* Judges every file of the folder `cheats` (of the source tree, or beside the program) and the examples of Python runners,
 * prints a line for each, and how many were caught. *bad = cheats that did not get their state, and honest runners that did
 * not pass. What this system does not have, a protection or a CUDA device, makes the runners that need it `untried`, with the reason.
 * AT_ENVIRONMENT where there is no such folder, or no Python with numpy; AT_NOT_FOUND when the glob is of no file. */
at_status at_selftest_cheats(const struct at_cheats_options *options, int *bad);

/* What the results of a cheat were; of one that is about times, the rows of a benchmark of `command` on the case line. */
struct at_cheat_fate {
    int64_t by_state[AT_STATE_COUNT], failed, n;
    int64_t untested; /* loose claims that no case tested, which fail a strict run though no result does */
    char cause[160];  /* of the first that failed */
};
/* verify/contents.c: benchmarks are none of this room's. */
at_status at_cheat_timed(const char *command, const char *line, const struct at_sandbox *box, int strict,
                         struct at_cheat_fate *fate);

#endif
