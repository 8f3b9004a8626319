/* Launches: blocks become resident, warps take turns in a seeded order, threads run until they need others.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "kernels/simt/barrier.h"
#include "kernels/simt/bulk.h"
#include "kernels/simt/clock.h"
#include "kernels/simt/cluster.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/deadlock.h"
#include "kernels/simt/dependent.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/mbarrier.h"
#include "kernels/simt/named_barrier.h"
#include "kernels/simt/pending_copy.h"
#include "kernels/simt/registers.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/simt_cluster.h"
#include "kernels/simt/warp.h"
#include "kernels/simt/wgmma.h"

enum { RESIDENT = 4, LANDS_ONE_IN = 4, STACK_BYTES = 68 * 1024 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONFIGURATION = 9, INVALID_CLUSTER = 912 }; /* CUDA's numbers */
_Static_assert((int)AT_RESIDENT_MAX >= (int)AT_SIMT_CLUSTER_MAX, "a cluster is resident as a whole");

/* ---- threads ---- */

static void leave(struct at_simt_thread *self) {
    if (self->in->n_left == self->in->n - 1)
        at_counters_flush(self->in);
    self->state = AT_THREAD_LEFT;
    self->in->n_left++;
    at_warp_left(self);
    at_barrier_left(self->in);
    at_named_left(self);
    at_wgmma_left(self);
    at_bulk_left(self);
    at_cluster_left(self);
    if (self->in->n_left == self->in->n) {
        at_pending_copy_forget(self->in);
        at_dependent_left(self->in);
    }
    at_simt_wait();
    abort(); /* nobody switches to a thread that has left */
}

static void thread_main(void *context) {
    at_simt_machine.entry(at_simt_machine.arguments);
    leave((struct at_simt_thread *)context);
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
    block->clocks = calloc((size_t)n * (size_t)at_clock_width(n, 1), sizeof *block->clocks);
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
    block->epoch = now;
    block->n_variables = block->last_variable = block->fenced = 0;
    at_warp_begin(block);
    at_named_begin(block);
    at_mbarrier_begin(block);
    at_wgmma_begin(block);
    at_registers_begin(block);
    block->n_bulk = 0;
    block->reached = 0;
    block->waited_for_others = 0;
    block->arena_used = (m->dynamic_shared + 15) / 16 * 16;
    for (int i = 0; i < block->n; i++) {
        struct at_simt_thread *t = &block->threads[i];
        const struct at_fiber fiber = t->fiber;
        const uint32_t x = (uint32_t)i, grid_x = m->grid.x, grid_y = m->grid.y;
        *t = (struct at_simt_thread){ .in = block, .fiber = fiber, .unwatched = fiber.bytes, .index = i, .epoch = now };
        t->clock =
            block->clocks + (int64_t)i * at_clock_width(block->n, 1); /* older than the block: it need not be cleared */
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

/* All warps of a block once, beginning at a random one; 0 when no thread could run. */
static int run_block(struct at_simt_block *block) {
    const int warps = (block->n + AT_WARP - 1) / AT_WARP, first = (int)at_simt_random_below((uint32_t)warps);
    const int step = at_simt_random_below(2) ? 1 : warps - 1;
    int ran = 0;
    for (int i = 0, w = first; i < warps && !at_simt_machine.stop; i++, w = (w + step) % warps)
        ran += at_simt_run_warp(block, w);
    /* Bulk copies land when nothing else can be done, or when the seed says so. */
    if (block->n_bulk > 0 && !at_simt_machine.stop &&
        (!ran || (at_simt_machine.seeded && at_simt_random_below(LANDS_ONE_IN) == 0)))
        ran += at_bulk_land_one(block);
    return ran;
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
        at_deadlock_report(stuck);
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
    at_dependent_launch();
    const int64_t n = (int64_t)block.x * block.y * block.z, blocks = (int64_t)grid.x * grid.y * grid.z;
    if (n < 1 || n > AT_BLOCK_MAX || blocks < 1 || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535)
        return INVALID_CONFIGURATION;
    if (size < 1 || size > AT_SIMT_CLUSTER_MAX || (size & (size - 1)) || grid.x % (uint32_t)size)
        return INVALID_CLUSTER;
    if (dynamic_shared < 0 || dynamic_shared > AT_SHARED_MAX)
        return INVALID_VALUE;
    const int failure = at_simt_host_call();
    if (failure)
        return failure;
    if (at_simt_finding()->kind != AT_FINDING_NONE)
        return 0;
    if (stream != m->stream) {
        at_simt_report_at(AT_FINDING_RACE, __builtin_return_address(0),
                          "a launch on another stream than the one given: nothing orders it");
        at_simt_locate_finding();
        return 0;
    }
    m->launches++;
    if (m->dry) {
        note_path(arguments, arguments_bytes, grid, block, dynamic_shared);
        return 0;
    }
    if (!m->resident)
        m->resident = calloc(AT_RESIDENT_MAX, sizeof *m->resident);
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
    at_pending_copy_launch();
    at_bulk_launch();
    while (any_work())
        run_round();
    at_simt_locate_finding();
    return 0;
}
