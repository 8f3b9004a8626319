/* AsyncT prefill on wgmma: the last two scores of a tile stay in registers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 13, which passes them on through shared memory, every lane of a quad keeps the last two scores of its rows.
 *
 * Numerically: as mma.sync (04_mma): 16 products a step, sums in f32, P rounded to bf16, a key with p = 0 counts.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), a warpgroup; shared memory 192 d + 2064 bytes. Three
 * barriers of the block a tile of 16 keys.
 *
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 32, 64, 96 or 128; at most 3 taps.
 *
 * Source: 000 section 6.4. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

using T = at_bf16;
template <int D> using tiles = at_wgmma_tiles<T, D>;

template <int D> __global__ void __launch_bounds__(AT_WGMMA_THREADS, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const tiles<D> tile{ memory };
    const at_wgmma_block<T> block(a);
    if (block.empty())
        return;
    const at_fragment_gate gate(a, block.queries.head);
    at_score_tail tail;
    float o[D / 16][2][4] = {};
    at_wgmma_load_q<D>(block, tile.q());
    for (int begin = 0; begin < block.keys; begin += AT_MMA_KEYS) {
        at_wgmma_load_kv<D>(block, begin, tile);
        at_proxy_fence(); /* covers q, too, the first time */
        at_sync();
        float s[1][2][4] = {}; /* a product of 16 columns */
        at_wgmma_scores<D>(tile.q(), tile.k(), s);
        at_wgmma_wait<0>(s);
        uint32_t p[4];
        at_fragment_gates(block.queries, gate, at_fragments(s), begin, tail, p);
        at_wgmma_put_p(block, p, tile.p());
        at_proxy_fence();
        at_sync();
        if (tile.noted()) {
            at_wgmma_values_by_query(block.queries, begin, p, tile.v(), o);
        } else {
            at_wgmma_values(tile.p(), tile.v(), o);
            at_wgmma_wait<0>(o);
        }
        at_sync();
    }
    at_asynct_store(a, block.queries, at_fragments(o));
}

const char *supports(const struct at_problem *problem) { return at_wgmma_declines(problem, 3); }

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_mma_launch(launch, attend<D>, AT_WGMMA_WARPS, tiles<D>::BYTES + tiles<D>::P_BYTES);
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 14_wgmma_register_tail) = {
    .summary = "as 13 with the two scores before a tile in registers",
    .source = "000 6.4",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
