/* AsyncT prefill on wgmma: q.k by wgmma, P V still by mma.sync.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 04_mma, a warpgroup multiplies its 64 queries by the 16 keys of a tile at once, q and K from shared memory.
 * The rest is as there: scores go through shared memory to the gate, P stays in registers.
 *
 * Numerically: as mma.sync (04_mma): 16 products a step, sums in f32, P rounded to bf16, a key with p = 0 counts.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), a warpgroup; shared memory 192 d + 272 bytes and 256
 * (15 + K) bytes of scores. Two barriers of the block a tile of 16 keys.
 *
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 3.1. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

using T = at_bf16;
template <int D> using tiles = at_wgmma_tiles<T, D, AT_MMA_KEYS * AT_MMA_STRIDE<D>>;

/* K in core matrices for wgmma, V in rows for mma.sync. */
template <int D> __device__ void load_kv(const at_wgmma_block<T> &block, int begin, T *k, T *v) {
    const at_attention_view<T> &a = block.queries.a;
    const at_key_by_table<T> key{ block.queries };
    at_wgmma_each_of_kv<D>(begin, block.keys, key, [&](int row, int channel, int64_t from) {
        T from_k[8] = {}, from_v[8] = {};
        if (from >= 0) {
            at_load16(a.k + from, from_k);
            at_load16(a.v + from, from_v);
        }
        at_store16(k + at_core(row, channel, D), from_k);
        at_store16(v + row * AT_MMA_STRIDE<D> + channel, from_v);
    });
}

template <int D> __global__ void __launch_bounds__(AT_WGMMA_THREADS, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const tiles<D> tile{ memory };
    const at_wgmma_block<T> block(a);
    if (block.empty())
        return;
    const int length = at_mma_row_length<AT_MMA_KEYS>(a.n_taps);
    const at_score_rows<T, AT_MMA_KEYS> rows(a, block.queries.head,
                                             tile.instead_of_p() + block.warp * AT_MMA_ROWS * length);
    at_sum_f32 o[D / 8] = {};
    at_wgmma_load_q<D>(block, tile.q());
    for (int begin = 0; begin < block.keys; begin += AT_MMA_KEYS) {
        load_kv<D>(block, begin, tile.k(), tile.v());
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
        at_mma_values<D>(block.queries, begin, p, tile.v(), o);
        at_sync();
    }
    at_asynct_store(a, block.queries, o);
}

const char *supports(const struct at_problem *problem) { return at_wgmma_declines(problem, INT64_MAX); }

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_mma_launch(launch, attend<D>, AT_WGMMA_WARPS,
                             tiles<D>::BYTES + at_mma_rows_bytes<AT_MMA_KEYS>(AT_WGMMA_WARPS, launch));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 10_wgmma_qk) = {
    .summary = "wgmma for q.k, mma.sync for P.V; scores in shared memory",
    .source = "000 3.1",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
