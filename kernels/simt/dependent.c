/* Dependent launches: who has waited for the launches before.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/dependent.h"

#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"
#include "kernels/simt/memory.h"
#include "kernels/simt/simt_dependent.h"

static int next_is; /* the next launch is a dependent one */

void at_simt_next_is_dependent(void) { next_is = 1; }

void at_dependent_launch(void) {
    at_simt_machine.dependent = next_is;
    next_is = 0;
}

void at_simt_dependency_wait(struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    at_simt_thread()->waited_for_others = at_simt_thread()->in->waited_for_others = 1;
}

void at_dependent_too_early(const void *address, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    int64_t byte;
    const char *name = at_memory_tensor(address, &byte);
    if (name)
        at_simt_report_at(AT_FINDING_RACE, where,
                          "block %lld: thread %d touches %s, byte %lld, before it has waited for the kernels before "
                          "this one: at_dependency_wait()",
                          (long long)self->in->number, self->index, name, (long long)byte);
}

void at_dependent_left(const struct at_simt_block *block) {
    if (at_simt_machine.dependent && !block->waited_for_others)
        at_simt_report(AT_FINDING_RACE, at_simt_thread()->place,
                       "block %lld ends, and no thread of it has waited for the kernels before this one: the kernel "
                       "behind it may begin before they have ended",
                       (long long)block->number);
}
