/* AsyncT prefill on wgmma: q.k and P V by wgmma.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 10, V lies in shared memory by channels, and P goes through shared memory, too, with a proxy fence and a
 * barrier more. A tile of V with infinities or NaNs in hidden rows is still multiplied by mma.sync.
 *
 * Numerically: as mma.sync (04_mma): 16 products a step, sums in f32, P rounded to bf16, a key with p = 0 counts.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), a warpgroup; shared memory 192 d + 2064 bytes and 256
 * (15 + K) bytes of scores. Three barriers of the block a tile of 16 keys.
 *
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 3.1. */
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
    const int length = at_mma_row_length<AT_MMA_KEYS>(a.n_taps);
    const at_score_rows<T, AT_MMA_KEYS> rows(a, block.queries.head,
                                             tile.behind_p() + block.warp * AT_MMA_ROWS * length);
    float o[D / 8][1][4] = {};
    at_wgmma_load_q<D>(block, tile.q());
    for (int begin = 0; begin < block.keys; begin += AT_MMA_KEYS) {
        at_wgmma_load_kv<D>(block, begin, tile);
        at_proxy_fence(); /* covers q, too, the first time */
        at_sync();
        float s[2][1][4] = {}; /* two products of 8 columns */
        at_wgmma_scores<D>(tile.q(), tile.k(), s);
        at_wgmma_wait<0>(s);
        rows.put(at_fragments(s));
        at_sync_warp();
        uint32_t p[4];
        rows.gates(block.queries, begin, p);
        at_sync_warp();
        rows.keep_tail();
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

const char *supports(const struct at_problem *problem) { return at_wgmma_declines(problem, INT64_MAX); }

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_mma_launch(launch, attend<D>, AT_WGMMA_WARPS,
                             tiles<D>::BYTES + tiles<D>::P_BYTES +
                                 at_mma_rows_bytes<AT_MMA_KEYS>(AT_WGMMA_WARPS, launch));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 11_wgmma_full) = {
    .summary = "wgmma for q.k and P.V; scores and P in shared memory",
    .source = "000 3.1",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
