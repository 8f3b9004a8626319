/* Who has read a cell since it was last written: exact sets, small while all read in the same epoch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Threads read in turn, warp by warp, mostly the same lanes of each: such a set is a product of warps and lanes and a
 * remainder in the last warp. Others, and readers of different epochs, are groups of lanes of a warp with an epoch: what
 * the tensor core reads, it reads for one lane of each warp. More groups than a few take a vector of epochs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/clones.h"
#include "kernels/simt/readers.h"

/* Vectors of the launch: number i begins at i * threads; number 0 is not used. Freed ones form a list by [0]. What stands
 * in the part of a warp counts once the warp is among the cell's whole_warps. */
static struct {
    uint32_t *epochs, n, freed;
    size_t capacity; /* in epochs */
} pool;

/* Groups of readers, no thread in two of them, in no order. */
enum { GROUPS_MAX = 12 };
static const uint32_t IS_GROUPS = 0x80000000u; /* in the number of a cell's readers */
struct groups {
    uint32_t epoch[GROUPS_MAX], lanes[GROUPS_MAX];
    uint8_t warp[GROUPS_MAX], n;
};
/* Those of the launch; number 0 is not used. Freed ones form a list by epoch[0]. */
static struct {
    struct groups *all;
    uint32_t n, freed;
    size_t capacity;
} few;

static int threads(void) { return (int)(at_simt_machine.block.x * at_simt_machine.block.y * at_simt_machine.block.z); }

static uint32_t *vector(uint32_t number) { return pool.epochs + (size_t)number * (size_t)threads(); }

static struct groups *groups_of(const struct at_shadow_cell *cell) { return &few.all[cell->readers & ~IS_GROUPS]; }

void at_readers_launch(void) {
    pool.n = few.n = 1;
    pool.freed = few.freed = 0;
}

static uint32_t new_groups(void) {
    const uint32_t number = few.freed ? few.freed : few.n;
    if (few.freed) {
        few.freed = few.all[number].epoch[0];
    } else {
        if (number >= few.capacity) {
            few.capacity = few.capacity ? 2 * few.capacity : 4096;
            few.all = realloc(few.all, few.capacity * sizeof *few.all);
        }
        if (!few.all) {
            fprintf(stderr, "attest-cpu: no memory for %u sets of readers\n", number);
            exit(3);
        }
        few.n++;
    }
    few.all[number].n = 0;
    return number | IS_GROUPS;
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
    return number;
}

/* Whether an epoch of n threads, from `since` on, is beyond what a clock has of it. */
static inline __attribute__((always_inline)) int any_beyond(const uint32_t *epochs, const uint32_t *clock, int n,
                                                            uint32_t since) {
    uint32_t any = 0;
    for (int i = 0; i < n; i++)
        any |= (uint32_t)(epochs[i] > clock[i]) & (uint32_t)(epochs[i] >= since);
    return any != 0;
}

AT_CLONES static int any_of_warp_beyond(const uint32_t *epochs, const uint32_t *clock, int n, uint32_t since) {
    return n == AT_WARP ? any_beyond(epochs, clock, AT_WARP, since) : any_beyond(epochs, clock, n, since);
}

/* Threads of a warp: all but the last has AT_WARP. */
static int in_warp(int warp) {
    const int left = threads() - warp * AT_WARP;
    return left < AT_WARP ? left : AT_WARP;
}

/* The thread of a vector that is not ordered before self; -1: none. What self's own element of the clock is means nothing,
 * so that its warp may have to be looked at thread by thread. */
