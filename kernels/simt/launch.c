/* Launches: blocks become resident, warps take turns in a seeded order, threads run until they need others.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "kernels/simt/cluster.h"
#include "kernels/simt/copy.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/machine.h"
#include "kernels/simt/shadow.h"

enum { RESIDENT = 4, LANDS_ONE_IN = 4, STACK_BYTES = 64 * 1024 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONFIGURATION = 9, INVALID_CLUSTER = 912 }; /* CUDA's numbers */
_Static_assert((int)AT_RESIDENT_MOST >= (int)AT_SIMT_CLUSTER_MOST, "a cluster is resident as a whole");

struct at_simt_machine at_simt_machine;
struct at_simt_self *at_simt_current;

/* splitmix64: orders need variety, not quality. */
uint32_t at_simt_random_below(uint32_t n) {
    uint64_t z = at_simt_machine.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % n);
}

/* ---- threads ---- */

/* The warp whose turn it is: its lanes run one after another, each once, and hand the processor on themselves. */
static struct {
    const struct at_simt_block *block;
    int first, lane, step; /* thread of lane 0; the lane that comes next */
    int left, ran;         /* lanes that have not been looked at; those that ran */
} turn;

/* The next lane that is ready, made the running one; NULL: the scheduler goes on. */
static struct at_simt_thread *next_lane(void) {
    while (turn.left > 0 && !at_simt_machine.stop) {
        const int index = turn.first + turn.lane;
        struct at_simt_thread *t = &turn.block->threads[index < turn.block->n ? index : 0];
        turn.left--;
        turn.lane = (turn.lane + turn.step) % AT_WARP;
        if (index >= turn.block->n || t->state != AT_THREAD_READY)
            continue;
        turn.ran++;
        at_simt_current = &t->self;
        return t;
    }
    return NULL;
}

void at_simt_wait(void) {
    struct at_simt_thread *self = at_simt_thread();
    const struct at_simt_thread *next = next_lane();
    at_fiber_switch(&self->fiber.saved, next ? next->fiber.saved : at_simt_machine.scheduler);
}

static void leave(struct at_simt_thread *self) {
    if (self->in->n_left == self->in->n - 1)
        at_counters_flush(self->in);
    self->state = AT_THREAD_LEFT;
    self->in->n_left++;
    at_simt_warp_left(self);
    at_simt_barrier_left(self->in);
    at_named_left(self);
    at_wgmma_left(self);
    at_bulk_left(self);
    at_cluster_left(self);
    if (self->in->n_left == self->in->n)
        at_copy_forget(self->in);
    at_simt_wait();
    abort(); /* nobody switches to a thread that has left */
}

static void thread_main(void *context) {
    at_simt_machine.entry(at_simt_machine.arguments);
    leave((struct at_simt_thread *)context);
}

/* ---- order between accesses ---- */

void at_simt_order(struct at_simt_block *block, struct at_simt_thread *const *members, int n) {
    uint32_t *most = members[0]->known;
    const uint32_t now = ++at_simt_machine.now;
    const int width = at_simt_width(block->n, block->fenced);
    if (n == block->n) { /* what each knows of the others is less than what all_since says */
        block->all_since = now;
        at_proxy_order(block);
    } else
        for (int i = 0; i < n; i++)
            members[i]->known[members[i]->index] = members[i]->since;
    for (int i = 1; n < block->n && i < n; i++)
        for (int t = 0; t < width; t++)
            most[t] = members[i]->known[t] > most[t] ? members[i]->known[t] : most[t];
    for (int i = 0; i < n; i++) {
        if (i > 0 && n < block->n)
            memcpy(members[i]->known, most, (size_t)width * sizeof *most);
        members[i]->since = now;
    }
}

void at_simt_begin_time(void) {
    struct at_simt_machine *m = &at_simt_machine;
    m->now = 0;
    for (int i = 0; m->resident && i < AT_RESIDENT_MOST; i++) {
        const struct at_simt_block *block = &m->resident[i];
        if (block->clocks)
            memset(block->clocks, 0,
                   (size_t)block->capacity * (size_t)at_simt_width(block->capacity, 1) * sizeof *block->clocks);
    }
    at_memory_forget();
}

/* ---- blocks ---- */

/* Threads, once made, stay for smaller blocks that come after. */
static int make_room(struct at_simt_block *block, int n) {
    block->n = n;
    if (n <= block->capacity)
        return 0;
    for (int i = 0; i < block->capacity; i++)
        at_fiber_destroy(&block->threads[i].fiber);
    free(block->threads);
    free(block->clocks);
    block->capacity = 0;
    block->threads = calloc((size_t)n, sizeof *block->threads);
    block->clocks = calloc((size_t)n * (size_t)at_simt_width(n, 1), sizeof *block->clocks);
    if (!block->arena)
        block->arena = aligned_alloc(1024, AT_ARENA_BYTES) /* as swizzles begin */;
    if (!block->threads || !block->clocks || !block->arena)
        return -1;
    for (; block->capacity < n; block->capacity++)
        if (at_fiber_create(&block->threads[block->capacity].fiber, STACK_BYTES) != 0)
            return -1;
    return 0;
}

