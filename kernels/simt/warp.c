/* Warp operations: who takes part, what each gets, and who broke the rules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/warp.h"

#include <string.h>

#include "kernels/simt/clock.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"

/* The lanes of a warp that wait in warp operations, and those that never will: they have left, or are past the block's
 * end. */
struct at_warp_lanes {
    uint32_t waiting, gone;
    int mixed; /* those that wait need not all wait in the same operation */
};

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

int at_warp_same_operation(const struct at_simt_thread *a, const struct at_simt_thread *b) {
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
    else if (other->state == AT_THREAD_IN_WARP && (other->mask >> mine & 1) && !at_warp_same_operation(self, other))
        at_simt_report(AT_FINDING_RACE, self->place,
                       "block %lld: %s of thread %d with mask %08x names lane %d, which waits for it in a %s with mask "
                       "%08x at %s:%d",
                       (long long)self->in->number, kind_name(self->kind), self->index, self->mask, lane,
                       kind_name(other->kind), other->mask, other->place.file, other->place.line);
}

void at_warp_begin(struct at_simt_block *block) {
    if (!block->warps)
        block->warps = at_simt_allocate(AT_WARPS_MAX, sizeof *block->warps, "warps");
    for (int w = 0; w * AT_WARP < block->n; w++) {
        const int lanes = block->n - w * AT_WARP;
        block->warps[w] = (struct at_warp_lanes){ .gone = lanes < AT_WARP ? ~0u << lanes : 0 };
    }
}

static struct at_warp_lanes *warp_of(const struct at_simt_thread *thread) {
    return &thread->in->warps[thread->index / AT_WARP];
}

static void complete(struct at_simt_thread *self, at_warp_finish *finish) {
    struct at_simt_thread *members[AT_WARP], *lanes = self - self->index % AT_WARP;
    uint32_t ballot = 0;
    int n = 0;
    at_counters_warp_operation();
    warp_of(self)->waiting &= ~self->mask;
    for (uint32_t left = self->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        members[n++] = &lanes[lane];
        ballot |= (uint32_t)(lanes[lane].value != 0) << lane;
    }
    for (int i = 0; i < n; i++) {
        struct at_simt_thread *t = members[i];
        t->result = t->kind == AT_SIMT_BALLOT ? ballot : t->kind == AT_SIMT_SHUFFLE ? lanes[t->from].value : 0;
        t->state = AT_THREAD_READY;
    }
    if (self->kind == AT_SIMT_SYNCWARP)
        at_clock_order(self->in, members, n);
    if (finish)
        finish(members, n);
}

/* Whether some lane of self's operation has not come yet. Looks at every partner, and reports the first that never
 * will come. */
static int misses_any(const struct at_simt_thread *self) {
    int missing = 0;
    for (uint32_t left = self->mask & ~(1u << self->index % AT_WARP); left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const struct at_simt_thread *other = lane_of(self, lane);
        check_partner(self, lane, other);
        missing |= !(other->state == AT_THREAD_IN_WARP && at_warp_same_operation(self, other));
    }
    return missing;
}

/* The same; partners need no look where all that wait are in self's operation, and those to come can come. */
static int misses_some(const struct at_simt_thread *self, struct at_warp_lanes *warp) {
    const uint32_t others = warp->waiting;
    warp->waiting |= 1u << self->index % AT_WARP;
    if (!others)
        warp->mixed = 0;
    else if (!warp->mixed)
        warp->mixed = !at_warp_same_operation(self, lane_of(self, __builtin_ctz(others)));
    return warp->mixed || (self->mask & warp->gone) ? misses_any(self) : (self->mask & ~warp->waiting) != 0;
}

uint64_t at_simt_warp(enum at_simt_warp_kind kind, uint32_t mask, uint64_t value, int from,
                      struct at_simt_place place) {
    if (kind == AT_SIMT_SYNCWARP && at_simt_leaves_out(place))
        return 0;
    return at_warp_operation(kind, mask, value, from, NULL, NULL, place);
}

uint64_t at_warp_operation(enum at_simt_warp_kind kind, uint32_t mask, uint64_t value, int from, const void *deposit,
                           at_warp_finish *finish, struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    const int mine = self->index % AT_WARP;
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
    if (misses_some(self, warp_of(self)))
        at_simt_wait();
    else
        complete(self, finish);
    return self->result;
}

void at_warp_left(struct at_simt_thread *left) {
    const int mine = left->index % AT_WARP;
    warp_of(left)->gone |= 1u << mine;
    for (uint32_t waiting = warp_of(left)->waiting; waiting; waiting &= waiting - 1) {
        const struct at_simt_thread *t = lane_of(left, __builtin_ctz(waiting));
        if (t->mask >> mine & 1)
            at_simt_report(AT_FINDING_RACE, t->place,
                           "block %lld: %s of thread %d names lane %d, which has left the kernel",
                           (long long)t->in->number, kind_name(t->kind), t->index, mine);
    }
}
