/* Bulk copies: by boxes of a tensor or plain bytes, loads that an mbarrier counts, stores in groups of a thread.
 * SPDX-License-Identifier: Apache-2.0
 *
 * They go through the async proxy: what ordinary stores wrote they see, or write over, past a proxy fence alone. A load
 * lands when a block has nothing else to do, or when the seed says so; what it wrote is ordered before whoever has
 * waited for the phase of its mbarrier, and whom those order. A store has read its source, and is over, when it is
 * waited for. */
#include "kernels/simt/bulk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/simt/clock.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/dependent.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"
#include "kernels/simt/mbarrier.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/simt_bulk.h"

enum { CHUNK = 16, TENSOR_ALIGN = 128 };

/* A copy in flight. Plain bytes are a tensor of one dimension, of elements of 16 bytes. */
struct bulk {
    struct at_simt_block *block;
    struct at_simt_thread *thread;
    struct at_mbarrier_state *mbarrier; /* NULL: a store */
    struct at_simt_tensor_map map;
    int32_t at[AT_SIMT_TENSOR_DIMS];
    uint8_t *shared;
    uint32_t group; /* of a store */
    int read;       /* a store that has read its source */
    struct at_simt_place place;
};
static struct bulk *copies; /* in order of issue */
static int n_copies, capacity;

void at_bulk_launch(void) { n_copies = 0; }

static struct bulk *new_copy(void) {
    if (n_copies == capacity) {
        capacity = capacity ? 2 * capacity : 256;
        copies = realloc(copies, (size_t)capacity * sizeof *copies);
        if (!copies) {
            fprintf(stderr, "attest-cpu: no memory for %d bulk copies in flight\n", capacity);
            exit(3);
        }
    }
    return &copies[n_copies++];
}

static void drop(struct bulk *c) {
    c->block->n_bulk--;
    memmove(c, c + 1, (size_t)(copies + --n_copies - c) * sizeof *c);
}

/* Takes const away: which side of a copy is written depends on its direction. */
static uint8_t *either_way(const void *at) {
    uint8_t *address;
    memcpy(&address, &at, sizeof address);
    return address;
}

/* ---- boxes ---- */

/* 16 bytes of a box: where they lie in shared memory, and what they are of the tensor. */
struct chunk {
    uint8_t *shared, *global;
    int from, to; /* the bytes that lie within the tensor */
};

static int64_t box_bytes(const struct at_simt_tensor_map *map) {
    int64_t bytes = map->element_bytes;
    for (int i = 0; i < map->rank; i++)
        bytes *= map->box[i];
    return bytes;
}

static struct chunk chunk_at(const struct bulk *c, int64_t number) {
    const struct at_simt_tensor_map *map = &c->map;
    const int64_t row_bytes = (int64_t)map->box[0] * map->element_bytes, byte = number * CHUNK % row_bytes;
    int64_t place = c->shared - c->block->arena + number * CHUNK, row = number * CHUNK / row_bytes;
    int64_t along = (int64_t)c->at[0] * map->element_bytes + byte; /* of dimension 0, in bytes */
    const int64_t end = map->size[0] * map->element_bytes;
    struct chunk chunk = { .from = 0, .to = CHUNK };
    if (map->swizzle)
        place ^= (place >> 7 & (map->swizzle / CHUNK - 1)) * CHUNK;
    chunk.shared = c->block->arena + place;
    if (along < 0)
        chunk.from = along <= -CHUNK ? CHUNK : (int)-along;
    if (along + CHUNK > end)
        chunk.to = along >= end ? 0 : (int)(end - along);
    for (int i = 1; i < map->rank; row /= map->box[i++]) {
        const int64_t x = c->at[i] + row % map->box[i];
        if (x < 0 || x >= map->size[i])
            chunk.to = 0;
        along += x * map->stride[i];
    }
    chunk.to = chunk.to < chunk.from ? chunk.from : chunk.to;
    chunk.global = chunk.to > chunk.from ? map->base + along : NULL;
    return chunk;
}

/* Calls the shadow for every part of a copy, as done by its thread. */
static void each_chunk(const struct bulk *c, void (*visit)(const struct bulk *c, const struct chunk *chunk)) {
    struct at_simt_self *running = at_simt_current;
    const int counting = at_counters_on;
    const int64_t n = box_bytes(&c->map) / CHUNK;
    at_counters_on = 0;
    at_simt_current = &c->thread->self;
    for (int64_t i = 0; i < n; i++) {
        const struct chunk chunk = chunk_at(c, i);
        visit(c, &chunk);
    }
    at_simt_current = running;
    at_counters_on = counting;
}

/* ---- loads ---- */

