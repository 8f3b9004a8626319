/* AsyncT prefill: wgmma where it fits and pays, mma.sync elsewhere, with the same bits.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two kernels, the first like 15_wgmma_gate_constants, the second like 04_mma. Sizes and parameters alone decide,
 * which a captured graph keeps; lengths do not. The first runs for 1024 elements a query (h d), pages of 16, three
 * taps, a ReLU before the filter, a gate from 0 to 1, and a request with room for 64 queries at least.
 *
 * Numerically: as mma.sync (04_mma), whichever runs, because wgmma sums as mma.sync does. So a request's bits do not
 * depend on the others of its batch.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps. Shared memory by wgmma: 192 d + 2064 bytes; by
 * mma.sync: 64 (d + 8) bytes for 16 keys and 256 (15 + K) bytes of scores.
 *
 * Limits: bf16; d 32, 64, 96 or 128; the first kernel wants sm_90a, elsewhere its launch traps.
 *
 * Source: 000 sections 4 and 5.2, whose second kernel is 01_as_decode, with other bits. */
#include "attest/way.h"
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

using T = at_bf16;
constexpr int WARPS = AT_WGMMA_WARPS, KEYS = AT_MMA_KEYS;
constexpr int64_t QUERY_ELEMENTS = 1024, PAGE = 16, TAPS = 3;

template <int D> using tiles = at_wgmma_tiles<T, D>;
template <int D> using shared = at_mma_shared<T, D, KEYS>;

template <int D> __global__ void __launch_bounds__(AT_WGMMA_THREADS, 1) by_wgmma(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const tiles<D> tile{ memory };
    const at_wgmma_block<T> block(a);
    if (block.empty())
        return;
    const at_unit_gate gate(a, block.queries.head);
    at_score_tail tail;
    float o[D / 16][2][4] = {};
    at_wgmma_load_q<D>(block, tile.q());
    for (int begin = 0; begin < block.keys; begin += KEYS) {
        at_wgmma_load_kv<D>(block, begin, tile);
        at_proxy_fence(); /* covers q, too, the first time */
        at_sync();
        float s[1][2][4] = {};
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

template <int D> __global__ void __launch_bounds__(32 * WARPS, 1) by_mma(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const shared<D> tile{ memory };
    const at_mma_block<T, WARPS> block(a);
    if (block.empty())
        return;
    const at_mma_queries<T> &queries = block.queries;
    at_mma_warp<T, D, at_sum_f32, KEYS> warp(a, queries, tile.rows(block.warp, a.n_taps));
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

bool pays(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->h * z->d == QUERY_ELEMENTS && z->page == PAGE && z->taps == TAPS && z->max_sq >= AT_WGMMA_QUERIES &&
           !at_wgmma_constants_decline(problem);
}

int launch(const struct at_launch *launch) {
    const bool wgmma = pays(launch->problem);
    at_took_way(wgmma ? "wgmma" : "mma.sync");
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return wgmma ? at_mma_launch(launch, by_wgmma<D>, WARPS, tiles<D>::BYTES + tiles<D>::P_BYTES)
                     : at_mma_launch(launch, by_mma<D>, WARPS, shared<D>::bytes(WARPS, launch));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 19_dispatch) = {
    .summary = "wgmma for shapes it is made for, mma.sync for others, the same bits",
    .source = "000 4, 5.2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_mma_bf16_declines,
    .workspace = nullptr,
    .launch = launch,
};
