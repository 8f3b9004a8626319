/* Every access of a kernel, against what was done to the same bytes before.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two accesses of which one writes must be ordered: by the same thread, by a barrier or a syncwarp both took part in,
 * by a chain of those, or by the end of a launch. Blocks of one launch are never ordered; atomics on one address are.
 */
#include "kernels/simt/shadow.h"

#include "kernels/simt/clock.h"
#include "kernels/simt/cluster.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/mbarrier_state.h"
#include "kernels/simt/pending_copy.h"
#include "kernels/simt/readers.h"
#include "kernels/simt/wgmma_registers.h"

#include <stdio.h>
#include <stdlib.h>

/* Keeps what is said once a job out of the way of what is done for every access. */
#define COLD __attribute__((cold, noinline))

/* Cells of single bytes, four by four, and those that they stand for; number 0 is not used. */
static struct {
    struct at_shadow_cell (*cells)[AT_GRANULE], **of;
    uint32_t n, capacity;
} split = { .n = 1 };

void at_shadow_job(void) {
    while (split.n > 1)
        split.of[--split.n]->bytes = 0;
}
void at_shadow_launch(void) { at_readers_launch(); }

/* Accesses of an earlier launch are ordered before all of this one. */
static int recent(uint32_t epoch) { return epoch >= at_simt_machine.launch_began; }

/* Gives each byte of a cell a cell of its own. */
static void split_cell(struct at_shadow_cell *cell) {
    if (split.n >= split.capacity) {
        split.capacity = split.capacity ? 2 * split.capacity : 1024;
        split.cells = realloc(split.cells, split.capacity * sizeof *split.cells);
        split.of = realloc(split.of, split.capacity * sizeof *split.of);
        if (!split.cells || !split.of) {
            fprintf(stderr, "attest-cpu: no memory to watch single bytes\n");
            exit(3);
        }
    }
    for (int i = 0; i < AT_GRANULE; i++) {
        struct at_shadow_cell *part = &split.cells[split.n][i];
        *part = *cell;
        if (!recent(part->read_epoch)) /* its vector was an earlier launch's */
            part->readers = 0;
        at_readers_copied(part);
    }
    split.of[split.n] = cell;
    cell->bytes = split.n++;
}

/* ---- order ---- */

static const char *const doing[] = { "reads",      "writes",         "adds atomically to", "copies to",     "copies",
                                     "multiplies", "stores in bulk", "copies in bulk to",  "copies in bulk" };
static int bulk_mbarrier; /* of AT_ACCESS_BULK_WRITE and AT_ACCESS_BULK_LANDING */

static COLD void report_race(struct at_spot spot, enum at_access access, const char *did, uint32_t block, int thread,
                             const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    char other[32] = "a thread";
    if (thread >= 0)
        snprintf(other, sizeof other, "thread %d", thread);
    at_simt_report_at(
        AT_FINDING_RACE, where,
        "block %lld: thread %d %s byte %lld of %s, which %s of block %lld %s without an order between them",
        (long long)self->in->number, self->index, doing[access], (long long)(spot.offset - spot.named_from), spot.name,
        other, (long long)block, did);
}

static COLD void report_in_flight(const struct at_shadow_cell *c, struct at_spot spot, enum at_access access,
                                  const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    if (!spot.shared)
        at_simt_report_at(
            AT_FINDING_RACE, where,
            "block %lld: thread %d %s byte %lld of %s, to which a bulk store of thread %d of block %u has "
            "not been waited for",
            (long long)self->in->number, self->index, doing[access], (long long)(spot.offset - spot.named_from),
            spot.name, c->write_thread, c->write_block);
    const struct at_pending_copy *copy = at_pending_copy_to(self->in, self->in->arena + spot.offset);
    at_simt_report_at(AT_FINDING_RACE, where,
                      "block %lld: thread %d %s byte %lld of %s, to which the copy of thread %d at %s:%d has not been "
                      "waited for",
                      (long long)self->in->number, self->index, doing[access],
                      (long long)(spot.offset - spot.named_from), spot.name, c->write_thread,
                      copy ? copy->place.file : "an unknown place", copy ? copy->place.line : 0);
}

