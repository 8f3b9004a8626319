/* Clusters: a barrier over several blocks, and who may reach whose shared memory when.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block of a cluster begins and ends when it likes: what a barrier of the cluster does not show to have begun, or not
 * to have ended yet, may not be reached. Barriers order accesses between blocks: writes exactly, by the epoch in
 * which each thread arrived; reads by the time the barrier opened, so that of reads between arriving and waiting some
 * races are not seen. Each thread waits for itself. */
#include "kernels/simt/cluster.h"

#include <stdio.h>
#include <string.h>

#include "kernels/simt/clock.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"
#include "kernels/simt/simt_cluster.h"

/* One for the resident blocks from a multiple of the cluster's size on. */
static struct cluster {
    uint32_t phase, opened; /* opened: when the last barrier did */
    int alive, pending;     /* threads that have not left; of those, how many have not arrived */
    uint32_t *next[AT_SIMT_CLUSTER_MAX],
        *done[AT_SIMT_CLUSTER_MAX]; /* clocks of the arrivals, by rank: of the present phase, of the last */
} clusters[AT_RESIDENT_MAX];

static int slot_of(const struct at_simt_block *block) { return (int)(block - at_simt_machine.resident); }
static int rank_of(const struct at_simt_block *block) { return slot_of(block) % at_simt_machine.cluster; }
static struct cluster *cluster_of(const struct at_simt_block *block) {
    return &clusters[slot_of(block) / at_simt_machine.cluster];
}
static struct at_simt_block *block_of(const struct at_simt_block *block, int rank) {
    return &at_simt_machine.resident[slot_of(block) - rank_of(block) + rank];
}

void at_cluster_begin(const struct at_simt_block *first) {
    struct cluster *c = cluster_of(first);
    const size_t bytes = AT_CLOCK_WIDTH_MAX * sizeof(uint32_t);
    for (int r = 0; r < at_simt_machine.cluster; r++) {
        if (!c->next[r])
            c->next[r] = at_clock_create();
        if (!c->done[r])
            c->done[r] = at_clock_create();
        memset(c->next[r], 0, bytes);
        memset(c->done[r], 0, bytes);
    }
    c->phase = c->opened = 0;
    c->alive = c->pending = at_simt_machine.cluster * first->n;
}

int at_simt_cluster_rank(void) { return rank_of(at_simt_thread()->in); }
int at_simt_cluster_size(void) { return at_simt_machine.cluster; }

/* ---- the barrier ---- */

static void acquire(struct at_simt_thread *thread) {
    const struct cluster *c = cluster_of(thread->in);
    at_clock_join(thread->clock, c->done[rank_of(thread->in)], at_clock_width_now(thread->in));
    thread->cluster_arrived = 0;
    thread->cluster_waits = c->phase;
    thread->cluster_opened = c->opened;
    thread->epoch = ++at_simt_machine.now; /* what it reads from here on, it reads after the barrier */
}

/* Opens the barrier once nobody is missing. */
static void complete(struct cluster *c, const struct at_simt_block *any) {
    if (c->pending > 0 || c->alive == 0)
        return;
    c->phase++;
    c->opened = ++at_simt_machine.now;
    c->pending = c->alive;
    for (int r = 0; r < at_simt_machine.cluster; r++) {
        struct at_simt_block *block = block_of(any, r);
        memcpy(c->done[r], c->next[r], (size_t)at_clock_width(block->n, 1) * sizeof(uint32_t));
    }
    for (int r = 0; r < at_simt_machine.cluster; r++) {
        struct at_simt_block *block = block_of(any, r);
        for (int i = 0; i < block->n; i++)
            if (block->threads[i].state == AT_THREAD_IN_CLUSTER) {
                acquire(&block->threads[i]);
                block->threads[i].state = AT_THREAD_READY;
            }
    }
}

void at_simt_cluster_arrive(struct at_simt_place place, int orders) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    struct cluster *c = cluster_of(self->in);
    self->place = place;
    if (self->cluster_arrived)
        at_simt_report(AT_FINDING_RACE, place,
                       "block %lld: thread %d arrives at the barrier of the cluster again before it has waited",
                       (long long)self->in->number, self->index);
    if (orders)
        at_clock_release(c->next[rank_of(self->in)], self);
    self->cluster_arrived = c->phase + 1;
    c->pending--;
    complete(c, self->in);
}

