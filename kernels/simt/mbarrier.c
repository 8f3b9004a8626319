/* Barriers in shared memory that count arrivals, phase by phase.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/mbarrier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/simt/clock.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/simt_bulk.h"

enum { COUNT_MAX = (1 << 20) - 1, BYTES_MAX = (1 << 20) - 1 };

/* What the eight bytes hold: whoever changes them otherwise is seen at the next use. */
static uint64_t word_of(const struct at_mbarrier_state *m) { return (uint64_t)m->phase << 32 | m->pending; }
static void put_word(const struct at_mbarrier_state *m) {
    const uint64_t word = word_of(m);
    memcpy(m->at, &word, sizeof word);
}

static int64_t offset_of(const struct at_simt_thread *self, const void *at) {
    return (const uint8_t *)at - self->in->arena;
}

static void check_place(const struct at_simt_thread *self, const void *at) {
    struct at_spot spot;
    at_memory_find(at, 8, AT_ACCESS_ATOMIC, &spot, NULL);
    if (!spot.name || !spot.shared || (uintptr_t)at % 8)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d has an mbarrier that is not 8 aligned bytes of shared memory",
                       (long long)self->in->number, self->index);
}

static struct at_mbarrier_state *find(struct at_simt_block *block, const void *at) {
    for (int i = 0; i < block->n_mbarriers; i++)
        if (block->mbarriers[i].at == at)
            return &block->mbarriers[i];
    return NULL;
}

/* Clocks stay with the block's place and serve those that come after. */
static uint32_t *cleared(uint32_t *clock, int width) {
    if (!clock)
        clock = at_clock_create();
    memset(clock, 0, (size_t)width * sizeof *clock);
    return clock;
}

void at_mbarrier_begin(struct at_simt_block *block) {
    if (!block->mbarriers)
        block->mbarriers = at_simt_allocate(AT_MBARRIERS_MAX, sizeof *block->mbarriers, "mbarriers");
    block->n_mbarriers = 0;
}

void at_simt_mbarrier_init(void *at, uint32_t count, struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    struct at_simt_block *block = self->in;
    self->place = place;
    check_place(self, at);
    const struct at_mbarrier_state *before = find(block, at);
    if (before)
        at_simt_report(AT_FINDING_RACE, place, "block %lld: thread %d initialises an mbarrier again; before: %s:%d",
                       (long long)block->number, self->index, before->init_place.file, before->init_place.line);
    if (count < 1 || count > COUNT_MAX || block->n_mbarriers == AT_MBARRIERS_MAX)
        at_simt_report(AT_FINDING_BOUNDS, place,
                       "block %lld: thread %d initialises mbarrier number %d for %u arrivals; at most %d, 1 to %d",
                       (long long)block->number, self->index, block->n_mbarriers + 1, count, (int)AT_MBARRIERS_MAX,
                       (int)COUNT_MAX);
    at_shadow_access_at(at, 8, AT_ACCESS_WRITE, __builtin_return_address(0));
    struct at_mbarrier_state *m = &block->mbarriers[block->n_mbarriers++];
    *m = (struct at_mbarrier_state){ .at = at,
                                     .init_place = place,
                                     .init_thread = self->index,
                                     .init_epoch = self->epoch,
                                     .count = count,
                                     .pending = count,
                                     .arriving = cleared(m->arriving, at_clock_width(block->n, 1)),
                                     .completed = cleared(m->completed, at_clock_width(block->n, 1)) };
    put_word(m);
}

struct at_mbarrier_state *at_mbarrier_use(struct at_simt_thread *self, void *at, const void *site) {
    check_place(self, at);
    struct at_mbarrier_state *m = find(self->in, at);
    if (!m) {
        at_simt_report(AT_FINDING_UNWRITTEN, self->place,
                       "block %lld: thread %d uses an mbarrier at byte %lld of shared memory, which nobody initialised",
                       (long long)self->in->number, self->index, (long long)offset_of(self, at));
        abort(); /* a finding does not come back */
    }
    if (!at_happens_before(self, m->init_thread, m->init_epoch))
        at_simt_report(AT_FINDING_RACE, self->place,
                       "block %lld: thread %d uses an mbarrier that thread %d initialises at %s:%d without an order "
                       "between them",
                       (long long)self->in->number, self->index, m->init_thread, m->init_place.file,
                       m->init_place.line);
    at_shadow_access_at(at, 8, AT_ACCESS_ATOMIC, site);
    const uint64_t word = word_of(m);
    if (memcmp(at, &word, sizeof word) != 0)
        at_simt_report(AT_FINDING_RACE, self->place,
                       "block %lld: thread %d uses an mbarrier that was written over since its last use",
                       (long long)self->in->number, self->index);
    return m;
}