static void begin_block(struct at_simt_block *block, int64_t number) {
    struct at_simt_machine *m = &at_simt_machine;
    const uint32_t now = ++m->now;
    block->in_use = 1;
    block->number = number;
    block->n_left = block->n_in_barrier = 0;
    block->all_since = now;
    block->n_variables = block->last_variable = block->n_mbarriers = block->fenced = 0;
    at_simt_warp_begin(block);
    at_named_begin(block);
    at_wgmma_begin(block);
    at_registers_begin(block);
    block->n_bulk = 0;
    block->reached = 0;
    block->arena_used = (m->dynamic_shared + 15) / 16 * 16;
    for (int i = 0; i < block->n; i++) {
        struct at_simt_thread *t = &block->threads[i];
        const struct at_fiber fiber = t->fiber;
        const uint32_t x = (uint32_t)i, grid_x = m->grid.x, grid_y = m->grid.y;
        *t = (struct at_simt_thread){ .in = block, .fiber = fiber, .index = i, .since = now };
        t->known =
            block->clocks + (int64_t)i * at_simt_width(block->n, 1); /* older than all_since: it need not be cleared */
        t->self.thread = (struct at_dim3){ x % m->block.x, x / m->block.x % m->block.y, x / m->block.x / m->block.y };
        t->self.block = (struct at_dim3){ (uint32_t)(number % grid_x), (uint32_t)(number / grid_x % grid_y),
                                          (uint32_t)(number / grid_x / grid_y) };
        t->self.threads = m->block;
        t->self.blocks = m->grid;
        at_fiber_start(&t->fiber, thread_main, t);
    }
}

/* The next blocks, of one cluster, in the place of those that `block` was one of, once all of them have left. */
static void begin_cluster(const struct at_simt_block *block) {
    struct at_simt_machine *m = &at_simt_machine;
    struct at_simt_block *first = &m->resident[(block - m->resident) / m->cluster * m->cluster];
    for (int i = 0; i < m->cluster; i++)
        if (first[i].in_use)
            return;
    for (int i = 0; i < m->cluster; i++)
        begin_block(&first[i], m->next_block++);
    if (m->cluster > 1)
        at_cluster_begin(first);
}

/* Runs every ready thread of a warp once, ascending or by the seed from another lane on or descending; how many ran. */
static int run_warp(struct at_simt_block *block, int warp) {
    const uint32_t choice = at_simt_machine.seeded ? at_simt_random_below(2 * AT_WARP) : 0;
    turn.block = block;
    turn.first = warp * AT_WARP;
    turn.lane = (int)choice % AT_WARP;
    turn.step = choice < AT_WARP ? 1 : AT_WARP - 1;
    turn.left = AT_WARP;
    turn.ran = 0;
    const struct at_simt_thread *t = next_lane();
    if (t)
        at_fiber_switch(&at_simt_machine.scheduler, t->fiber.saved);
    at_simt_current = NULL;
    return turn.ran;
}

/* All warps of a block once, beginning at a random one; 0 when no thread could run. */
static int run_block(struct at_simt_block *block) {
    const int warps = (block->n + AT_WARP - 1) / AT_WARP, first = (int)at_simt_random_below((uint32_t)warps);
    const int step = at_simt_random_below(2) ? 1 : warps - 1;
    int ran = 0;
    for (int i = 0, w = first; i < warps && !at_simt_machine.stop; i++, w = (w + step) % warps)
        ran += run_warp(block, w);
    /* Bulk copies land when nothing else can be done, or when the seed says so. */
    if (block->n_bulk > 0 && !at_simt_machine.stop &&
        (!ran || (at_simt_machine.seeded && at_simt_random_below(LANDS_ONE_IN) == 0)))
        ran += at_bulk_land_one(block);
    return ran;
}

/* A lane that t's warp operation waits for, which itself waits, elsewhere or with another mask. */
static const struct at_simt_thread *never_comes(const struct at_simt_thread *t) {
    const int first = t->index / AT_WARP * AT_WARP;
    for (int i = first; i < first + AT_WARP && i < t->in->n; i++) {
        const struct at_simt_thread *other = &t->in->threads[i];
        if ((t->mask >> (i - first) & 1) && !(other->state == AT_THREAD_IN_WARP && at_simt_same_operation(t, other)))
            return other;
    }
    return NULL;
}

static void report_deadlock(const struct at_simt_block *block) {
    const struct at_simt_thread *waits = NULL, *other = NULL;
    for (int i = 0; i < block->n && !other; i++) {
        const struct at_simt_thread *t = &block->threads[i];
        if (t->state == AT_THREAD_LEFT)
            continue;
        waits = t;
        other = t->state == AT_THREAD_IN_WARP ? never_comes(t) : NULL;
    }
    if (!waits)
        return; /* every thread has left */
    if (!other) {
        char also[240] = "";
        at_named_waits(block, also, sizeof also);
        at_mbarrier_waits(block, also, sizeof also);
        at_registers_waits(block, also, sizeof also);
        at_cluster_waits(block, also, sizeof also);
        at_simt_report(AT_FINDING_DEADLOCK, waits->place, "block %lld: every thread waits: thread %d and others here%s",
                       (long long)block->number, waits->index, also);
        return;
    }
    /* Waiting for a lane that is somewhere else is a mask used against its rules; at the same place the lanes wait for
     * each other. */
    const int elsewhere = other->state != AT_THREAD_IN_WARP || other->place.line != waits->place.line;
    at_simt_report(elsewhere ? AT_FINDING_RACE : AT_FINDING_DEADLOCK, waits->place,
                   "block %lld: every thread waits: thread %d here with mask %08x for thread %d, which waits at %s:%d",
                   (long long)block->number, waits->index, waits->mask, other->index, other->place.file,
                   other->place.line);
}

