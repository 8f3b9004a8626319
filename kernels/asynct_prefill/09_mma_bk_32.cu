/* AsyncT prefill on mma.sync: 32 keys a tile.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 04_mma, a tile has two steps of 16 keys between barriers.
 *
 * Numerically: as 04_mma: P V is added in steps of 16 products.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 128 (d + 8)
 * bytes for 32 keys and 256 (31 + K) bytes of scores. Two barriers of the block and two of each warp a tile of 32
 * keys.
 *
 * Limits: bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 2, where 32 keys a tile take nearly twice as long as 16. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

using T = at_bf16;
using sum = at_sum_f32;
constexpr int WARPS = 4, KEYS = 32, STEP = AT_MMA_KEYS;
template <int D> using shared = at_mma_shared<T, D, KEYS>;

template <int D> __global__ void __launch_bounds__(32 * WARPS, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const shared<D> tile{ memory };
    const at_mma_block<T, WARPS> block(a);
    if (block.empty())
        return;
    const at_mma_queries<T> &queries = block.queries;
    at_mma_warp<T, D, sum, KEYS> warp(a, queries, tile.rows(block.warp, a.n_taps));
    for (int begin = 0; begin < block.keys; begin += KEYS) {
        at_mma_stage<D, KEYS>(a, queries.request, queries.kv_head, begin, block.keys, tile.k(), tile.v());
        at_sync();
        if (begin < queries.keys) {
            for (int key = 0; key < KEYS; key += STEP)
                warp.scores(tile.k(), key);
            at_sync_warp();
            for (int key = 0; key < KEYS; key += STEP) {
                uint32_t p[STEP / 4];
                warp.gates(begin, p, key);
                warp.values(begin, p, tile.v(), key);
            }
            at_sync_warp();
            warp.keep_tail();
        }
        at_sync();
    }
    warp.store();
}

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_mma_launch(launch, attend<D>, WARPS, shared<D>::bytes(WARPS, launch));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 09_mma_bk_32) = {
    .summary = "04 with 32 keys a tile",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_mma_bf16_declines,
    .workspace = nullptr,
    .launch = launch,
};
