/* Every access of a kernel, against what was done to the same bytes before.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two accesses of which one writes must be ordered: by the same thread, by a barrier or a syncwarp both took part in,
 * by a chain of those, or by the end of a launch. Blocks of one launch are never ordered; atomics on one address are.
 */
#include "kernels/simt/shadow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/simt/source_place.h"

enum { GRANULE = 2, MOST_REGIONS = 64 };

struct region {
    struct at_simt_region told;
    char name[48];
    struct at_shadow_cell *cells;
    size_t cells_bytes;
};

static struct region regions[MOST_REGIONS];
static int n_regions;
static struct at_shadow_cell *arena_cells[8]; /* of each resident block's arena */

/* Cells that cost memory only where they are touched. */
static struct at_shadow_cell *map_cells(int64_t bytes, size_t *mapped) {
    *mapped = ((size_t)bytes / GRANULE + 1) * sizeof(struct at_shadow_cell);
    void *memory = mmap(NULL, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "attest-cpu: no memory to watch %lld bytes\n", (long long)bytes);
        exit(3);
    }
    return memory;
}

void at_shadow_job(const struct at_simt_region *told, int n) {
    for (int i = 0; i < n_regions; i++)
        munmap(regions[i].cells, regions[i].cells_bytes);
    n_regions = n < MOST_REGIONS ? n : MOST_REGIONS;
    for (int i = 0; i < n_regions; i++) {
        struct region *r = &regions[i];
        r->told = told[i];
        snprintf(r->name, sizeof r->name, "%s", told[i].name);
        r->told.name = r->name;
        r->cells = map_cells(told[i].bytes, &r->cells_bytes);
    }
}

/* ---- finding the cells of an address ---- */

struct spot {
    struct at_shadow_cell *cells; /* NULL: private memory, nothing to check */
    const char *name;             /* of the tensor, or "shared memory" */
    int64_t offset;               /* within it */
    int shared, unwritten;
};

static int in_block_arena(const struct at_simt_block *block, const uint8_t *address, int bytes, struct spot *spot,
                          const void *where) {
    const int64_t at = address - block->arena;
    if (at < 0 || at >= AT_SHARED_MOST + 1024)
        return 0;
    const int resident = (int)(block - at_simt_machine.resident);
    size_t mapped;
    int64_t end = at_simt_machine.dynamic_shared;
    int inside = at + bytes <= end;
    for (int i = 0; i < block->n_variables && !inside; i++) {
        end = block->variables[i].offset + block->variables[i].bytes;
        inside = at >= block->variables[i].offset && at + bytes <= end;
    }
    if (!inside)
        at_simt_report(AT_FINDING_BOUNDS, at_source_place(where),
                       "block %lld: thread %d reaches %d bytes of shared memory that belong to no variable",
                       (long long)block->number, at_simt_thread()->index, bytes);
    if (!arena_cells[resident])
        arena_cells[resident] = map_cells(AT_SHARED_MOST + 1024, &mapped);
    *spot = (struct spot){ arena_cells[resident] + at / GRANULE, "shared memory", at, 1, 1 };
    return 1;
}

static int in_region(const uint8_t *address, int bytes, enum at_access access, struct spot *spot, const void *where) {
    for (int i = 0; i < n_regions; i++) {
        const struct region *r = &regions[i];
        const int64_t at = address - r->told.base;
        if (at < 0 || at >= r->told.bytes)
            continue;
        if (at + bytes > r->told.bytes)
            break;
        if (r->told.read_only && access != AT_ACCESS_READ)
            at_simt_report(AT_FINDING_BOUNDS, at_source_place(where),
                           "block %lld: thread %d writes to the input %s, byte %lld",
                           (long long)at_simt_thread()->in->number, at_simt_thread()->index, r->name, (long long)at);
        *spot = (struct spot){ r->cells + at / GRANULE, r->name, at, 0, r->told.unwritten };
        return 1;
    }
    return 0;
}

/* The nearest region, so that an index past the end is named by the tensor it was meant for. */
static void report_outside(const uint8_t *address, int bytes, enum at_access access, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    const struct region *near = NULL;
    int64_t least = INT64_MAX;
    for (int i = 0; i < n_regions; i++) {
        const int64_t before = regions[i].told.base - address;
        const int64_t past = address + bytes - (regions[i].told.base + regions[i].told.bytes);
        const int64_t distance = before > past ? before : past;
        if (distance < least) {
            least = distance;
            near = &regions[i];
        }
    }
    at_simt_report(AT_FINDING_BOUNDS, at_source_place(where),
                   "block %lld: thread %d %s %d bytes outside every tensor%s%s, byte %+lld of its %lld",
                   (long long)self->in->number, self->index, access == AT_ACCESS_READ ? "reads" : "writes", bytes,
                   near ? "; the nearest is " : "", near ? near->name : "",
                   near ? (long long)(address - near->told.base) : 0LL, near ? (long long)near->told.bytes : 0LL);
}

/* Constants and tables of the program itself. */
extern char __executable_start, end;
static int is_program(const uint8_t *address) {
    return address >= (const uint8_t *)&__executable_start && address < (const uint8_t *)&end;
}