/* The write is a bulk load, in flight or not waited for by anybody that orders it before self. */
static COLD void report_bulk(const struct at_shadow_cell *c, struct at_spot spot, enum at_access access,
                             const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    const struct at_mbarrier_state *m = &self->in->mbarriers[c->write_thread - AT_BLOCK_MAX];
    at_simt_report_at(AT_FINDING_RACE, where,
                      "block %lld: thread %d %s byte %lld of %s, to which the bulk copy of thread %d at %s:%d has not "
                      "been waited for, at the mbarrier of %s:%d",
                      (long long)self->in->number, self->index, doing[access],
                      (long long)(spot.offset - spot.named_from), spot.name, m->copy_thread, m->copy_place.file,
                      m->copy_place.line, m->init_place.file, m->init_place.line);
}

/* A recent write by another block, in flight, or by a bulk load. */
static __attribute__((noinline)) void check_odd_write(const struct at_shadow_cell *c, struct at_spot spot,
                                                      enum at_access access, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    const int other_block = c->write_block != (uint32_t)self->in->number;
    const int cluster = at_cluster_same(c->write_block, (uint32_t)self->in->number);
    if (spot.shared && !cluster)
        return; /* an earlier block's, in the same arena */
    if (other_block && cluster && !c->in_flight) {
        if (!at_cluster_happens_before(self, c->write_block, c->write_thread, c->write_epoch))
            report_race(spot, access, c->write_atomic ? "adds to atomically" : "writes", c->write_block,
                        c->write_thread < AT_BLOCK_MAX ? c->write_thread : -1, where);
        return;
    }
    if (c->write_thread >= AT_BLOCK_MAX && !other_block) {
        if (c->in_flight || !at_happens_before(self, c->write_thread, c->write_epoch))
            report_bulk(c, spot, access, where);
        return;
    }
    if (c->in_flight)
        report_in_flight(c, spot, access, where);
    report_race(spot, access, c->write_atomic ? "adds to atomically" : "writes", c->write_block, c->write_thread,
                where);
}

static inline void check_write_before(const struct at_shadow_cell *c, const struct at_spot *spot, enum at_access access,
                                      const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    if (!recent(c->write_epoch) || (access == AT_ACCESS_ATOMIC && c->write_atomic))
        return;
    if (c->write_block != (uint32_t)self->in->number || c->write_thread >= AT_BLOCK_MAX || c->in_flight)
        check_odd_write(c, *spot, access, where);
    else if (!at_happens_before(self, c->write_thread, c->write_epoch))
        report_race(*spot, access, c->write_atomic ? "adds to atomically" : "writes", c->write_block, c->write_thread,
                    where);
}

/* What other threads and this one wrote by ordinary stores, the tensor cores and bulk copies see, or write over, only
 * past a proxy fence. */
static void check_fenced(const struct at_shadow_cell *c, const struct at_spot *spot, enum at_access access,
                         const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    if (!recent(c->write_epoch) || c->write_thread >= AT_BLOCK_MAX ||
        (spot->shared && c->write_block != (uint32_t)self->in->number) ||
        at_clock_fenced(self, c->write_thread, c->write_epoch))
        return;
    at_simt_report_at(AT_FINDING_RACE, where,
                      "block %lld: thread %d %s byte %lld of %s, which thread %d writes, without a proxy fence "
                      "between them",
                      (long long)self->in->number, self->index, doing[access],
                      (long long)(spot->offset - spot->named_from), spot->name, c->write_thread);
}

static inline void check_not_multiplied(const struct at_shadow_cell *c, const struct at_spot *spot,
                                        enum at_access access, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    if (c->async_reads)
        at_simt_report_at(AT_FINDING_RACE, where,
                          "block %lld: thread %d %s byte %lld of %s, which %s reads that has not been waited for",
                          (long long)self->in->number, self->index, doing[access],
                          (long long)(spot->offset - spot->named_from), spot->name,
                          self->in->wgmma ? "a wgmma" : "a bulk store");
}

/* Whether the readers a cell remembers are of this launch, and in shared memory of this block or its cluster; those of
 * other blocks of a cluster, no longer once its barrier has opened. */
static inline int has_readers(const struct at_shadow_cell *c, int shared) {
    const struct at_simt_thread *self = at_simt_thread();
    if (!recent(c->read_epoch))
        return 0;
    if (c->read_block == (uint32_t)self->in->number && !c->read_by_blocks)
        return 1;
    if (!at_cluster_same(c->read_block, (uint32_t)self->in->number))
        return !shared;
    return (c->read_by_blocks && !shared) || c->read_epoch >= self->cluster_opened;
}