static int number_of(const struct bulk *c) { return (int)(c->mbarrier - c->block->mbarriers); }

static void issue_load(const struct bulk *c, const struct chunk *chunk) {
    if (chunk->to > chunk->from)
        at_shadow_access_at(chunk->global + chunk->from, chunk->to - chunk->from, AT_ACCESS_READ, NULL);
    at_shadow_bulk(chunk->shared, CHUNK, number_of(c), AT_ACCESS_BULK_WRITE);
}

static void land_load(const struct bulk *c, const struct chunk *chunk) {
    at_shadow_bulk(chunk->shared, CHUNK, number_of(c), AT_ACCESS_BULK_LANDING);
    memset(chunk->shared, 0, CHUNK);
    if (chunk->to > chunk->from)
        memcpy(chunk->shared + chunk->from, chunk->global + chunk->from, (size_t)(chunk->to - chunk->from));
}

int at_bulk_land_one(struct at_simt_block *block) {
    int loads = 0;
    for (int i = 0; i < n_copies; i++)
        loads += copies[i].block == block && copies[i].mbarrier;
    if (!loads)
        return 0;
    int which = (int)at_simt_random_below((uint32_t)loads);
    for (int i = 0; i < n_copies; i++) {
        struct bulk *c = &copies[i];
        if (c->block != block || !c->mbarrier || which-- > 0)
            continue;
        struct at_mbarrier_state *m = c->mbarrier;
        const int64_t bytes = box_bytes(&c->map);
        at_simt_machine.now++;
        each_chunk(c, land_load);
        drop(c);
        at_mbarrier_landed(block, m, bytes);
        return 1;
    }
    return 0;
}

static void check_shared(const struct at_simt_thread *self, const void *at, int align) {
    struct at_spot spot;
    if ((uintptr_t)at % (uintptr_t)align)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d copies in bulk %s shared memory that is no multiple of %d",
                       (long long)self->in->number, self->index, "to or from", align);
    at_memory_find(at, CHUNK, AT_ACCESS_READ, &spot, NULL);
    if (!spot.name || !spot.shared)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d copies in bulk to or from memory that is not shared",
                       (long long)self->in->number, self->index);
}

static void load(void *to, const struct at_simt_tensor_map *map, const int32_t *at, void *mbarrier, int align,
                 struct at_simt_place place, const void *site) {
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    if (!at_simt_machine.unchecked)
        check_shared(self, to, align);
    at_dependent_touch(self, map->base, NULL);
    struct at_mbarrier_state *m = at_mbarrier_use(self, mbarrier, site);
    if (!at_simt_machine.unchecked && !at_clock_fenced(self, m->init_thread, m->init_epoch))
        at_simt_report(
            AT_FINDING_RACE, place,
            "block %lld: thread %d copies in bulk by an mbarrier that thread %d initialises at %s:%d without "
            "a proxy fence between them",
            (long long)self->in->number, self->index, m->init_thread, m->init_place.file, m->init_place.line);
    m->copy_place = place;
    m->copy_thread = self->index;
    struct bulk *c = new_copy();
    *c = (struct bulk){ .block = self->in, .thread = self, .mbarrier = m, .map = *map, .shared = to, .place = place };
    memcpy(c->at, at, (size_t)map->rank * sizeof *at);
    self->in->n_bulk++;
    at_simt_machine.now++;
    each_chunk(c, issue_load);
}

void at_simt_tensor_load(void *to, const struct at_simt_tensor_map *map, const int32_t *at, void *mbarrier,
                         struct at_simt_place place) {
    load(to, map, at, mbarrier, TENSOR_ALIGN, place, __builtin_return_address(0));
}

/* Plain bytes from or to an address, as a tensor. */
static struct at_simt_tensor_map plain(const void *global, int bytes) {
    const struct at_simt_thread *self = at_simt_thread();
    if (bytes <= 0 || bytes % CHUNK || (uintptr_t)global % CHUNK)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d copies %d bytes in bulk from or to byte %d after a multiple of 16; both "
                       "must be multiples",
                       (long long)self->in->number, self->index, bytes, (int)((uintptr_t)global % CHUNK));
    return (struct at_simt_tensor_map){ .base = either_way(global),
                                        .rank = 1,
                                        .element_bytes = CHUNK,
                                        .size = { bytes / CHUNK },
                                        .box = { bytes / CHUNK } };
}

static const int32_t origin[AT_SIMT_TENSOR_DIMS];

void at_simt_bulk_load(void *to, const void *from, int bytes, void *mbarrier, struct at_simt_place place) {
    at_simt_thread()->place = place;
    const struct at_simt_tensor_map map = plain(from, bytes);
    load(to, &map, origin, mbarrier, CHUNK, place, __builtin_return_address(0));
}