static void find(const uint8_t *address, int bytes, enum at_access access, struct spot *spot, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    *spot = (struct spot){ 0 };
    if (address >= self->fiber.stack && address < self->fiber.stack + self->fiber.bytes)
        return;
    if (in_block_arena(self->in, address, bytes, spot, where) || in_region(address, bytes, access, spot, where))
        return;
    const uint8_t *arguments = at_simt_machine.arguments, *threads = (const uint8_t *)self->in->threads;
    if (is_program(address) || (address >= arguments && address < arguments + at_simt_machine.arguments_bytes) ||
        (address >= threads && address < (const uint8_t *)(self->in->threads + self->in->n)))
        return;
    report_outside(address, bytes, access, where);
}

/* ---- order ---- */

static void report_race(const struct spot *spot, enum at_access access, const char *did, int64_t block, int thread,
                        const void *where) {
    static const char *const doing[] = { "reads", "writes", "adds atomically to" };
    const struct at_simt_thread *self = at_simt_thread();
    at_simt_report(AT_FINDING_RACE, at_source_place(where),
                   "block %lld: thread %d %s byte %lld of %s, which %s of block %lld %s without an order between them",
                   (long long)self->in->number, self->index, doing[access], (long long)spot->offset, spot->name,
                   thread < 0 ? "a thread" : "another thread", (long long)block, did);
}

static int knows(const struct at_simt_thread *self, int thread, uint32_t time) {
    return thread == self->index || self->known[thread] >= time;
}

static int recent(uint32_t time) { return time >= at_simt_machine.launch_began; }

static void check_write_before(const struct at_shadow_cell *c, const struct spot *spot, enum at_access access,
                               const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    if (!recent(c->write_time) || (access == AT_ACCESS_ATOMIC && c->write_atomic))
        return;
    if (spot->shared && c->write_block != (uint32_t)self->in->number)
        return; /* an earlier block's, in the same arena */
    if (c->write_block != (uint32_t)self->in->number || !knows(self, c->write_thread, c->write_time))
        report_race(spot, access, c->write_atomic ? "added to atomically" : "writes", c->write_block, c->write_thread,
                    where);
}

static int readers_known(const struct at_shadow_cell *c, const struct at_simt_thread *self) {
    if (self->in->all_since > c->read_time)
        return 1;
    for (int w = 0; w < AT_WARP; w++)
        for (int l = 0; (c->read_warps >> w & 1) && l < AT_WARP; l++) {
            const int t = w * AT_WARP + l;
            if ((c->read_lanes >> l & 1) && t < self->in->n && !knows(self, t, c->read_time))
                return 0;
        }
    return 1;
}

static void check_reads_before(const struct at_shadow_cell *c, const struct spot *spot, enum at_access access,
                               const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    if (!recent(c->read_time))
        return;
    if (spot->shared && c->read_block != (uint32_t)self->in->number)
        return;
    if (c->read_by_blocks || c->read_block != (uint32_t)self->in->number || !readers_known(c, self))
        report_race(spot, access, "reads", c->read_block, -1, where);
}

static void note_read(struct at_shadow_cell *c, const struct spot *spot) {
    const struct at_simt_thread *self = at_simt_thread();
    const uint32_t warp = 1u << (self->index / AT_WARP), lane = 1u << (self->index % AT_WARP);
    const uint32_t block = (uint32_t)self->in->number;
    const int fresh = !recent(c->read_time) || (spot->shared && c->read_block != block);
    if (!fresh && c->read_block != block)
        c->read_by_blocks = 1;
    if (fresh || (!c->read_by_blocks && readers_known(c, self))) { /* whoever comes after me comes after them */
        c->read_warps = c->read_lanes = 0;
        c->read_by_blocks = 0;
        c->read_time = 0;
    }
    c->read_block = block;
    c->read_warps |= warp;
    c->read_lanes |= lane;
    c->read_time = self->since > c->read_time ? self->since : c->read_time;
}

static void check_written(const struct at_shadow_cell *c, const struct spot *spot, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    const uint32_t began = spot->shared ? at_simt_machine.launch_began : at_simt_machine.job_began;
    if (c->write_time >= began && !(spot->shared && c->write_block != (uint32_t)self->in->number))
        return;
    at_simt_report(AT_FINDING_UNWRITTEN, at_source_place(where),
                   "block %lld: thread %d reads byte %lld of %s, which nobody wrote", (long long)self->in->number,
                   self->index, (long long)spot->offset, spot->name);
}

void at_shadow_access(const void *address, int bytes, enum at_access access, const void *where) {
    struct at_simt_thread *self = at_simt_thread();
    struct spot spot;
    if (!self)
        return; /* host code of the same file */
    find(address, bytes, access, &spot, where);
    if (!spot.cells)
        return;
    const int n = (int)((spot.offset % GRANULE + bytes + GRANULE - 1) / GRANULE);
    for (int i = 0; i < n; i++) {
        struct at_shadow_cell *c = &spot.cells[i];
        check_write_before(c, &spot, access, where);
        if (access != AT_ACCESS_WRITE && spot.unwritten)
            check_written(c, &spot, where);
        if (access == AT_ACCESS_READ) {
            note_read(c, &spot);
            continue;
        }
        check_reads_before(c, &spot, access, where);
        c->write_time = self->since;
        c->write_block = (uint32_t)self->in->number;
        c->write_thread = (uint16_t)self->index;
        c->write_atomic = access == AT_ACCESS_ATOMIC;
    }
}
