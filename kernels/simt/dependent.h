/* Whether a thread of a dependent launch may touch global memory yet.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Launches run one after the other here, so what an early access would read on a GPU cannot be seen from its value: it is
 * told from who has waited. On a GPU it would do for a thread to be ordered behind another that has waited; the rule is
 * that each waits itself, which costs nothing once one has. */
#ifndef AT_SIMT_DEPENDENT_H
#define AT_SIMT_DEPENDENT_H

#include "kernels/simt/machine.h"

/* A launch begins. */
void at_dependent_launch(void);
/* Reports an access to a tensor or the workspace by a thread that has not waited; `where` as in at_simt_report_at. */
void at_dependent_too_early(const void *address, const void *where);
static inline void at_dependent_touch(const struct at_simt_thread *self, const void *address, const void *where) {
    if (at_simt_machine.dependent && !self->waited_for_others)
        at_dependent_too_early(address, where);
}
/* The last thread of a block has left. */
void at_dependent_left(const struct at_simt_block *block);

#endif