/* One round over the resident blocks, in a random order of their own. */
static void run_round(void) {
    struct at_simt_machine *m = &at_simt_machine;
    const int first = (int)at_simt_random_below((uint32_t)m->n_resident);
    int ran = 0;
    struct at_simt_block *stuck = NULL;
    for (int i = 0; i < m->n_resident && !m->stop; i++) {
        struct at_simt_block *block = &m->resident[(first + i) % m->n_resident];
        if (!block->in_use && m->next_block < m->n_blocks)
            begin_cluster(block);
        if (!block->in_use)
            continue;
        int mine = run_block(block);
        ran += mine;
        if (!mine)
            stuck = block;
        block->in_use = block->n_left < block->n;
    }
    if (stuck && !ran && !m->stop)
        report_deadlock(stuck);
}

static int any_work(void) {
    const struct at_simt_machine *m = &at_simt_machine;
    int busy = m->next_block < m->n_blocks;
    for (int i = 0; i < m->n_resident; i++)
        busy |= m->resident[i].in_use;
    return busy && !m->stop;
}

/* A hash over what was launched. The kernel's own address stands first in its arguments. */
static void note_path(const void *arguments, int64_t arguments_bytes, struct at_dim3 grid, struct at_dim3 block,
                      int64_t dynamic_shared) {
    uint64_t words[8] = { 0, grid.x, grid.y, grid.z, block.x, block.y, block.z, (uint64_t)dynamic_shared };
    uint64_t hash = at_simt_machine.path ? at_simt_machine.path : 0xcbf29ce484222325u;
    if (arguments_bytes >= (int64_t)sizeof words[0])
        memcpy(words, arguments, sizeof words[0]);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = (hash ^ words[i] ^ words[i] >> 32) * 0x100000001b3u;
    at_simt_machine.path = hash;
}

int at_simt_launch(void (*entry)(void *), void *arguments, int64_t arguments_bytes, struct at_dim3 grid,
                   struct at_dim3 block, int64_t dynamic_shared, const void *stream) {
    return at_simt_launch_cluster(entry, arguments, arguments_bytes, grid, block, 1, dynamic_shared, stream);
}

int at_simt_launch_cluster(void (*entry)(void *), void *arguments, int64_t arguments_bytes, struct at_dim3 grid,
                           struct at_dim3 block, int size, int64_t dynamic_shared, const void *stream) {
    struct at_simt_machine *m = &at_simt_machine;
    const int64_t n = (int64_t)block.x * block.y * block.z, blocks = (int64_t)grid.x * grid.y * grid.z;
    if (n < 1 || n > AT_BLOCK_MOST || blocks < 1 || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535)
        return INVALID_CONFIGURATION;
    if (size < 1 || size > AT_SIMT_CLUSTER_MOST || (size & (size - 1)) || grid.x % (uint32_t)size)
        return INVALID_CLUSTER;
    if (dynamic_shared < 0 || dynamic_shared > AT_SHARED_MOST)
        return INVALID_VALUE;
    if (at_simt_finding()->kind != AT_FINDING_NONE)
        return 0;
    if (stream != m->stream) {
        at_simt_report_at(AT_FINDING_RACE, __builtin_return_address(0),
                          "a launch on another stream than the one given: nothing orders it");
        at_simt_locate_finding();
        return 0;
    }
    if (!m->resident)
        m->resident = calloc(AT_RESIDENT_MOST, sizeof *m->resident);
    if (!m->resident)
        return OUT_OF_MEMORY;
    m->cluster = size;
    m->n_resident = size > RESIDENT ? size : blocks < RESIDENT ? (int)blocks : RESIDENT;
    for (int i = 0; i < m->n_resident; i++)
        if (make_room(&m->resident[i], (int)n) != 0)
            return OUT_OF_MEMORY;
    note_path(arguments, arguments_bytes, grid, block, dynamic_shared);
    m->entry = entry;
    m->arguments = arguments;
    m->arguments_bytes = arguments_bytes;
    m->grid = grid;
    m->block = block;
    m->dynamic_shared = dynamic_shared;
    m->next_block = 0;
    m->n_blocks = blocks;
    m->stop = 0;
    m->launch_began = ++m->now;
    for (int i = 0; i < m->n_resident; i++)
        m->resident[i].in_use = 0;
    at_shadow_launch();
    at_copy_launch();
    at_bulk_launch();
    while (any_work())
        run_round();
    at_simt_locate_finding();
    return 0;
}
