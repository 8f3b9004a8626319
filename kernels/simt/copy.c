/* Copies from global to shared memory that a thread starts and waits for later.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A copy lands as late as the rules allow: at the wait that demands it. Until then its destination is in flight, for
 * its own thread too, and nobody may write its source. */
#include "kernels/simt/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/simt/shadow.h"

/* Copies by number; 0 is none. A thread's are a list in the order it made them. */
static struct at_pending_copy *copies;
static uint32_t n_copies = 1, capacity, freed;
int at_copies_from_writable;

void at_copy_launch(void) {
    n_copies = 1;
    freed = 0;
    at_copies_from_writable = 0;
}

static uint32_t new_copy(void) {
    const uint32_t number = freed ? freed : n_copies++;
    if (freed)
        freed = copies[freed].next;
    if (number >= capacity) {
        capacity = capacity ? 2 * capacity : 1024;
        copies = realloc(copies, capacity * sizeof *copies);
        if (!copies) {
            fprintf(stderr, "attest-cpu: no memory for %u copies in flight\n", number);
            exit(3);
        }
    }
    return number;
}

/* Takes the first of a thread's list. */
static void drop_first(struct at_simt_thread *thread) {
    const uint32_t number = thread->first_copy;
    at_copies_from_writable -= copies[number].from_writable;
    thread->first_copy = copies[number].next;
    copies[number].next = freed;
    freed = number;
}

void at_copy_forget(struct at_simt_block *block) {
    for (int i = 0; i < block->n; i++)
        while (block->threads[i].first_copy)
            drop_first(&block->threads[i]);
}

/* Bounds and alignment of both ends; whether kernels may write the source. */
static int check_ends(const void *to, const void *from, int bytes) {
    const struct at_simt_thread *self = at_simt_thread();
    struct at_spot source, target;
    if ((uintptr_t)to % (uintptr_t)bytes || (uintptr_t)from % (uintptr_t)bytes)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d copies %d bytes %s an address that is no multiple of %d",
                       (long long)self->in->number, self->index, bytes,
                       (uintptr_t)to % (uintptr_t)bytes ? "to" : "from", bytes);
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
    const uint32_t number = new_copy();
    copies[number] = (struct at_pending_copy){ .to = to,
                                               .from = from,
                                               .bytes = bytes,
                                               .place = place,
                                               .group = self->copy_group,
                                               .from_writable = from_writable };
    at_copies_from_writable += from_writable;
    if (self->first_copy)
        copies[self->last_copy].next = number;
    else
        self->first_copy = number;
    self->last_copy = number;
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
    while (self->first_copy) {
        const struct at_pending_copy *c = &copies[self->first_copy];
        if ((int64_t)c->group + but >= (int64_t)self->copy_group)
            break; /* not committed yet, or of the last groups */
        at_shadow_landed(c->to, c->from, c->bytes);
        memcpy(c->to, c->from, (size_t)c->bytes);
        drop_first(self);
    }
}

const struct at_pending_copy *at_copy_to(const struct at_simt_block *block, const void *address) {
    for (int i = 0; i < block->n; i++)
        for (uint32_t k = block->threads[i].first_copy; k; k = copies[k].next)
            if ((const uint8_t *)address >= copies[k].to && (const uint8_t *)address < copies[k].to + copies[k].bytes)
                return &copies[k];
    return NULL;
}

void at_copy_source_written(const void *address, int bytes, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    const uint8_t *first = address, *past = first + bytes;
    for (int i = 0; i < self->in->n; i++)
        for (uint32_t k = self->in->threads[i].first_copy; k; k = copies[k].next) {
            const struct at_pending_copy *c = &copies[k];
            if (first < c->from + c->bytes && c->from < past)
                at_simt_report_at(AT_FINDING_RACE, where,
                                  "block %lld: thread %d writes what thread %d copies at %s:%d and has not waited for",
                                  (long long)self->in->number, self->index, i, c->place.file, c->place.line);
        }
}
