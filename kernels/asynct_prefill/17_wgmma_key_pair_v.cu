/* AsyncT prefill on wgmma: V is stored to shared memory two keys at a time.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 15, but a thread loads channels of two neighbouring rows of V and stores pairs: half as many stores.
 *
 * Numerically: as mma.sync (04_mma): 16 products a step, sums in f32, P rounded to bf16, a key with p = 0 counts.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), a warpgroup; shared memory 192 d + 2064 bytes. Three
 * barriers of the block a tile of 16 keys.
 *
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 32, 64, 96 or 128; at most 3 taps, a ReLU before the filter, a
 * gate from 0 to 1.
 *
 * Source: 000 section 6.7, where it cost 10 %: fewer bank conflicts, but its threads' loads of V were no longer
 * neighbours. Here neighbouring threads still load neighbouring channels, of two rows each. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

using T = at_bf16;
template <int D> using tiles = at_wgmma_tiles<T, D>;

template <int D> __device__ void load_k(const at_wgmma_block<T> &block, int begin, T *k) {
    const at_key_by_table<T> key{ block.queries };
    at_wgmma_each_of_kv<D>(begin, block.keys, key, [&](int row, int channel, int64_t from) {
        T x[8] = {};
        if (from >= 0)
            at_load16(block.queries.a.k + from, x);
        at_store16(k + at_core(row, channel, D), x);
    });
}

/* V of a tile by channels, two keys a store. Whether a row that some query does not see holds an infinity or a NaN. */
template <int D> __device__ bool load_v(const at_wgmma_block<T> &block, int begin, T *v) {
    constexpr int EACH = 8, PARTS = D / EACH;
    const at_key_by_table<T> key{ block.queries };
    bool found = false;
    for (int i = (int)threadIdx.x; i < AT_MMA_KEYS / 2 * PARTS; i += AT_WGMMA_THREADS) {
        const int row = i / PARTS * 2, channel = i % PARTS * EACH;
        T from[2][EACH] = {};
        for (int n = 0; n < 2; n++)
            if (begin + row + n < block.keys)
                at_load16(block.queries.a.v + channel + key(begin + row + n), from[n]);
        for (int j = 0; j < EACH; j++) {
            for (int n = 0; n < 2; n++) {
                const float x = at_float(from[n][j]);
                found |= begin + row + n >= block.least && !(x - x == 0.0f);
            }
            at_store32(v + at_core(channel + j, row, AT_MMA_KEYS), at_pair(from[0][j], from[1][j]));
        }
    }
    return at_ballot(0xffffffffu, found) != 0;
}

template <int D> __global__ void __launch_bounds__(AT_WGMMA_THREADS, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const tiles<D> tile{ memory };
    const at_wgmma_block<T> block(a);
    if (block.empty())
        return;
    const at_unit_gate gate(a, block.queries.head);
    at_score_tail tail;
    float o[D / 16][2][4] = {};
    at_wgmma_load_q<D>(block, tile.q());
    for (int begin = 0; begin < block.keys; begin += AT_MMA_KEYS) {
        load_k<D>(block, begin, tile.k());
        tile.note(load_v<D>(block, begin, tile.v()));
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

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_mma_launch(launch, attend<D>, AT_WGMMA_WARPS, tiles<D>::BYTES + tiles<D>::P_BYTES);
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 17_wgmma_key_pair_v) = {
    .summary = "as 15 with stores of V by pairs of keys",
    .source = "000 6.7",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_wgmma_constants_decline,
    .workspace = nullptr,
    .launch = launch,
};
