/* AsyncT prefill on mma.sync by blocks or warps that stay: each takes tiles of queries from one counter until there are
 * none.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is computed for a tile does not depend on who takes it, nor when: bits repeat. */
#ifndef AT_DEVICE_ASYNCT_MMA_PERSISTENT_H
#define AT_DEVICE_ASYNCT_MMA_PERSISTENT_H

#include "kernels/device/asynct_mma.h"

static __global__ void at_mma_clear(uint32_t *counter) { *counter = 0; }

/* Tiles of queries of every head and request, numbered as blocks of at_mma_grid start: heads first, then requests. */
struct at_mma_work {
    uint32_t *counter;
    uint32_t items;
    int h, b;

    at_mma_work(const struct at_launch *launch, int64_t queries) {
        const dim3 grid = at_mma_grid(&launch->problem->sizes, queries);
        counter = static_cast<uint32_t *>(launch->workspace);
        items = grid.x * grid.y * grid.z;
        h = (int)grid.x;
        b = (int)grid.y;
    }
    /* Of the workspace. */
    static int64_t bytes(const struct at_problem *) { return sizeof(uint32_t); }

    /* The next tile for the thread that asks; `items` or more: there is none left. */
    __device__ uint32_t take() const { return at_atomic_add(counter, 1u); }
    __device__ int head(uint32_t item) const { return (int)item % h; }
    __device__ int request(uint32_t item) const { return (int)item / h % b; }
    __device__ int tile(uint32_t item) const { return (int)item / h / b; }

    /* Clears the counter, then as many blocks as have work when each takes `of_block` tiles at once, at most `most`. */
    template <class T>
    int launch(const struct at_launch *launch, void (*kernel)(at_asynct_view<T>, at_mma_work), uint32_t of_block,
               uint32_t most, int warps, int64_t shared) const {
        if (items == 0)
            return 0;
        const uint32_t busy = (items + of_block - 1) / of_block, blocks = busy < most ? busy : most;
        const dim3 one{ 1, 1, 1 };
        const int code = at_launch(at_mma_clear, one, one, 0, launch->stream, counter);
        return code ? code : at_mma_launch(launch, kernel, dim3{ blocks, 1, 1 }, warps, shared, *this);
    }
};

#endif