/* ---- stores ---- */

static void issue_store(const struct bulk *c, const struct chunk *chunk) {
    (void)c;
    at_shadow_access_at(chunk->shared, CHUNK, AT_ACCESS_BULK_READ, NULL);
    if (chunk->to > chunk->from)
        at_shadow_access_at(chunk->global + chunk->from, chunk->to - chunk->from, AT_ACCESS_COPY, NULL);
}

static void read_source(const struct bulk *c, const struct chunk *chunk) {
    (void)c;
    at_shadow_multiplied(chunk->shared, CHUNK);
    if (chunk->to > chunk->from)
        memcpy(chunk->global + chunk->from, chunk->shared + chunk->from, (size_t)(chunk->to - chunk->from));
}

static void land_store(const struct bulk *c, const struct chunk *chunk) {
    (void)c;
    if (chunk->to > chunk->from)
        at_shadow_access_at(chunk->global + chunk->from, chunk->to - chunk->from, AT_ACCESS_LANDING, NULL);
}

static void store(const struct at_simt_tensor_map *map, const int32_t *at, const void *from, int align,
                  struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    if (!at_simt_machine.unchecked)
        check_shared(self, from, align);
    at_dependent_touch(self, map->base, NULL);
    struct bulk *c = new_copy();
    *c = (struct bulk){ .block = self->in,
                        .thread = self,
                        .map = *map,
                        .shared = either_way(from),
                        .group = self->bulk_group,
                        .place = place };
    memcpy(c->at, at, (size_t)map->rank * sizeof *at);
    self->in->n_bulk++;
    each_chunk(c, issue_store);
}

void at_simt_tensor_store(const struct at_simt_tensor_map *map, const int32_t *at, const void *from,
                          struct at_simt_place place) {
    store(map, at, from, TENSOR_ALIGN, place);
}

void at_simt_bulk_store(void *to, const void *from, int bytes, struct at_simt_place place) {
    at_simt_thread()->place = place;
    const struct at_simt_tensor_map map = plain(to, bytes);
    store(&map, origin, from, CHUNK, place);
}

void at_simt_bulk_commit(struct at_simt_place place) {
    if (!at_simt_leaves_out(place))
        at_simt_thread()->bulk_group++;
}

/* Ends a thread's stores of groups before `group`; those of which only the source counts stay in flight. */
static void finish_stores(const struct at_simt_thread *thread, int64_t group, int only_read) {
    for (int i = 0; i < n_copies;) {
        struct bulk *c = &copies[i];
        if (c->thread != thread || c->mbarrier || (int64_t)c->group >= group) {
            i++;
            continue;
        }
        if (!c->read)
            each_chunk(c, read_source);
        c->read = 1;
        if (only_read) {
            i++;
            continue;
        }
        each_chunk(c, land_store);
        drop(c);
    }
}

void at_simt_bulk_wait(int but, int only_read, struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    finish_stores(self, (int64_t)self->bulk_group - but, only_read);
}

/* ---- the end ---- */

static void check_waited_for(const struct at_simt_block *block, const struct at_mbarrier_state *m) {
    int ordered = !m->landed;
    for (int t = 0; t < block->n && !ordered; t++)
        ordered = at_happens_before(&block->threads[t], AT_BLOCK_MAX + (int)(m - block->mbarriers), m->landed);
    if (!ordered)
        at_simt_report(AT_FINDING_RACE, m->copy_place,
                       "block %lld ends, and nobody has waited for the bulk copy of thread %d here, at the mbarrier of "
                       "%s:%d",
                       (long long)block->number, m->copy_thread, m->init_place.file, m->init_place.line);
}

void at_bulk_left(const struct at_simt_thread *thread) {
    const struct at_simt_block *block = thread->in;
    for (int i = 0; i < n_copies; i++) {
        const struct bulk *c = &copies[i];
        if (c->thread == thread && !c->mbarrier && !c->read)
            at_simt_report(AT_FINDING_RACE, c->place,
                           "block %lld: thread %d leaves the kernel before its bulk store has read its source",
                           (long long)block->number, thread->index);
        if (c->block == block && c->mbarrier && block->n_left == block->n)
            at_simt_report(AT_FINDING_RACE, c->place,
                           "block %lld ends while the bulk copy of thread %d, to its shared memory, is in flight",
                           (long long)block->number, c->thread->index);
    }
    finish_stores(thread, INT64_MAX, 0); /* the end of the launch waits for them */
    for (int i = 0; i < block->n_mbarriers && block->n_left == block->n && !at_simt_machine.unchecked; i++)
        check_waited_for(block, &block->mbarriers[i]);
}
