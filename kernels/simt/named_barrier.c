/* Named barriers: some warps of a block wait for each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/named_barrier.h"

#include <stdio.h>
#include <string.h>

#include "kernels/simt/clock.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"
#include "kernels/simt/simt_registers.h"
#include "kernels/simt/warp.h"

enum { AT_NAMED_BARRIERS = 16 };

/* What a named barrier waits for, and who used it last. */
struct at_named_barrier {
    int threads, n_waiting; /* threads: the count the first that came gave; n_waiting: all that have come */
    const struct at_simt_thread *first;
    struct at_simt_place first_place;
    uint32_t warps;                 /* some lane of which has come */
    uint32_t arrived[AT_WARPS_MAX]; /* lanes of each that came without waiting */
    uint32_t *clock;                /* of those */
    uint32_t last_warps;            /* that took part when it last opened */
    uint32_t last_epoch;            /* when that was */
    int last_thread;                /* one of those */
};

void at_named_begin(struct at_simt_block *block) {
    block->waited_by_name = 0;
    if (!block->named)
        block->named = at_simt_allocate(AT_NAMED_BARRIERS, sizeof *block->named, "named barriers");
    for (int id = 0; id < AT_NAMED_BARRIERS; id++)
        block->named[id] = (struct at_named_barrier){ .clock = block->named[id].clock };
}

static int lanes_of_warp(const struct at_simt_block *block, int warp) {
    return block->n - warp * AT_WARP < AT_WARP ? block->n - warp * AT_WARP : AT_WARP;
}

static void check_numbers(const struct at_simt_thread *self, const struct at_named_barrier *b, int id, int threads) {
    const int most = (self->in->n + AT_WARP - 1) / AT_WARP * AT_WARP;
    if (id < 1 || id >= AT_NAMED_BARRIERS)
        at_simt_report(AT_FINDING_RACE, self->place, "block %lld: thread %d is at barrier %d; there are 1 to 15",
                       (long long)self->in->number, self->index, id);
    if (threads < AT_WARP || threads % AT_WARP || threads > most)
        at_simt_report(AT_FINDING_RACE, self->place,
                       "block %lld: thread %d is at barrier %d for %d threads; wanted a multiple of 32, at most %d",
                       (long long)self->in->number, self->index, id, threads, most);
    if (b->n_waiting > 0 && b->threads != threads)
        at_simt_report(AT_FINDING_RACE, self->place,
                       "block %lld: thread %d is at barrier %d for %d threads while thread %d waits there for %d, at "
                       "%s:%d",
                       (long long)self->in->number, self->index, id, threads, b->first->index, b->threads,
                       b->first_place.file, b->first_place.line);
}

/* Threads of one warp come together. */
static void check_warp(const struct at_simt_thread *self, int id) {
    const int first = self->index / AT_WARP * AT_WARP;
    for (int i = first; i < first + lanes_of_warp(self->in, first / AT_WARP); i++) {
        const struct at_simt_thread *t = &self->in->threads[i];
        if (t->state == AT_THREAD_LEFT)
            at_simt_report(AT_FINDING_RACE, self->place,
                           "block %lld: thread %d is at barrier %d, which thread %d of its warp has left without",
                           (long long)self->in->number, self->index, id, i);
        if (t->state == AT_THREAD_IN_NAMED &&
            (t->barrier != id || t->place.line != self->place.line || strcmp(t->place.file, self->place.file) != 0))
            at_simt_report(AT_FINDING_RACE, self->place,
                           "block %lld: thread %d is at barrier %d while thread %d of its warp is at barrier %d, at "
                           "%s:%d",
                           (long long)self->in->number, self->index, id, i, t->barrier, t->place.file, t->place.line);
    }
}

/* A warp that could as well have come to the use before, for all that orders it, is one too many for one of them. */
static void check_order(const struct at_simt_thread *self, const struct at_named_barrier *b, int id, int warp) {
    if (b->last_epoch && !(b->last_warps >> warp & 1) && !at_happens_before(self, b->last_thread, b->last_epoch))
        at_simt_report(
            AT_FINDING_RACE, self->place,
            "block %lld: thread %d is at barrier %d, a warp too many for %d threads: nothing orders it after "
            "the use before, of thread %d and others",
            (long long)self->in->number, self->index, id, b->threads, b->last_thread);
    if (__builtin_popcount(b->warps) * AT_WARP > b->threads)
        at_simt_report(AT_FINDING_RACE, self->place,
                       "block %lld: thread %d is at barrier %d, a warp too many for %d threads",
                       (long long)self->in->number, self->index, id, b->threads);
}

/* Whole warps, as many as the barrier waits for. */
static int complete(const struct at_simt_block *block, const struct at_named_barrier *b) {
    int lanes = 0;
    for (uint32_t w = b->warps; w; w &= w - 1)
        lanes += lanes_of_warp(block, __builtin_ctz(w));
    return b->n_waiting == lanes && __builtin_popcount(b->warps) * AT_WARP == b->threads;
}