static inline void check_reads_before(const struct at_shadow_cell *c, const struct at_spot *spot, enum at_access access,
                                      const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    if (!has_readers(c, spot->shared))
        return;
    const int other_block = c->read_by_blocks || c->read_block != (uint32_t)self->in->number;
    const int thread = other_block ? -1 : at_readers_unordered(c, self);
    if (other_block || thread >= 0)
        report_race(*spot, access, "reads", c->read_block, thread, where);
}

static __attribute__((noinline)) void note_first_read(struct at_shadow_cell *c, int shared) {
    const struct at_simt_thread *self = at_simt_thread();
    const uint32_t block = (uint32_t)self->in->number;
    if (!has_readers(c, shared)) {
        if (!recent(c->read_epoch))
            c->readers = 0; /* the vector was an earlier launch's */
        at_readers_clear(c);
        c->read_by_blocks = 0;
    } else if (c->read_block != block) {
        c->read_by_blocks = 1; /* no order will ever reach all of them, but in a cluster */
    }
    if (c->read_by_blocks) {
        c->read_epoch = self->epoch > c->read_epoch ? self->epoch : c->read_epoch;
        return;
    }
    c->read_block = block;
    at_readers_add(c, self);
}

static inline void note_read(struct at_shadow_cell *c, int shared) {
    const struct at_simt_thread *self = at_simt_thread();
    /* Mostly another lane of the warp that came last has read it in this epoch, which no other block has. */
    if (c->read_epoch == self->epoch && c->last_warp == self->index / AT_WARP && !c->readers && !c->read_by_blocks)
        c->last_lanes |= 1u << self->index % AT_WARP;
    else
        note_first_read(c, shared);
}

static inline void check_written(const struct at_shadow_cell *c, const struct at_spot *spot, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    const uint32_t began = spot->shared ? at_simt_machine.launch_began : at_simt_machine.job_began;
    if (c->write_epoch >= began && !(spot->shared && !at_cluster_same(c->write_block, (uint32_t)self->in->number)))
        return;
    at_simt_report_at(AT_FINDING_UNWRITTEN, where, "block %lld: thread %d reads byte %lld of %s, which nobody wrote",
                      (long long)self->in->number, self->index, (long long)(spot->offset - spot->named_from),
                      spot->name);
}

static inline void note_write(struct at_shadow_cell *c, enum at_access access) {
    const struct at_simt_thread *self = at_simt_thread();
    const int bulk = access == AT_ACCESS_BULK_WRITE || access == AT_ACCESS_BULK_LANDING;
    c->write_epoch = bulk ? at_simt_machine.now : self->epoch;
    c->write_block = (uint32_t)self->in->number;
    c->write_thread = (uint16_t)(bulk ? AT_BLOCK_MAX + bulk_mbarrier : self->index);
    c->write_atomic = access == AT_ACCESS_ATOMIC;
    c->in_flight = access == AT_ACCESS_COPY || access == AT_ACCESS_BULK_WRITE;
}

static inline __attribute__((always_inline)) void access_cell(struct at_shadow_cell *c, const struct at_spot *spot,
                                                              enum at_access access, const void *where) {
    const int multiply = access == AT_ACCESS_MULTIPLY || access == AT_ACCESS_BULK_READ;
    if (access == AT_ACCESS_LANDING || access == AT_ACCESS_BULK_LANDING) {
        if (access == AT_ACCESS_LANDING)
            check_not_multiplied(c, spot, access, where);
        note_write(c, access); /* since the copy began nobody can have come */
        return;
    }
    check_write_before(c, spot, access, where);
    if ((access == AT_ACCESS_READ || access == AT_ACCESS_ATOMIC || multiply) && spot->unwritten)
        check_written(c, spot, where);
    if (multiply || access == AT_ACCESS_BULK_WRITE)
        check_fenced(c, spot, access, where);
    if (multiply)
        c->async_reads++;
    if (access == AT_ACCESS_READ || multiply) {
        note_read(c, spot->shared);
        return;
    }
    check_not_multiplied(c, spot, access, where);
    check_reads_before(c, spot, access, where);
    note_write(c, access);
}

static inline __attribute__((always_inline)) void access_cells(struct at_spot *spot, int bytes, enum at_access access,
                                                               const void *where) {
    const int64_t past = spot->offset + bytes;
    while (spot->offset < past) {
        struct at_shadow_cell *c = &spot->cells[spot->offset / AT_GRANULE];
        const int first = (int)(spot->offset % AT_GRANULE);
        const int n = past - spot->offset < AT_GRANULE - first ? (int)(past - spot->offset) : AT_GRANULE - first;
        if (n == AT_GRANULE && !c->bytes) {
            access_cell(c, spot, access, where);
            spot->offset += n;
            continue;
        }
        if (!c->bytes)
            split_cell(c);
        for (int i = first; i < first + n; i++, spot->offset++)
            access_cell(&split.cells[c->bytes][i], spot, access, where);
    }
}

