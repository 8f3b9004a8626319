/* The shards of a plan: cases with their variants, dealt by what they are estimated to cost.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SHARDS_H
#define AT_SHARDS_H

#include "verify/plan/plan.h"

/* Leaves in `plan` the share of the selection's shard, in the plan's order and with its plan indices. A case that would be
 * too much for one shard is cut between its variants; every job is in one shard. It depends on the plan and the runner's
 * list of variants alone (and `again`), so that shards agree without knowing of each other. AT_NO_MEMORY. */
at_status at_plan_take_shard(struct at_plan *plan, const struct at_runner *runner,
                             const struct at_selection *selection);

#endif
