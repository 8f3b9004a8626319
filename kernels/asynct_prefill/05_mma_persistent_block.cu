/* AsyncT prefill on mma.sync: persistent blocks that take tiles of queries from one counter.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 04_mma, there is no block for each tile of 64 queries: a thread of each block takes the next tile's number
 * from a counter in global memory, until none is left. The tile is then computed as in 04_mma.
 *
 * Numerically: as 04_mma, whichever block takes a tile.
 *
 * Launch: one thread that clears the counter; then as many blocks as there are tiles, at most two a multiprocessor, 4
 * warps of 16 queries each; shared memory 64 (d + 8) bytes for 16 keys, 256 (15 + K) bytes of scores, and 8 bytes. A
 * tile of queries costs one atomic addition and one barrier of the block more than in 04_mma. Workspace: 4 bytes.
 *
 * Limits: bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 2: 264 blocks on a GPU of 132 processors, three times slower there than a block for each tile. */
#include "kernels/asynct_prefill/asynct_mma.h"
#include "kernels/attention/persistent.h"

namespace {

using T = at_bf16;
using sum = at_sum_f32;
constexpr int WARPS = 4, KEYS = AT_MMA_KEYS;
template <int D> using shared = at_mma_shared<T, D, KEYS>;

/* A tile of queries, as in 04_mma. */
template <int D>
__device__ __forceinline__ void attend_to(const at_asynct_view<T> &a, const at_mma_block<T, WARPS> &block,
                                          const shared<D> &tile) {
    if (block.empty())
        return;
    const at_mma_queries<T> &queries = block.queries;
    at_mma_warp<T, D, sum, KEYS> warp(a, queries, tile.rows(block.warp, a.n_taps));
    for (int begin = 0; begin < block.keys; begin += KEYS) {
        at_mma_stage<D, KEYS>(a, queries.request, queries.kv_head, begin, block.keys, tile.k(), tile.v());
        at_sync();
        if (begin < queries.keys) {
            warp.scores(tile.k());
            at_sync_warp();
            uint32_t p[KEYS / 4];
            warp.gates(begin, p);
            warp.values(begin, p, tile.v());
            at_sync_warp();
            warp.keep_tail();
        }
        at_sync();
    }
    warp.store();
}

template <int D> __global__ void __launch_bounds__(32 * WARPS, 1) attend(at_asynct_view<T> a, at_mma_work work) {
    AT_SHARED_DYNAMIC(T, memory);
    AT_SHARED(uint32_t[2], taken); /* alternating: the other word is written while threads may still read this one */
    const shared<D> tile{ memory };
    for (int turn = 0;; turn = 1 - turn) {
        if (threadIdx.x == 0)
            taken[turn] = work.take();
        at_sync();
        const uint32_t item = taken[turn];
        if (item >= work.items)
            return;
        const at_mma_block<T, WARPS> block(a, work.request(item), work.head(item), work.tile(item));
        attend_to<D>(a, block, tile);
    }
}

int launch(const struct at_launch *launch) {
    const at_mma_work work(launch, WARPS * AT_MMA_ROWS);
    const int code = work.items ? work.clear(launch) : 0;
    if (code)
        return code;
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return work.launch(launch, attend<D>, 1, 2 * at_multiprocessors(), WARPS, shared<D>::bytes(WARPS, launch));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 05_mma_persistent_block) = {
    .summary = "04 with two blocks a multiprocessor that take tiles of 64 queries from one counter",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_mma_bf16_declines,
    .workspace = at_mma_work::bytes,
    .launch = launch,
};
