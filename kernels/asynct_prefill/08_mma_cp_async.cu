/* AsyncT prefill on mma.sync: the next tile of K and V is copied by cp.async while one is multiplied.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 04_mma, two tiles of keys lie in shared memory. The copies of a tile are issued when all warps have passed
 * the barrier before it, and so have left the stage that it goes to.
 *
 * Numerically: as 04_mma.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 128 (d + 8)
 * bytes for two tiles of 16 keys and 256 (15 + K) bytes of scores. One barrier of the block and two of each warp a
 * tile of 16 keys.
 *
 * Limits: bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 2, where cp.async changed next to nothing. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

using T = at_bf16;
using sum = at_sum_f32;
constexpr int WARPS = 4, KEYS = AT_MMA_KEYS;
template <int D> using shared = at_mma_shared<T, D, KEYS, 2>;

/* Issues this thread's copies of the tile from `begin` on, as one group. */
template <int D> __device__ __forceinline__ void copy(const at_mma_block<T, WARPS> &block, int begin, T *k, T *v) {
    const at_mma_queries<T> &queries = block.queries;
    const auto put = [k, v, from_k = queries.a.k, from_v = queries.a.v](int to, int64_t from) {
        if (from >= 0) {
            at_copy_async<16>(k + to, from_k + from);
            at_copy_async<16>(v + to, from_v + from);
        }
        for (int i = 0; from < 0 && i < 8; i += 2) {
            at_store32(k + to + i, 0);
            at_store32(v + to + i, 0);
        }
    };
    at_mma_each_16_bytes<D, KEYS>(queries.a, queries.request, queries.kv_head, begin, block.keys, (int)threadIdx.x,
                                  32 * WARPS, put);
    at_copy_commit();
}

template <int D> __global__ void __launch_bounds__(32 * WARPS, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const shared<D> tile{ memory };
    const at_mma_block<T, WARPS> block(a);
    if (block.empty())
        return;
    const at_mma_queries<T> &queries = block.queries;
    at_mma_warp<T, D, sum, KEYS> warp(a, queries, tile.rows(block.warp, a.n_taps));
    if (block.keys > 0)
        copy<D>(block, 0, tile.k(0), tile.v(0));
    for (int begin = 0, stage = 0; begin < block.keys; begin += KEYS, stage = 1 - stage) {
        at_copy_wait<0>();
        at_sync();
        if (begin + KEYS < block.keys)
            copy<D>(block, begin + KEYS, tile.k(1 - stage), tile.v(1 - stage));
        if (begin < queries.keys) {
            warp.scores(tile.k(stage));
            at_sync_warp();
            uint32_t p[KEYS / 4];
            warp.gates(begin, p);
            warp.values(begin, p, tile.v(stage));
            at_sync_warp();
            warp.keep_tail();
        }
    }
    warp.store();
}

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_mma_launch(launch, attend<D>, WARPS, shared<D>::bytes(WARPS, launch));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 08_mma_cp_async) = {
    .summary = "04 with two tiles of keys, the next one copied by cp.async",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_mma_bf16_declines,
    .workspace = nullptr,
    .launch = launch,
};
