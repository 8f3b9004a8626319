/* AsyncT prefill on mma.sync: persistent warps that take tiles of queries from one counter, each for itself.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 05_mma_persistent_block, each warp takes tiles of 16 queries and loads K and V to shared memory of its own: no
 * warp waits for another, and what a block shares in 04_mma each warp loads for itself.
 *
 * Numerically: as 04_mma, whichever warp takes a tile.
 *
 * Launch: one thread that clears the counter; then a block for every 4 tiles of 16 queries, at most two a
 * multiprocessor, 4 warps; shared memory 256 (d + 8) bytes for 16 keys of each warp and 256 (15 + K) bytes of scores.
 * No barrier of the block; three of the warp a tile of keys, one atomic addition a tile of queries. Workspace: 4 bytes.
 *
 * Limits: bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 2, where a warp has 16 queries and shared memory of its own, too. */
#include "kernels/asynct_prefill/asynct_mma.h"
#include "kernels/attention/persistent.h"

namespace {

using T = at_bf16;
using sum = at_sum_f32;
constexpr int WARPS = 4, KEYS = AT_MMA_KEYS;
template <int D> using shared = at_mma_shared<T, D, KEYS, WARPS>;

/* A tile of queries by one warp, which has k, v and the rows of scores for itself. */
template <int D>
__device__ __forceinline__ void attend_to(const at_asynct_view<T> &a, const at_mma_queries<T> &queries, T *k, T *v,
                                          float *rows) {
    if (queries.first >= queries.end)
        return;
    at_mma_warp<T, D, sum, KEYS> warp(a, queries, rows);
    for (int begin = 0; begin < queries.keys; begin += KEYS) {
        at_mma_stage<D, KEYS>(a, queries.request, queries.kv_head, begin, queries.keys, k, v, at_lane(), 32);
        at_sync_warp();
        warp.scores(k);
        at_sync_warp();
        uint32_t p[KEYS / 4];
        warp.gates(begin, p);
        warp.values(begin, p, v);
        at_sync_warp();
        warp.keep_tail();
    }
    warp.store();
}

template <int D> __global__ void __launch_bounds__(32 * WARPS, 1) attend(at_asynct_view<T> a, at_mma_work work) {
    AT_SHARED_DYNAMIC(T, memory);
    const shared<D> tile{ memory };
    const int warp = (int)threadIdx.x / 32;
    for (;;) {
        const uint32_t item = at_shuffle(0xffffffffu, at_lane() == 0 ? work.take() : 0u, 0);
        if (item >= work.items)
            return;
        const at_mma_queries<T> queries(a, work.request(item), work.head(item), work.tile(item));
        attend_to<D>(a, queries, tile.k(warp), tile.v(warp), tile.rows(warp, a.n_taps));
    }
}

int launch(const struct at_launch *launch) {
    const at_mma_work work(launch, AT_MMA_ROWS);
    const int code = work.items ? work.clear(launch) : 0;
    if (code)
        return code;
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return work.launch(launch, attend<D>, WARPS, 2 * at_multiprocessors(), WARPS, shared<D>::bytes(WARPS, launch));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 06_mma_persistent_warp) = {
    .summary = "04 with warps that take tiles of 16 queries from one counter, and keys of their own",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_mma_bf16_declines,
    .workspace = at_mma_work::bytes,
    .launch = launch,
};
