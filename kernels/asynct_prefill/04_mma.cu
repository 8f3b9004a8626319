/* AsyncT prefill on mma.sync: 16 queries a warp, 16 keys a tile; bf16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The warps of a block load a tile of 16 keys together. Each multiplies its 16 queries by K, puts the scores into rows
 * of its own in shared memory, behind those that the filter still needs of the tile before, and takes P from there as
 * an operand for the product with V.
 *
 * Numerically: unlike 01 to 03, q.k and P V are sums of a tensor core: 16 products a step, cut where they are aligned
 * and cut again to f32. P is rounded to bf16; a key that is multiplied by p = 0 counts.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 64 (d + 8)
 * bytes for 16 keys and 256 (15 + K) bytes of scores. Two barriers of the block and two of each warp a tile of 16
 * keys.
 *
 * Limits: bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 2, which multiplies P by V with m16n8k8 and has 8 keys a tile. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

using T = at_bf16;
using sum = at_sum_f32;
constexpr int WARPS = 4, KEYS = AT_MMA_KEYS;
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

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_mma_launch(launch, attend<D>, WARPS, shared<D>::bytes(WARPS, launch));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 04_mma) = {
    .summary = "mma.sync, 16 queries a warp, 16 keys a tile; bf16, sums in f32",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_mma_bf16_declines,
    .workspace = nullptr,
    .launch = launch,
};
