/* Sequences: a stack that runs more than once, prompts first and then decode steps, with caches that go on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STACK_TURNS_H
#define AT_STACK_TURNS_H

#include "verify/stack/stack_run.h"

/* A stack with a setting `turns` is one: turn 0, then `turns` more. Its setting `turn` counts them; `phase`, where it has that, is
 * prefill in turn 0 and decode after it. */
int at_stack_is_sequence(const struct at_stack *stack);
/* at_stack_run() once a turn, the plan made anew for each: lengths differ. Of any other stack once. `stack`: the plan's own. */
at_status at_stack_run_turns(struct at_stack_plan *plan, struct at_stack *stack, const struct at_stack_options *options,
                             struct at_stack_outcome *outcome);

#endif