/* What all arrivals before did is ordered before what this thread does now. */
static void acquire(struct at_simt_thread *thread, const struct at_mbarrier_state *m) {
    at_clock_join(thread->clock, m->completed, at_clock_width_now(thread->in));
}

/* Ends the phase once all have arrived and all bytes are there. */
static void complete(struct at_simt_block *block, struct at_mbarrier_state *m) {
    if (m->pending > 0 || m->bytes != 0)
        return;
    const int number = (int)(m - block->mbarriers);
    at_clock_join(m->completed, m->arriving, at_clock_width_now(block));
    for (int i = 0; i < block->n; i++) {
        struct at_simt_thread *t = &block->threads[i];
        if (t->state == AT_THREAD_IN_MBARRIER && t->barrier == number && t->parity == (m->phase & 1)) {
            acquire(t, m);
            t->state = AT_THREAD_READY;
        }
    }
    m->phase++;
    m->pending = m->count;
}

static void arrive(struct at_simt_thread *self, void *at, uint32_t bytes, const void *site) {
    struct at_mbarrier_state *m = at_mbarrier_use(self, at, site);
    if (m->pending == 0)
        at_simt_report(
            AT_FINDING_RACE, self->place,
            "block %lld: thread %d arrives at an mbarrier once more than the %u times of a phase, which waits "
            "for %lld bytes of bulk copies",
            (long long)self->in->number, self->index, m->count, (long long)m->bytes);
    at_clock_release(m->arriving, self);
    m->bytes += bytes;
    m->pending--;
    complete(self->in, m);
    put_word(m);
}

void at_simt_mbarrier_arrive(void *at, struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    arrive(self, at, 0, __builtin_return_address(0));
}

void at_simt_mbarrier_arrive_expect(void *at, uint32_t bytes, struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    if (bytes > BYTES_MAX)
        at_simt_report(AT_FINDING_BOUNDS, place, "block %lld: thread %d expects %u bytes at an mbarrier; at most %d",
                       (long long)self->in->number, self->index, bytes, (int)BYTES_MAX);
    arrive(self, at, bytes, __builtin_return_address(0));
}

void at_mbarrier_landed(struct at_simt_block *block, struct at_mbarrier_state *m, int64_t bytes) {
    const int number = (int)(m - block->mbarriers);
    m->landed = at_simt_machine.now;
    m->arriving[at_clock_width(block->n, 1) - AT_MBARRIERS_MAX + number] = m->landed;
    m->bytes -= bytes;
    if (m->bytes < -BYTES_MAX)
        at_simt_report(AT_FINDING_RACE, m->copy_place,
                       "block %lld: more bytes of bulk copies come in than an mbarrier counts: nobody expects them",
                       (long long)block->number);
    complete(block, m);
    put_word(m);
}

void at_simt_mbarrier_wait(void *at, uint32_t parity, struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    struct at_mbarrier_state *m = at_mbarrier_use(self, at, __builtin_return_address(0));
    if (parity > 1)
        at_simt_report(AT_FINDING_RACE, place, "block %lld: thread %d waits for parity %u; wanted 0 or 1",
                       (long long)self->in->number, self->index, parity);
    if ((m->phase & 1) != parity) {
        acquire(self, m);
        return;
    }
    self->barrier = (int)(m - self->in->mbarriers);
    self->parity = parity;
    self->state = AT_THREAD_IN_MBARRIER;
    at_simt_wait();
}

void at_mbarrier_waits(const struct at_simt_block *block, char *text, size_t size) {
    int told[AT_MBARRIERS_MAX] = { 0 };
    for (int i = 0; i < block->n; i++) {
        const struct at_simt_thread *t = &block->threads[i];
        if (t->state != AT_THREAD_IN_MBARRIER || told[t->barrier]++)
            continue;
        const struct at_mbarrier_state *m = &block->mbarriers[t->barrier];
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "; phase %u of the mbarrier of %s:%d has %u arrivals of %u", m->phase,
                 m->init_place.file, m->init_place.line, m->count - m->pending, m->count);
        if (m->bytes)
            snprintf(text + strlen(text), size - strlen(text), " and %lld bytes of bulk copies %s",
                     (long long)(m->bytes > 0 ? m->bytes : -m->bytes), m->bytes > 0 ? "to come" : "too many");
    }
}