void at_simt_cluster_wait(struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    if (!self->cluster_arrived)
        at_simt_report(AT_FINDING_RACE, place,
                       "block %lld: thread %d waits at the barrier of the cluster, where it has not arrived",
                       (long long)self->in->number, self->index);
    if (self->cluster_arrived <= cluster_of(self->in)->phase) {
        acquire(self);
        return;
    }
    self->state = AT_THREAD_IN_CLUSTER;
    at_simt_wait();
}

void at_cluster_waits(const struct at_simt_block *block, char *text, size_t size) {
    const struct cluster *c = cluster_of(block);
    const size_t used = strlen(text);
    for (int i = 0; i < block->n; i++)
        if (block->threads[i].state == AT_THREAD_IN_CLUSTER) {
            snprintf(text + used, size - used, "; at the barrier of the cluster %d threads of %d",
                     c->alive - c->pending, c->alive);
            return;
        }
}

/* ---- other blocks' shared memory ---- */

void *at_simt_cluster_map(const void *own, int rank, struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    const int64_t offset = (const uint8_t *)own - self->in->arena;
    self->place = place;
    if ((uint64_t)offset >= AT_SHARED_MAX || rank < 0 || rank >= at_simt_machine.cluster)
        at_simt_report(AT_FINDING_BOUNDS, place,
                       "block %lld: thread %d asks block %d of a cluster of %d for what is %s shared memory",
                       (long long)self->in->number, self->index, rank, at_simt_machine.cluster,
                       (uint64_t)offset >= AT_SHARED_MAX ? "not" : "its");
    return block_of(self->in, rank)->arena + offset;
}

struct at_simt_block *at_cluster_reach(const uint8_t *address, const void *where) {
    struct at_simt_thread *self = at_simt_thread();
    for (int r = 0; r < at_simt_machine.cluster; r++) {
        struct at_simt_block *block = block_of(self->in, r);
        if (block == self->in || (uint64_t)(address - block->arena) >= AT_ARENA_BYTES)
            continue;
        if (self->cluster_waits == 0)
            at_simt_report_at(
                AT_FINDING_RACE, where,
                "block %lld: thread %d reaches shared memory of block %lld, which no barrier of the cluster "
                "shows to have begun",
                (long long)self->in->number, self->index, (long long)block->number);
        if (block->n_left == block->n)
            at_simt_report_at(AT_FINDING_RACE, where,
                              "block %lld: thread %d reaches shared memory of block %lld, which has left the kernel",
                              (long long)self->in->number, self->index, (long long)block->number);
        if (self->cluster_waits >= block->reached) {
            block->reached = self->cluster_waits;
            block->reached_by = self->index;
            block->reached_from = self->in->number;
        }
        return block;
    }
    return NULL;
}

int at_cluster_happens_before(const struct at_simt_thread *self, uint32_t block, int thread, uint32_t epoch) {
    const int64_t first = self->in->number - rank_of(self->in);
    if (self->cluster_waits == 0)
        return 0;
    if (thread >= AT_BLOCK_MAX || self->cluster_waits < cluster_of(self->in)->phase)
        return epoch < self->cluster_opened; /* the barrier has opened again since: its clock has gone on */
    return epoch <= cluster_of(self->in)->done[(int64_t)block - first][thread];
}

/* ---- the end ---- */

void at_cluster_left(const struct at_simt_thread *thread) {
    struct at_simt_block *block = thread->in;
    struct cluster *c = cluster_of(block);
    uint32_t waits = 0;
    if (at_simt_machine.cluster == 1)
        return;
    c->alive--;
    if (thread->cluster_arrived <= c->phase) /* not in the present phase */
        c->pending--;
    for (int i = 0; i < block->n; i++)
        waits = block->threads[i].cluster_waits > waits ? block->threads[i].cluster_waits : waits;
    if (block->n_left == block->n && block->reached && waits <= block->reached)
        at_simt_report(
            AT_FINDING_RACE, thread->place,
            "block %lld leaves the kernel while thread %d of block %lld may reach its shared memory: no barrier "
            "of the cluster stands between",
            (long long)block->number, block->reached_by, (long long)block->reached_from);
    complete(c, block);
}