static int unordered_of_vector(const struct at_simt_thread *self, const struct at_shadow_cell *cell) {
    const uint32_t *epochs = vector(cell->readers);
    for (uint32_t w = cell->whole_warps; w; w &= w - 1) {
        const int first = __builtin_ctz(w) * AT_WARP, past = first + in_warp(__builtin_ctz(w));
        if (!any_of_warp_beyond(epochs + first, self->clock + first, past - first, self->in->epoch))
            continue;
        for (int t = first; t < past; t++)
            if (epochs[t] && !at_happens_before(self, t, epochs[t]))
                return t;
    }
    return -1;
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

/* The first thread of these groups that is not ordered before self; -1: none. */
static int unordered_of_groups(const struct at_simt_thread *self, const struct groups *g) {
    int first = -1;
    for (int i = 0; i < g->n; i++) {
        const int thread =
            g->epoch[i] < self->in->epoch ? -1 : unordered_of(self, 1u << g->warp[i], g->lanes[i], g->epoch[i]);
        first = thread >= 0 && (first < 0 || thread < first) ? thread : first;
    }
    return first;
}

int at_readers_recent_unordered(const struct at_shadow_cell *cell, const struct at_simt_thread *self) {
    if (cell->readers & IS_GROUPS)
        return unordered_of_groups(self, groups_of(cell));
    if (cell->readers)
        return unordered_of_vector(self, cell);
    const int thread = unordered_of(self, cell->whole_warps, cell->whole_lanes, cell->read_epoch);
    return thread >= 0 ? thread : unordered_of(self, 1u << cell->last_warp, cell->last_lanes, cell->read_epoch);
}

void at_readers_clear(struct at_shadow_cell *cell) {
    if (cell->readers & IS_GROUPS) {
        groups_of(cell)->epoch[0] = few.freed;
        few.freed = cell->readers & ~IS_GROUPS;
    } else if (cell->readers) {
        *vector(cell->readers) = pool.freed;
        pool.freed = cell->readers;
    }
    cell->readers = cell->whole_warps = cell->whole_lanes = cell->last_lanes = cell->read_epoch = 0;
}

/* Makes the part of a warp count, with nobody in it, unless it does. */
static void open_warp(struct at_shadow_cell *cell, uint8_t warp) {
    if (!(cell->whole_warps >> warp & 1))
        memset(vector(cell->readers) + warp * AT_WARP, 0, (size_t)in_warp(warp) * sizeof *pool.epochs);
    cell->whole_warps |= 1u << warp;
}

static void set_epochs(uint32_t *epochs, uint32_t warps, uint32_t lanes, uint32_t epoch) {
    for (uint32_t w = warps; w; w &= w - 1)
        for (uint32_t l = lanes; l; l &= l - 1)
            epochs[__builtin_ctz(w) * AT_WARP + __builtin_ctz(l)] = epoch;
}

/* A product of more warps than there may be groups. */
static void product_to_vector(struct at_shadow_cell *cell) {
    const uint32_t warps = cell->whole_warps;
    cell->readers = new_vector();
    cell->whole_warps = 0;
    for (uint32_t w = warps | 1u << cell->last_warp; w; w &= w - 1)
        open_warp(cell, (uint8_t)__builtin_ctz(w));
    set_epochs(vector(cell->readers), warps, cell->whole_lanes, cell->read_epoch);
    set_epochs(vector(cell->readers), 1u << cell->last_warp, cell->last_lanes, cell->read_epoch);
}

static void add_group(struct groups *g, int warp, uint32_t lanes, uint32_t epoch) {
    g->warp[g->n] = (uint8_t)warp;
    g->lanes[g->n] = lanes;
    g->epoch[g->n++] = epoch;
}

/* A product, as groups where there are not too many of them. */
static void leave_product(struct at_shadow_cell *cell) {
    const int n = __builtin_popcount(cell->whole_warps) + (cell->last_lanes != 0);
    if (n > GROUPS_MAX) {
        product_to_vector(cell);
        return;
    }
    cell->readers = new_groups();
    for (uint32_t w = cell->whole_warps; w; w &= w - 1)
        add_group(groups_of(cell), __builtin_ctz(w), cell->whole_lanes, cell->read_epoch);
    if (cell->last_lanes)
        add_group(groups_of(cell), cell->last_warp, cell->last_lanes, cell->read_epoch);
}

static void groups_to_vector(struct at_shadow_cell *cell) {
    struct at_shadow_cell before = *cell;
    cell->readers = new_vector();
    cell->whole_warps = 0;
    const struct groups *g = groups_of(&before);
    for (int i = 0; i < g->n; i++) {
        open_warp(cell, g->warp[i]);
        set_epochs(vector(cell->readers), 1u << g->warp[i], g->lanes[i], g->epoch[i]);
    }
    at_readers_clear(&before);
}

/* Adds a lane to groups, which leaves the one that it was in; 0 when there would be too many. */
static int add_to_groups(struct groups *g, uint8_t warp, uint32_t lane, uint32_t epoch) {
    int its = -1;
    for (int i = 0; i < g->n; i++) {
        if (g->warp[i] != warp)
            continue;
        if (g->epoch[i] == epoch) {
            g->lanes[i] |= lane;
            its = i;
        } else if ((g->lanes[i] &= ~lane) == 0) {
            g->n--;
            g->warp[i] = g->warp[g->n];
            g->lanes[i] = g->lanes[g->n];
            g->epoch[i] = g->epoch[g->n];
            i--;
        }
    }
    if (its >= 0)
        return 1;
    if (g->n == GROUPS_MAX)
        return 0;
    add_group(g, warp, lane, epoch);
    return 1;
}

/* The epoch of the lane that read last. */
static uint32_t last_epoch(const struct at_shadow_cell *cell, int thread) {
    if (!cell->readers)
        return cell->read_epoch;
    if (!(cell->readers & IS_GROUPS))
        return vector(cell->readers)[thread];
    const struct groups *g = groups_of(cell);
    for (int i = 0; i < g->n; i++)
        if (g->warp[i] == cell->last_warp && (g->lanes[i] & 1u << thread % AT_WARP))
            return g->epoch[i];
    return 0;
}

void at_readers_copied(struct at_shadow_cell *cell) {
    if (!cell->readers)
        return;
    if (cell->readers & IS_GROUPS) {
        const uint32_t copy = new_groups();
        few.all[copy & ~IS_GROUPS] = *groups_of(cell);
        cell->readers = copy;
        return;
    }
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
        if (!at_happens_before(self, last, last_epoch(cell, last)))
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
        leave_product(cell);
    if ((cell->readers & IS_GROUPS) && !add_to_groups(groups_of(cell), warp, lane, self->epoch))
        groups_to_vector(cell);
    if (!(cell->readers & IS_GROUPS)) {
        open_warp(cell, warp);
        vector(cell->readers)[self->index] = self->epoch;
    }
    cell->last_warp = warp;
    cell->last_lanes = lane;
    cell->read_epoch = self->epoch > cell->read_epoch ? self->epoch : cell->read_epoch;
}
