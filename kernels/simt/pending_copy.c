/* Copies in flight: a list for each thread, in the order it made them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/pending_copy.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/simt/finding.h"

/* Copies by number; 0 is none. */
static struct at_pending_copy *copies;
static uint32_t n_copies = 1, capacity, freed;
int at_copies_from_writable;

void at_pending_copy_launch(void) {
    n_copies = 1;
    freed = 0;
    at_copies_from_writable = 0;
}

static uint32_t new_number(void) {
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

void at_pending_copy_add(struct at_simt_thread *thread, const struct at_pending_copy *copy) {
    const uint32_t number = new_number();
    copies[number] = *copy;
    copies[number].next = 0;
    at_copies_from_writable += copy->from_writable;
    if (thread->first_copy)
        copies[thread->last_copy].next = number;
    else
        thread->first_copy = number;
    thread->last_copy = number;
}

const struct at_pending_copy *at_pending_copy_first(const struct at_simt_thread *thread) {
    return thread->first_copy ? &copies[thread->first_copy] : NULL;
}

void at_pending_copy_drop(struct at_simt_thread *thread) {
    const uint32_t number = thread->first_copy;
    at_copies_from_writable -= copies[number].from_writable;
    thread->first_copy = copies[number].next;
    copies[number].next = freed;
    freed = number;
}

void at_pending_copy_forget(struct at_simt_block *block) {
    for (int i = 0; i < block->n; i++)
        while (block->threads[i].first_copy)
            at_pending_copy_drop(&block->threads[i]);
}

const struct at_pending_copy *at_pending_copy_to(const struct at_simt_block *block, const void *address) {
    for (int i = 0; i < block->n; i++)
        for (uint32_t k = block->threads[i].first_copy; k; k = copies[k].next)
            if ((const uint8_t *)address >= copies[k].to && (const uint8_t *)address < copies[k].to + copies[k].bytes)
                return &copies[k];
    return NULL;
}

void at_pending_copy_source_written(const void *address, int bytes, const void *where) {
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
