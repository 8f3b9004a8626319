/* AsyncT prefill on mma.sync: 8 keys a tile, P V by m16n8k8.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 04_mma, a tile has 8 keys: q.k by m16n8k16 for 8 columns, P V by m16n8k8. A halo can be longer than such a
 * tile.
 *
 * Numerically: unlike 04_mma, P V is added in steps of 8 products.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 32 (d + 8)
 * bytes for 8 keys and 256 (7 + K) bytes of scores. Two barriers of the block and two of each warp a tile of 8 keys.
 *
 * Limits: bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 2, whose kernel has 8 keys a tile, fastest there by little. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

using T = at_bf16;
using sum = at_sum_f32;
constexpr int WARPS = 4, KEYS = 8;
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

AT_KERNEL(asynct_prefill, 09_mma_bk_8) = {
    .summary = "04 with 8 keys a tile, P.V by m16n8k8",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, 8, AT_GUARD_NONE),
    .supports = at_mma_bf16_declines,
    .workspace = nullptr,
    .launch = launch,
};
