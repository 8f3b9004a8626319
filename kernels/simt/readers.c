/* Who has read a cell since it was last written: exact sets, small while all read in the same epoch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Threads read in turn, warp by warp, mostly the same lanes of each: such a set is a product of warps and lanes and a
 * remainder in the last warp. Any other set, and readers of different epochs, take a vector of epochs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/simt/readers.h"

/* Vectors of the launch: number i begins at i * threads; number 0 is not used. Freed ones form a list by [0]. */
static struct {
    uint32_t *epochs, n, freed;
    size_t capacity; /* in epochs */
} pool;

static int threads(void) { return (int)(at_simt_machine.block.x * at_simt_machine.block.y * at_simt_machine.block.z); }

static uint32_t *vector(uint32_t number) { return pool.epochs + (size_t)number * (size_t)threads(); }

void at_readers_launch(void) {
    pool.n = 1;
    pool.freed = 0;
}

static uint32_t new_vector(void) {
    const uint32_t number = pool.freed ? pool.freed : pool.n;
    if (pool.freed) {
        pool.freed = *vector(number);
    } else {
        const size_t wanted = ((size_t)number + 1) * (size_t)threads();
        if (wanted > pool.capacity) {
            pool.capacity = 2 * wanted;
            pool.epochs = realloc(pool.epochs, pool.capacity * sizeof *pool.epochs);
        }
        if (!pool.epochs) {
            fprintf(stderr, "attest-cpu: no memory for %u sets of readers\n", number);
            exit(3);
        }
        pool.n++;
    }
    memset(vector(number), 0, (size_t)threads() * sizeof *pool.epochs);
    return number;
}

/* The thread of a set that is not ordered before self; -1: none. */
static int unordered_of(const struct at_simt_thread *self, uint32_t warps, uint32_t lanes, uint32_t epoch) {
    for (uint32_t w = warps; w; w &= w - 1)
        for (uint32_t l = lanes; l; l &= l - 1) {
            const int thread = __builtin_ctz(w) * AT_WARP + __builtin_ctz(l);
            if (!at_happens_before(self, thread, epoch))
                return thread;
        }
    return -1;
}

int at_readers_recent_unordered(const struct at_shadow_cell *cell, const struct at_simt_thread *self) {
    if (cell->readers) {
        const uint32_t *epochs = vector(cell->readers);
        for (int t = 0; t < self->in->n; t++)
            if (epochs[t] && !at_happens_before(self, t, epochs[t]))
                return t;
        return -1;
    }
    const int thread = unordered_of(self, cell->whole_warps, cell->whole_lanes, cell->read_epoch);
    return thread >= 0 ? thread : unordered_of(self, 1u << cell->last_warp, cell->last_lanes, cell->read_epoch);
}

void at_readers_clear(struct at_shadow_cell *cell) {
    if (cell->readers) {
        *vector(cell->readers) = pool.freed;
        pool.freed = cell->readers;
    }
    cell->readers = cell->whole_warps = cell->whole_lanes = cell->last_lanes = cell->read_epoch = 0;
}

static void set_epochs(uint32_t *epochs, uint32_t warps, uint32_t lanes, uint32_t epoch) {
    for (uint32_t w = warps; w; w &= w - 1)
        for (uint32_t l = lanes; l; l &= l - 1)
            epochs[__builtin_ctz(w) * AT_WARP + __builtin_ctz(l)] = epoch;
}

static void become_vector(struct at_shadow_cell *cell) {
    const uint32_t number = new_vector();
    set_epochs(vector(number), cell->whole_warps, cell->whole_lanes, cell->read_epoch);
    set_epochs(vector(number), 1u << cell->last_warp, cell->last_lanes, cell->read_epoch);
    cell->readers = number;
}

void at_readers_copied(struct at_shadow_cell *cell) {
    if (!cell->readers)
        return;
    const uint32_t number = new_vector();
    memcpy(vector(number), vector(cell->readers), (size_t)threads() * sizeof *pool.epochs);
    cell->readers = number;
}

/* Adds to a product of warps and lanes; 0 when the set would be none. */
static int fits(struct at_shadow_cell *cell, uint8_t warp, uint32_t lane) {
    if (cell->last_lanes == 0 || cell->last_warp == warp) {
        cell->last_warp = warp;
        cell->last_lanes |= lane;
        return 1;
    }
    if (cell->whole_warps >> warp & 1)
        return (cell->whole_lanes & lane) != 0;
    if (cell->whole_warps && cell->last_lanes != cell->whole_lanes)
        return 0;
    cell->whole_warps |= 1u << cell->last_warp;
    cell->whole_lanes = cell->last_lanes;
    cell->last_warp = warp;
    cell->last_lanes = lane;
    return 1;
}

/* Whether all reads are ordered before what self does now. The last reader usually is not, so it is tested first. */
static int all_ordered(const struct at_shadow_cell *cell, const struct at_simt_thread *self) {
    if (cell->read_epoch >= self->in->epoch && cell->last_lanes) {
        const int last = cell->last_warp * AT_WARP + __builtin_ctz(cell->last_lanes);
        if (!at_happens_before(self, last, cell->readers ? vector(cell->readers)[last] : cell->read_epoch))
            return 0;
    }
    return at_readers_unordered(cell, self) < 0;
}

void at_readers_add(struct at_shadow_cell *cell, const struct at_simt_thread *self) {
    const uint8_t warp = (uint8_t)(self->index / AT_WARP);
    const uint32_t lane = 1u << (self->index % AT_WARP);
    /* Readers of one epoch are not ordered among themselves; of others, a reader stands for all it comes after. */
    if (cell->read_epoch != self->epoch && all_ordered(cell, self))
        at_readers_clear(cell);
    if (!cell->readers && (cell->read_epoch == 0 || cell->read_epoch == self->epoch) && fits(cell, warp, lane)) {
        cell->read_epoch = self->epoch;
        return;
    }
    if (!cell->readers)
        become_vector(cell);
    vector(cell->readers)[self->index] = self->epoch;
    cell->last_warp = warp;
    cell->last_lanes = lane;
    cell->read_epoch = self->epoch > cell->read_epoch ? self->epoch : cell->read_epoch;
}
