/* When every thread of a block waits: who for what, and whether a mask was used against its rules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/deadlock.h"

#include "kernels/simt/cluster.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/mbarrier.h"
#include "kernels/simt/named_barrier.h"
#include "kernels/simt/registers.h"
#include "kernels/simt/warp.h"

/* A lane that t's warp operation waits for, which itself waits, elsewhere or with another mask. */
static const struct at_simt_thread *never_comes(const struct at_simt_thread *t) {
    const int first = t->index / AT_WARP * AT_WARP;
    for (int i = first; i < first + AT_WARP && i < t->in->n; i++) {
        const struct at_simt_thread *other = &t->in->threads[i];
        if ((t->mask >> (i - first) & 1) && !(other->state == AT_THREAD_IN_WARP && at_warp_same_operation(t, other)))
            return other;
    }
    return NULL;
}

void at_deadlock_report(const struct at_simt_block *block) {
    const struct at_simt_thread *waits = NULL, *other = NULL;
    for (int i = 0; i < block->n && !other; i++) {
        const struct at_simt_thread *t = &block->threads[i];
        if (t->state == AT_THREAD_LEFT)
            continue;
        waits = t;
        other = t->state == AT_THREAD_IN_WARP ? never_comes(t) : NULL;
    }
    if (!waits)
        return; /* every thread has left */
    if (!other) {
        char also[240] = "";
        at_named_waits(block, also, sizeof also);
        at_mbarrier_waits(block, also, sizeof also);
        at_registers_waits(block, also, sizeof also);
        at_cluster_waits(block, also, sizeof also);
        at_simt_report(AT_FINDING_DEADLOCK, waits->place, "block %lld: every thread waits: thread %d and others here%s",
                       (long long)block->number, waits->index, also);
        return;
    }
    /* Waiting for a lane that is somewhere else is a mask used against its rules; at the same place the lanes wait for
     * each other. */
    const int elsewhere = other->state != AT_THREAD_IN_WARP || other->place.line != waits->place.line;
    at_simt_report(elsewhere ? AT_FINDING_RACE : AT_FINDING_DEADLOCK, waits->place,
                   "block %lld: every thread waits: thread %d here with mask %08x for thread %d, which waits at %s:%d",
                   (long long)block->number, waits->index, waits->mask, other->index, other->place.file,
                   other->place.line);
}
