/* Does a launch compute, or keep what it computed before? Asked of those that were timed.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Timed replays find module, workspace and outputs as the replay before left them: a kernel that computes once and then sees that it
 * has would be timed doing nothing. So outputs of a launch before the replays are kept here, and those of one behind them, in the
 * same places, with zeros in the outputs and the workspace as it was, must be the same bits. */
#ifndef AT_KEPT_RESULTS_H
#define AT_KEPT_RESULTS_H

#include "kernels/launch/guarded_arena.h"

struct at_kept {
    uint8_t *bytes; /* of all outputs, in the arena's order */
    int64_t n;
};

/* Copies the arena's outputs to the host. AT_NO_MEMORY, AT_ENVIRONMENT. */
at_status at_kept_take(struct at_kept *kept, const struct at_arena *arena, const struct at_problem *problem);
/* Before the second launch: inputs as they came, outputs 0; the workspace stays. */
at_status at_kept_clear(const struct at_arena *arena, const struct at_problem *problem);
/* AT_USAGE with the output and the byte where the second launch's differs. */
at_status at_kept_compare(const struct at_kept *kept, const struct at_arena *arena, const struct at_problem *problem);
void at_kept_release(struct at_kept *kept);

#endif
