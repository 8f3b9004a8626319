/* Copies from global to shared memory that a thread starts and waits for later.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A copy lands as late as the rules allow: at the wait that demands it. Until then its destination is in flight, for
 * its own thread too, and nobody may write its source. */
#include <string.h>

#include "kernels/simt/dependent.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"
#include "kernels/simt/pending_copy.h"
#include "kernels/simt/shadow.h"

/* Bounds and alignment of both ends; whether kernels may write the source. */
static int check_ends(const void *to, const void *from, int bytes) {
    const struct at_simt_thread *self = at_simt_thread();
    struct at_spot source, target;
    if ((uintptr_t)to % (uintptr_t)bytes || (uintptr_t)from % (uintptr_t)bytes)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d copies %d bytes %s an address that is no multiple of %d",
                       (long long)self->in->number, self->index, bytes,
                       (uintptr_t)to % (uintptr_t)bytes ? "to" : "from", bytes);
    at_dependent_touch(self, from, NULL);
    at_memory_find(from, bytes, AT_ACCESS_READ, &source, NULL);
    at_memory_find(to, bytes, AT_ACCESS_COPY, &target, NULL);
    const int to_shared = target.name && target.shared;
    if (!to_shared || !source.name || source.shared)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d copies %d bytes %s: such copies go from global to shared memory",
                       (long long)self->in->number, self->index, bytes,
                       to_shared ? "from memory that is not global" : "to memory that is not shared");
    return source.cells != NULL;
}

void at_simt_copy(void *to, const void *from, int bytes, struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    int from_writable = 0;
    self->place = place;
    if (!at_simt_machine.unchecked) {
        const void *site = __builtin_return_address(0);
        from_writable = check_ends(to, from, bytes);
        at_shadow_access_at(from, bytes, AT_ACCESS_READ, site);
        at_shadow_access_at(to, bytes, AT_ACCESS_COPY, site);
    }
    const struct at_pending_copy copy = { .to = to,
                                          .from = from,
                                          .bytes = bytes,
                                          .place = place,
                                          .group = self->copy_group,
                                          .from_writable = from_writable };
    at_pending_copy_add(self, &copy);
}

void at_simt_copy_commit(struct at_simt_place place) {
    if (!at_simt_leaves_out(place))
        at_simt_thread()->copy_group++;
}

void at_simt_copy_wait(int but, struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    const struct at_pending_copy *c;
    while ((c = at_pending_copy_first(self)) != NULL) {
        if ((int64_t)c->group + but >= (int64_t)self->copy_group)
            break; /* not committed yet, or of the last groups */
        at_shadow_landed(c->to, c->from, c->bytes);
        memcpy(c->to, c->from, (size_t)c->bytes);
        at_pending_copy_drop(self);
    }
}
