/* Warp operations: who takes part, what each gets, and who broke the rules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/counters.h"
#include "kernels/simt/machine.h"

#include <string.h>

static const char *kind_name(enum at_simt_warp_kind kind) {
    static const char *const names[] = { "syncwarp",    "shuffle",      "ballot",       "mma",
                                         "matrix load", "matrix store", "setmaxnreg",   "barrier arrival",
                                         "wgmma",       "wgmma fence",  "wgmma commit", "wgmma wait" };
    return names[kind];
}

int at_simt_lane(void) { return at_simt_thread()->index % AT_WARP; }

static struct at_simt_thread *lane_of(const struct at_simt_thread *thread, int lane) {
    const int index = thread->index / AT_WARP * AT_WARP + lane;
    return index < thread->in->n ? &thread->in->threads[index] : NULL;
}

int at_simt_same_operation(const struct at_simt_thread *a, const struct at_simt_thread *b) {
    const int alike = a->kind < AT_SIMT_MMA || a->from == b->from;
    return a->kind == b->kind && alike && a->mask == b->mask && a->place.line == b->place.line &&
           (a->place.file == b->place.file || strcmp(a->place.file, b->place.file) == 0);
}

/* What keeps `other`, named in self's mask, from ever joining it; NULL when nothing does yet. */
static void check_partner(const struct at_simt_thread *self, int lane, const struct at_simt_thread *other) {
    const int mine = self->index % AT_WARP;
    if (!other)
        at_simt_report(AT_FINDING_RACE, self->place,
                       "block %lld: %s of thread %d names lane %d, which the block of %d does not have",
                       (long long)self->in->number, kind_name(self->kind), self->index, lane, self->in->n);
    else if (other->state == AT_THREAD_LEFT)
        at_simt_report(AT_FINDING_RACE, self->place,
                       "block %lld: %s of thread %d names lane %d, which has left the kernel",
                       (long long)self->in->number, kind_name(self->kind), self->index, lane);
    else if (other->state == AT_THREAD_IN_WARP && (other->mask >> mine & 1) && !at_simt_same_operation(self, other))
        at_simt_report(AT_FINDING_RACE, self->place,
                       "block %lld: %s of thread %d with mask %08x names lane %d, which waits for it in a %s with mask "
                       "%08x at %s:%d",
                       (long long)self->in->number, kind_name(self->kind), self->index, self->mask, lane,
                       kind_name(other->kind), other->mask, other->place.file, other->place.line);
}

static void complete(struct at_simt_thread *self, at_simt_warp_finish *finish) {
    struct at_simt_thread *members[AT_WARP];
    uint32_t ballot = 0;
    int n = 0;
    at_counters_warp_operation();
    for (uint32_t left = self->mask; left; left &= left - 1) {
        members[n] = lane_of(self, __builtin_ctz(left));
        ballot |= (uint32_t)(members[n++]->value != 0) << __builtin_ctz(left);
    }
    for (int i = 0; i < n; i++) {
        struct at_simt_thread *t = members[i];
        t->result = t->kind == AT_SIMT_BALLOT ? ballot : t->kind == AT_SIMT_SHUFFLE ? lane_of(t, t->from)->value : 0;
        t->state = AT_THREAD_READY;
    }
    if (self->kind == AT_SIMT_SYNCWARP)
        at_simt_order(self->in, members, n);
    if (finish)
        finish(members, n);
}

uint64_t at_simt_warp(enum at_simt_warp_kind kind, uint32_t mask, uint64_t value, int from,
                      struct at_simt_place place) {
    if (kind == AT_SIMT_SYNCWARP && at_simt_leaves_out(place))
        return 0;
    return at_simt_warp_operation(kind, mask, value, from, NULL, NULL, place);
}

uint64_t at_simt_warp_operation(enum at_simt_warp_kind kind, uint32_t mask, uint64_t value, int from,
                                const void *deposit, at_simt_warp_finish *finish, struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    const int mine = self->index % AT_WARP;
    int missing = 0;
    self->kind = kind;
    self->mask = mask;
    self->value = value;
    self->from = from;
    self->deposit = deposit;
    self->place = place;
    self->state = AT_THREAD_IN_WARP;
    if (!(mask >> mine & 1))
        at_simt_report(AT_FINDING_RACE, place, "block %lld: thread %d takes part in a %s whose mask %08x leaves it out",
                       (long long)self->in->number, self->index, kind_name(kind), mask);
    if (kind == AT_SIMT_SHUFFLE && !(mask >> from & 1))
        at_simt_report(AT_FINDING_RACE, place,
                       "block %lld: shuffle of thread %d reads lane %d, which its mask %08x leaves out",
                       (long long)self->in->number, self->index, from, mask);
    for (uint32_t left = mask & ~(1u << mine); left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const struct at_simt_thread *other = lane_of(self, lane);
        check_partner(self, lane, other);
        missing |= !(other->state == AT_THREAD_IN_WARP && at_simt_same_operation(self, other));
    }
    if (missing)
        at_simt_wait();
    else
        complete(self, finish);
    return self->result;
}

void at_simt_warp_left(struct at_simt_thread *left) {
    const int mine = left->index % AT_WARP;
    for (int lane = 0; lane < AT_WARP; lane++) {
        const struct at_simt_thread *t = lane_of(left, lane);
        if (t && t->state == AT_THREAD_IN_WARP && (t->mask >> mine & 1))
            at_simt_report(AT_FINDING_RACE, t->place,
                           "block %lld: %s of thread %d names lane %d, which has left the kernel",
                           (long long)t->in->number, kind_name(t->kind), t->index, mine);
    }
}