/* One access of any kind to memory of any kind. */
static __attribute__((noinline)) void access_any(const void *address, int bytes, enum at_access access,
                                                 const void *where, const void *site) {
    struct at_spot spot;
    at_memory_find(address, bytes, access, &spot, where);
    if (at_counters_on)
        at_counters_access(&spot, address, bytes, access, site);
    if (!spot.name && at_simt_thread()->in->registers_watched)
        at_wgmma_registers_touch(at_simt_thread(), address, bytes, where);
    if (!spot.cells)
        return;
    if (at_copies_from_writable && access != AT_ACCESS_READ && !spot.shared)
        at_pending_copy_source_written(address, bytes, where);
    access_cells(&spot, bytes, access, where);
}

static inline __attribute__((always_inline)) void access_at(const void *address, int bytes, enum at_access access,
                                                            const void *where, const void *site) {
    struct at_spot spot;
    if (!at_counters_on && (at_memory_own_shared(at_simt_thread()->in, address, bytes, &spot) ||
                            (!at_copies_from_writable && at_memory_in_output(address, bytes, where, &spot))))
        access_cells(&spot, bytes, access, where);
    else
        access_any(address, bytes, access, where, site);
}

void at_shadow_access(const void *address, int bytes, enum at_access access, const void *where) {
    access_any(address, bytes, access, where, where);
}

void at_shadow_read(const void *address, int bytes, const void *where) {
    access_at(address, bytes, AT_ACCESS_READ, where, where);
}

void at_shadow_write(const void *address, int bytes, const void *where) {
    access_at(address, bytes, AT_ACCESS_WRITE, where, where);
}

void at_shadow_access_at(const void *address, int bytes, enum at_access access, const void *site) {
    if (!at_simt_current || at_simt_machine.unchecked)
        return;
    switch (access) { /* a constant for each that is made for many bytes */
    case AT_ACCESS_READ:
        access_at(address, bytes, AT_ACCESS_READ, NULL, site);
        break;
    case AT_ACCESS_WRITE:
        access_at(address, bytes, AT_ACCESS_WRITE, NULL, site);
        break;
    case AT_ACCESS_MULTIPLY:
        access_at(address, bytes, AT_ACCESS_MULTIPLY, NULL, site);
        break;
    case AT_ACCESS_BULK_WRITE:
        access_at(address, bytes, AT_ACCESS_BULK_WRITE, NULL, site);
        break;
    case AT_ACCESS_BULK_LANDING:
        access_at(address, bytes, AT_ACCESS_BULK_LANDING, NULL, site);
        break;
    default:
        access_any(address, bytes, access, NULL, site);
    }
}

void at_shadow_multiplied(const void *address, int bytes) {
    struct at_spot spot;
    if (at_simt_machine.unchecked)
        return;
    at_memory_find(address, bytes, AT_ACCESS_MULTIPLY, &spot, NULL);
    /* It may have read until now, so the read counts in the present epoch: being ordered after what the thread did before
     * the wait is not enough. */
    for (int64_t i = spot.offset / AT_GRANULE; i < (spot.offset + bytes) / AT_GRANULE; i++) {
        struct at_shadow_cell *c = &spot.cells[i];
        if (!c->bytes) {
            c->async_reads--;
            note_read(c, spot.shared);
        }
        for (int k = 0; c->bytes && k < AT_GRANULE; k++) {
            split.cells[c->bytes][k].async_reads--;
            note_read(&split.cells[c->bytes][k], spot.shared);
        }
    }
}

void at_shadow_bulk(const void *to, int bytes, int m, enum at_access access) {
    bulk_mbarrier = m;
    at_shadow_access_at(to, bytes, access, NULL);
}

void at_shadow_landed(const void *to, const void *from, int bytes) {
    struct at_spot spot;
    if (at_simt_machine.unchecked)
        return;
    at_memory_find(from, bytes, AT_ACCESS_READ, &spot, NULL);
    if (spot.cells)
        access_cells(&spot, bytes, AT_ACCESS_READ, NULL);
    at_memory_find(to, bytes, AT_ACCESS_LANDING, &spot, NULL);
    access_cells(&spot, bytes, AT_ACCESS_LANDING, NULL);
}
