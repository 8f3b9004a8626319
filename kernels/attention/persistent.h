/* Attention by persistent blocks or warps: tiles of queries as numbered work items, and which block takes which.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is computed for a tile depends neither on the block that takes it nor on when: bits repeat. */
#ifndef AT_PERSISTENT_H
#define AT_PERSISTENT_H

#include "kernels/attention/attention_mma.h"

static __global__ void at_mma_clear(uint32_t *counter) { *counter = 0; }

/* Tiles of queries of all heads and requests, numbered in the order of at_mma_grid's blocks: heads vary fastest, then
 * requests. */
struct at_mma_work {
    uint32_t *counter;
    uint32_t items;
    int h, b, queries; /* queries of a tile */

    at_mma_work(const struct at_launch *launch, int of_tile) : queries(of_tile) {
        const dim3 grid = at_mma_grid(&launch->problem->sizes, queries);
        counter = static_cast<uint32_t *>(launch->workspace);
        items = grid.x * grid.y * grid.z;
        h = (int)grid.x;
        b = (int)grid.y;
    }
    /* Bytes of workspace for the counter alone. */
    static int64_t bytes(const struct at_problem *) { return sizeof(uint32_t); }

    /* The next tile, for the calling thread; `items` or more: none is left. */
    __device__ uint32_t take() const { return at_atomic_add(counter, 1u); }
    __device__ int head(uint32_t item) const { return (int)item % h; }
    __device__ int request(uint32_t item) const { return (int)item / h % b; }
    __device__ int tile(uint32_t item) const { return (int)item / h / b; }

    /* Another order for the tiles of all requests, each standing for all heads: an array behind the counter. */
    __device__ uint32_t *order() const { return counter + 1; }

    int clear(const struct at_launch *launch) const {
        const dim3 one{ 1, 1, 1 };
        return at_launch(at_mma_clear, one, one, 0, launch->stream, counter);
    }
    /* Launches as many blocks as have work when each takes `of_block` tiles at once, but at most `max_blocks`. */
    template <class View>
    int launch(const struct at_launch *launch, void (*kernel)(View, at_mma_work), uint32_t of_block,
               uint32_t max_blocks, int warps, int64_t shared) const {
        const uint32_t busy = (items + of_block - 1) / of_block, blocks = busy < max_blocks ? busy : max_blocks;
        if (items == 0)
            return 0;
        return at_launch(kernel, dim3{ blocks, 1, 1 }, dim3{ 32 * (unsigned)warps, 1, 1 }, shared, launch->stream,
                         View::of(launch->problem), *this);
    }
};

/* ---- schedulers of blocks ----
 *
 * bytes(problem): of the workspace. prepare(launch, work, view): launches what must run before the kernel. A block
 * constructs one from the work and two words of shared memory; all its threads call next(item) together, which is false
 * when the block has no more work. Or one thread calls alone(item) for all and tells the others. */

/* Each block takes a run of neighbouring tiles; the runs' lengths differ by one at most. */
struct at_schedule_static {
    uint32_t item, end;

    static int64_t bytes(const struct at_problem *) { return 0; }
    template <class View> static int prepare(const struct at_launch *, const at_mma_work &, const View &) { return 0; }

    __device__ at_schedule_static(const at_mma_work &work, uint32_t (&)[2])
        : item(share(work, blockIdx.x)), end(share(work, blockIdx.x + 1)) {}
    __device__ static uint32_t share(const at_mma_work &work, uint32_t block) {
        return (uint32_t)((uint64_t)work.items * block / gridDim.x);
    }
    __device__ bool next(uint32_t &out) {
        out = item++;
        return out < end;
    }
    __device__ bool alone(uint32_t &out) { return next(out); }
};

/* Each block takes every gridDim.x-th tile. */
struct at_schedule_round_robin {
    uint32_t item, end;

    static int64_t bytes(const struct at_problem *) { return 0; }
    template <class View> static int prepare(const struct at_launch *, const at_mma_work &, const View &) { return 0; }

