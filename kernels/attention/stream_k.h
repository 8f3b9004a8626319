/* Attention under stream-K: the tiles of keys of all tiles of queries in one row, of which each block takes an equal span.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tile of queries is cut at multiples of RANGE keys alone: what is between two cuts is a piece, and a block takes the
 * pieces whose first tile of keys lies in its span. Where the cuts lie depends neither on the batch nor on the number of
 * blocks, so bits do not either, and arithmetic can be declared (split = RANGE). Pieces of one tile of queries may go to
 * several blocks, none of which waits for another: a later launch joins what they leave.
 *
 * The row: tiles of queries in the order of at_mma_work, all heads of one before the next, the keys of each from the
 * first on. A tile whose queries see no key counts as one tile of keys: its outputs are zeros, which somebody must
 * store. One without queries counts as none. */
#ifndef AT_STREAM_K_H
#define AT_STREAM_K_H

#include "kernels/attention/persistent.h"

constexpr int AT_STREAM_KEYS = 64; /* of a tile of keys */

/* The tiles of keys of a tile of queries, for one head; `tile` counts the tiles of all requests. */
template <class T>
__device__ uint32_t at_stream_length(const at_attention_view<T> &a, const at_mma_work &work, uint32_t tile) {
    const int rows = work.queries / AT_MMA_ROWS, request = (int)tile % work.b, begin = (int)tile / work.b * rows;
    const at_mma_queries<T> first(a, request, 0, begin), last(a, request, 0, begin + rows - 1);
    if (first.first >= first.end)
        return 0;
    const int keys = last.visible(AT_MMA_ROWS - 1);
    return keys > 0 ? (uint32_t)(keys + AT_STREAM_KEYS - 1) / AT_STREAM_KEYS : 1u;
}

/* Sums up the lengths before each tile, and before the end, into an array at the beginning of the workspace; one warp.
 * The lengths are known on the device alone. */
template <class T> static __global__ void at_stream_starts(at_attention_view<T> a, at_mma_work work) {
    const uint32_t tiles = work.items / (uint32_t)work.h;
    uint32_t before = 0;
    for (uint32_t first = 0; first < tiles; first += 32) {
        const uint32_t tile = first + (uint32_t)at_lane(), own = tile < tiles ? at_stream_length(a, work, tile) : 0;
        uint32_t sum = own; /* of the lanes up to this one */
        for (int by = 1; by < 32; by *= 2) {
            const uint32_t more = at_shuffle_up(0xffffffffu, sum, by);
            sum += at_lane() >= by ? more : 0;
        }
        if (tile < tiles)
            work.counter[tile] = before + sum - own;
        before += at_shuffle(0xffffffffu, sum, 31);
    }
    if (at_lane() == 0)
        work.counter[tiles] = before;
}

/* The pieces of a block, for each thread that walks them by itself. */
template <int RANGE> struct at_schedule_stream_k {
    static_assert(RANGE % AT_STREAM_KEYS == 0, "whole tiles of keys");
    static constexpr uint32_t STEP = RANGE / AT_STREAM_KEYS;
    const uint32_t *starts;
    uint32_t h, tiles, tile, length, head, step; /* step: the piece's first tile of keys */
    uint64_t end;                                /* of the span */

    /* Bytes at the beginning of the workspace, in whole 16. */
    static int64_t bytes(const struct at_problem *problem, int queries) {
        const dim3 grid = at_mma_grid(&problem->sizes, queries);
        return ((int64_t)sizeof(uint32_t) * (1 + (int64_t)grid.y * grid.z) + 15) / 16 * 16;
    }
    template <class T>
    static int prepare(const struct at_launch *launch, const at_mma_work &work, const at_attention_view<T> &view) {
        const dim3 one{ 1, 1, 1 }, warp{ 32, 1, 1 };
        return at_launch(at_stream_starts<T>, one, warp, 0, launch->stream, view, work);
    }
    /* Pieces that there can be: how many there are is known on the device alone. */
    static int64_t most(const struct at_problem *problem, const at_mma_work &work) {
        const int64_t ranges = (problem->sizes.capacity + RANGE - 1) / RANGE;
        return (int64_t)work.items * (ranges > 0 ? ranges : 1);
    }

    __device__ explicit at_schedule_stream_k(const at_mma_work &work)
        : starts(work.counter), h((uint32_t)work.h), tiles(work.items / (uint32_t)work.h), tile(0),
          end(share(blockIdx.x + 1)) {
        const uint64_t begin = share(blockIdx.x);
        for (uint32_t after = tiles; after - tile > 1;) { /* the last tile that begins at `begin` or before */
            const uint32_t middle = (tile + after) / 2;
            if ((uint64_t)starts[middle] * h <= begin)
                tile = middle;
            else
                after = middle;
        }
        length = starts[tile + 1] - starts[tile];
        const uint32_t within = (uint32_t)(begin - (uint64_t)starts[tile] * h);
        head = within / length;
        step = (within % length + STEP - 1) / STEP * STEP;
    }
    __device__ uint64_t share(uint32_t block) const { return (uint64_t)starts[tiles] * h * block / gridDim.x; }

    /* The next piece: a tile of queries and a head as at_mma_work numbers them, and its keys' range. */
    __device__ bool next(uint32_t &item, int &range) {
        while (step >= length) {
            step = 0;
            if (length > 0 && ++head < h)
                continue;
            head = 0;
            if (++tile >= tiles)
                return false;
            length = starts[tile + 1] - starts[tile];
        }
        if ((uint64_t)starts[tile] * h + (uint64_t)head * length + step >= end)
            return false;
        item = tile * h + head;
        range = (int)(step / STEP);
        step += STEP;
        return true;
    }
};

#endif
