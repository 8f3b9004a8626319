/* What wgmma takes as registers: the variables of a warp, which lanes touched them, and the sums on their way.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/wgmma_registers.h"

#include <string.h>

#include "kernels/simt/finding.h"

enum { VARIABLES_MAX = 64 };

struct at_wgmma_registers {
    int fenced; /* since the warp's last wait */
    int n;
    struct at_wgmma_variable variables[VARIABLES_MAX];
    const uint8_t *low[AT_WARP], *high[AT_WARP]; /* by lane: no variable of the block so far lies below or beyond */
    int apart, last;                             /* no lane has two that overlap; the one that was touched last */
};

void at_wgmma_registers_begin(struct at_simt_block *block) {
    block->registers_watched = 0;
    for (int w = 0; block->wgmma_registers && w < AT_WARPS_MAX; w++) {
        struct at_wgmma_registers *all = &block->wgmma_registers[w];
        all->fenced = all->n = all->last = all->apart = 0;
        memset(all->low, 0, sizeof all->low);
        memset(all->high, 0, sizeof all->high);
    }
}

static struct at_wgmma_registers *registers_of(const struct at_simt_thread *thread) {
    struct at_simt_block *block = thread->in;
    if (!block->wgmma_registers)
        block->wgmma_registers = at_simt_allocate(AT_WARPS_MAX, sizeof *block->wgmma_registers, "registers of wgmma");
    return &block->wgmma_registers[thread->index / AT_WARP];
}

static inline int is_within(const struct at_wgmma_variable *r, int lane, const uint8_t *first, const uint8_t *past) {
    return first >= (const uint8_t *)r->at[lane] && past <= (const uint8_t *)(r->at[lane] + r->words);
}

void at_wgmma_registers_touch(const struct at_simt_thread *thread, const void *address, int bytes, const void *where) {
    struct at_wgmma_registers *all = &thread->in->wgmma_registers[thread->index / AT_WARP];
    const int lane = thread->index % AT_WARP;
    const uint8_t *first = address, *past = first + bytes;
    if (past <= all->low[lane] || first >= all->high[lane])
        return;
    if (all->apart && all->last < all->n && !all->variables[all->last].pending &&
        is_within(&all->variables[all->last], lane, first, past)) {
        all->variables[all->last].touched |= 1u << lane;
        return;
    }
    for (int i = 0; i < all->n; i++) {
        struct at_wgmma_variable *r = &all->variables[i];
        if (first >= (const uint8_t *)(r->at[lane] + r->words) || past <= (const uint8_t *)r->at[lane])
            continue;
        all->last = i;
        if (r->pending)
            at_simt_report_at(AT_FINDING_RACE, where,
                              "block %lld: thread %d touches sums of the wgmma at %s:%d, which has not been waited for",
                              (long long)thread->in->number, thread->index, r->place.file, r->place.line);
        r->touched |= 1u << lane;
    }
}

static void widen_bounds(struct at_wgmma_registers *all, const struct at_wgmma_variable *r) {
    for (int lane = 0; lane < AT_WARP; lane++) {
        const uint8_t *low = (const uint8_t *)r->at[lane], *high = (const uint8_t *)(r->at[lane] + r->words);
        all->low[lane] = all->low[lane] && all->low[lane] < low ? all->low[lane] : low;
        all->high[lane] = all->high[lane] > high ? all->high[lane] : high;
    }
}

static int are_apart(const struct at_wgmma_registers *all) {
    for (int i = 1; i < all->n; i++)
        for (int k = 0; k < i; k++)
            for (int lane = 0; lane < AT_WARP; lane++) {
                const struct at_wgmma_variable *a = &all->variables[i], *b = &all->variables[k];
                if (a->at[lane] < b->at[lane] + b->words && b->at[lane] < a->at[lane] + a->words)
                    return 0;
            }
    return 1;
}

/* Variables whose places on the stack another one has taken. */
static void forget_overlapping(struct at_wgmma_registers *all, const uint32_t *at, int words) {
    for (int i = 0; i < all->n; i++) {
        struct at_wgmma_variable *r = &all->variables[i];
        if (r->pending || r->at[0] >= at + words || at >= r->at[0] + r->words)
            continue;
        uint32_t(*sums)[AT_WGMMA_WORDS_MAX] = r->sums;
        *r = all->variables[--all->n];
        all->variables[all->n].sums = sums; /* kept for the next */
        i--;
    }
}

/* From here on the block's threads reach no private memory unseen. */
static void watch(struct at_simt_block *block) {
    for (int i = 0; !block->registers_watched && i < block->n; i++)
        block->threads[i].unwatched = 0;
    block->registers_watched = 1;
}

struct at_wgmma_variable *at_wgmma_registers_take(struct at_simt_thread *const *members, uint32_t *const *at, int words,
                                                  const char *what) {
    const struct at_simt_thread *self = members[0];
    struct at_wgmma_registers *all = registers_of(self);
    struct at_wgmma_variable *r = NULL;
    for (int i = 0; i < all->n && !r; i++)
        if (all->variables[i].at[0] == at[0] && all->variables[i].words == words)
            r = &all->variables[i];
    if (r ? r->touched != 0 : !all->fenced)
        at_simt_report(
            AT_FINDING_RACE, self->place,
            "block %lld: thread %d and its warp multiply with %s that were touched since the last wgmma fence",
            (long long)self->in->number, self->index, what);
    if (r)
        return r;
    forget_overlapping(all, at[0], words);
    if (all->n == VARIABLES_MAX)
        at_simt_report(AT_FINDING_BOUNDS, self->place, "more than %d variables as registers of wgmma",
                       (int)VARIABLES_MAX);
    watch(self->in);
    r = &all->variables[all->n++];
    *r = (struct at_wgmma_variable){ .words = words, .sums = r->sums };
    memcpy(r->at, at, sizeof r->at);
    widen_bounds(all, r);
    all->apart = are_apart(all);
    return r;
}

void at_wgmma_registers_fence(const struct at_simt_thread *any) {
    struct at_wgmma_registers *all = registers_of(any);
    all->fenced = 1;
    for (int i = 0; i < all->n; i++)
        all->variables[i].touched = 0;
}

void at_wgmma_registers_arrive(const struct at_simt_thread *any, uint32_t group) {
    struct at_wgmma_registers *all = registers_of(any);
    for (int i = 0; i < all->n; i++) {
        struct at_wgmma_variable *r = &all->variables[i];
        if (!r->pending || r->group >= group)
            continue;
        for (int lane = 0; lane < AT_WARP; lane++)
            memcpy(r->at[lane], r->sums[lane], (size_t)r->words * sizeof *r->at[lane]);
        r->pending = 0;
    }
}

void at_wgmma_registers_waited(const struct at_simt_thread *any) { registers_of(any)->fenced = 0; }