    __device__ at_schedule_round_robin(const at_mma_work &work, uint32_t (&)[2]) : item(blockIdx.x), end(work.items) {}
    __device__ bool next(uint32_t &out) {
        out = item;
        item += gridDim.x;
        return out < end;
    }
    __device__ bool alone(uint32_t &out) { return next(out); }
};

/* Blocks take the next tile from one counter: an atomic addition and a barrier of the block for each tile. */
struct at_schedule_atomic {
    const at_mma_work &work;
    uint32_t (&taken)[2]; /* alternating: the other word is written while threads may still read this one */
    int turn = 0;

    static int64_t bytes(const struct at_problem *problem) { return at_mma_work::bytes(problem); }
    template <class View> static int prepare(const struct at_launch *launch, const at_mma_work &work, const View &) {
        return work.clear(launch);
    }

    __device__ at_schedule_atomic(const at_mma_work &of, uint32_t (&memory)[2]) : work(of), taken(memory) {}
    __device__ bool next(uint32_t &out) {
        if (threadIdx.x == 0)
            taken[turn] = work.take();
        at_sync();
        out = taken[turn];
        turn = 1 - turn;
        return out < work.items;
    }
    __device__ bool alone(uint32_t &out) const {
        out = work.take();
        return out < work.items;
    }
};

/* Sorts the tiles of all requests by the keys that they see, most first; ties in the order of their numbers. One thread
 * for each tile counts the tiles before it: there are few, and the numbers of keys are known on the device alone. */
template <class T> static __global__ void at_mma_longest_first(at_attention_view<T> a, at_mma_work work) {
    const auto keys = [&](uint32_t tile) {
        const int rows = work.queries / AT_MMA_ROWS;
        const at_mma_queries<T> first(a, (int)tile % work.b, 0, (int)tile / work.b * rows);
        const at_mma_queries<T> last(a, (int)tile % work.b, 0, (int)tile / work.b * rows + rows - 1);
        return first.first < first.end ? last.visible(AT_MMA_ROWS - 1) : -1;
    };
    const uint32_t tiles = work.items / (uint32_t)work.h, own = blockIdx.x * blockDim.x + threadIdx.x;
    if (own >= tiles)
        return;
    const int own_keys = keys(own);
    uint32_t before = 0;
    for (uint32_t i = 0; i < tiles; i++) {
        const int n = keys(i);
        before += n > own_keys || (n == own_keys && i < own);
    }
    work.order()[before] = own;
}

/* As at_schedule_atomic, but the longest tiles first, so that what remains at the end is short. */
struct at_schedule_longest_first : at_schedule_atomic {
    static int64_t bytes(const struct at_problem *problem) {
        const dim3 grid = at_mma_grid(&problem->sizes, AT_MMA_ROWS); /* tiles of more queries are fewer */
        return (int64_t)sizeof(uint32_t) * (1 + (int64_t)grid.y * grid.z);
    }
    template <class T>
    static int prepare(const struct at_launch *launch, const at_mma_work &work, const at_attention_view<T> &view) {
        constexpr unsigned THREADS = 128;
        const unsigned blocks = (work.items / (unsigned)work.h + THREADS - 1) / THREADS;
        const int code = work.clear(launch);
        return code ? code
                    : at_launch(at_mma_longest_first<T>, dim3{ blocks, 1, 1 }, dim3{ THREADS, 1, 1 }, 0, launch->stream,
                                view, work);
    }

    using at_schedule_atomic::at_schedule_atomic;
    __device__ bool next(uint32_t &out) { return ordered(at_schedule_atomic::next(out), out); }
    __device__ bool alone(uint32_t &out) const { return ordered(at_schedule_atomic::alone(out), out); }
    __device__ bool ordered(bool more, uint32_t &out) const {
        if (more)
            out = work.order()[out / work.h] * work.h + out % work.h;
        return more;
    }
};

#endif
