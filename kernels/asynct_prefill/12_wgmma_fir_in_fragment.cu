/* AsyncT prefill on wgmma: the filter works on the fragments of the scores.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 11, scores do not go through shared memory: a lane gets the two scores before its own from its neighbours by
 * shuffles, and the last two of the tile before from shared memory.
 *
 * Numerically: as mma.sync (04_mma): 16 products a step, sums in f32, P rounded to bf16, a key with p = 0 counts.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), a warpgroup; shared memory 192 d + 2576 bytes. Three
 * barriers of the block a tile of 16 keys.
 *
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 32, 64, 96 or 128; at most 3 taps.
 *
 * Source: 000 section 3.2. */
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
    float *tails = tile.behind_p() + 2 * block.warp * AT_MMA_ROWS;
    float o[D / 8][1][4] = {};
    at_wgmma_load_q<D>(block, tile.q());
    at_put_tail(tails, at_score_tail{});
    for (int begin = 0; begin < block.keys; begin += AT_MMA_KEYS) {
        at_wgmma_load_kv<D>(block, begin, tile);
        at_proxy_fence(); /* covers q, too, the first time */
        at_sync();
        float s[2][1][4] = {}; /* two products of 8 columns */
        at_wgmma_scores<D>(tile.q(), tile.k(), s);
        at_wgmma_wait<0>(s);
        uint32_t p[4];
        at_score_tail tail;
        at_take_tail(tails, tail);
        at_fragment_gates(block.queries, gate, at_fragments(s), begin, tail, p);
        at_put_tail(tails, tail);
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
        return at_mma_launch(launch, attend<D>, AT_WGMMA_WARPS,
                             tiles<D>::BYTES + tiles<D>::P_BYTES + tiles<D>::TAIL_BYTES);
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 12_wgmma_fir_in_fragment) = {
    .summary = "wgmma; the filter by shuffles in the fragments; P in shared memory",
    .source = "000 3.2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