static void release(struct at_simt_block *block, int id, const struct at_simt_thread *last) {
    struct at_named_barrier *b = &block->named[id];
    struct at_simt_thread *members[AT_BLOCK_MAX];
    const int width = at_clock_width_now(block);
    uint32_t arrived = 0;
    int n = 0;
    for (int i = 0; i < block->n; i++)
        if (block->threads[i].state == AT_THREAD_IN_NAMED && block->threads[i].barrier == id) {
            block->threads[i].state = AT_THREAD_READY;
            members[n++] = &block->threads[i];
        }
    if (n > 0)
        at_clock_order(block, members, n);
    for (int w = 0; w < AT_WARPS_MAX; w++) {
        arrived |= b->arrived[w];
        b->arrived[w] = 0;
    }
    for (int i = 0; i < n && arrived; i++)
        at_clock_join(members[i]->clock, b->clock, width);
    b->last_warps = b->warps;
    b->last_epoch = n > 0 ? at_simt_machine.now : last->epoch - 1;
    b->last_thread = n > 0 ? members[0]->index : last->index;
    b->warps = 0;
    b->n_waiting = 0;
}

static void come(const struct at_simt_thread *self, int id, int threads) {
    struct at_named_barrier *b = &self->in->named[id & (AT_NAMED_BARRIERS - 1)];
    const int warp = self->index / AT_WARP;
    check_numbers(self, b, id, threads);
    check_warp(self, id);
    if (b->arrived[warp] >> self->index % AT_WARP & 1)
        at_simt_report(
            AT_FINDING_RACE, self->place,
            "block %lld: thread %d is at barrier %d, where it has arrived already: the barrier has not opened "
            "since",
            (long long)self->in->number, self->index, id);
    if (b->n_waiting == 0) {
        b->first = self;
        b->first_place = self->place;
    }
    b->threads = threads;
    b->warps |= 1u << warp;
    b->n_waiting++;
    check_order(self, b, id, warp);
}

void at_simt_named_barrier(int id, int threads, struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    come(self, id, threads);
    self->barrier = id;
    self->state = AT_THREAD_IN_NAMED;
    self->in->waited_by_name = 1;
    if (complete(self->in, &self->in->named[id]))
        release(self->in, id, self);
    else
        at_simt_wait();
}

/* What a thread has done so far is ordered before what those do that wait there. */
static void arrive(struct at_named_barrier *b, struct at_simt_thread *self) {
    int first = 1;
    for (int w = 0; w < AT_WARPS_MAX; w++)
        first &= !b->arrived[w];
    if (!b->clock)
        b->clock = at_clock_create();
    if (first)
        memset(b->clock, 0, (size_t)at_clock_width(self->in->n, 1) * sizeof *b->clock);
    at_clock_release(b->clock, self);
    b->arrived[self->index / AT_WARP] |= 1u << self->index % AT_WARP;
}

static void warp_arrives(struct at_simt_thread *const *members, int n) {
    const int id = members[0]->from / (2 * AT_BLOCK_MAX), threads = members[0]->from % (2 * AT_BLOCK_MAX);
    for (int i = 0; i < n; i++) {
        come(members[i], id, threads);
        arrive(&members[i]->in->named[id], members[i]);
    }
    if (complete(members[0]->in, &members[0]->in->named[id]))
        release(members[0]->in, id, members[0]);
}

void at_simt_named_arrive(int id, int threads, struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    check_numbers(self, &self->in->named[id & (AT_NAMED_BARRIERS - 1)], id, threads);
    at_warp_operation(AT_SIMT_NAMED_ARRIVE, 0xffffffffu, 0, id * 2 * AT_BLOCK_MAX + threads, NULL, warp_arrives, place);
}

void at_named_left(const struct at_simt_thread *left) {
    const int first = left->index / AT_WARP * AT_WARP;
    const int past = left->in->waited_by_name ? first + lanes_of_warp(left->in, first / AT_WARP) : first;
    for (int i = first; i < past; i++) {
        const struct at_simt_thread *t = &left->in->threads[i];
        if (t->state == AT_THREAD_IN_NAMED)
            at_simt_report(AT_FINDING_RACE, t->place,
                           "block %lld: thread %d is at barrier %d, which thread %d of its warp has left without",
                           (long long)t->in->number, i, t->barrier, left->index);
    }
}

void at_named_waits(const struct at_simt_block *block, char *text, size_t size) {
    for (int id = 1; id < AT_NAMED_BARRIERS; id++) {
        const struct at_named_barrier *b = &block->named[id];
        const size_t used = strlen(text);
        if (b->n_waiting > 0)
            snprintf(text + used, size - used, "; at barrier %d %d threads of %d", id, b->n_waiting, b->threads);
    }
}
