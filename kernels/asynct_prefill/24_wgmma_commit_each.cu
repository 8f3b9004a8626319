/* AsyncT prefill on wgmma: every product is committed and waited for by itself.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 11_wgmma_full, which commits all products of a tile at once, d / 8 of q.k and d / 8 of P V, and waits once for
 * each of the two. Here no product begins before the one before it is done: what a single commit is worth.
 *
 * Numerically: as 11, to the bit: the order of products is the same.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), a warpgroup; shared memory 192 d + 2064 bytes and 256
 * (15 + K) bytes of scores. Three barriers of the block and d / 4 waits for products a tile of 16 keys.
 *
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 3.1, the form before its single commit. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

using T = at_bf16;
template <int D> using tiles = at_wgmma_tiles<T, D>;

/* sum[n] += a b, done. */
template <int N> __device__ __forceinline__ void multiply(float (&sum)[N][1][4], int n, at_matrix a, at_matrix b) {
    at_wgmma_fence(sum);
    at_wgmma(sum[n], a, b, T{}, T{});
    at_wgmma_commit();
    at_wgmma_wait<0>(sum);
}

/* s += q.k of a tile, done. */
template <int D> __device__ __forceinline__ void scores(const T *q, const T *k, float (&s)[2][1][4]) {
    AT_UNROLL
    for (int i = 0; i < D / 16; i++)
        for (int n = 0; n < 2; n++)
            multiply(s, n, at_core_matrix(q + 2 * AT_WGMMA_CORE * i, D),
                     at_core_matrix(k + 8 * n * D + 2 * AT_WGMMA_CORE * i, D));
}

/* o += P V of a tile, done. */
template <int D> __device__ __forceinline__ void values(const T *p, const T *v, float (&o)[D / 8][1][4]) {
    AT_UNROLL
    for (int i = 0; i < D / 8; i++)
        multiply(o, i, at_core_matrix(p, AT_MMA_KEYS), at_core_matrix(v + 8 * i * AT_MMA_KEYS, AT_MMA_KEYS));
}

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
        scores<D>(tile.q(), tile.k(), s);
        rows.put(at_fragments(s));
        at_sync_warp();
        uint32_t p[4];
        rows.gates(block.queries, begin, p);
        at_sync_warp();
        rows.keep_tail();
        at_wgmma_put_p(block, p, tile.p());
        at_proxy_fence();
        at_sync();
        if (tile.noted())
            at_wgmma_values_by_query(block.queries, begin, p, tile.v(), o);
        else
            values<D>(tile.p(), tile.v(), o);
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

AT_KERNEL(asynct_prefill, 24_wgmma_commit_each) = {
    .summary = "11_wgmma_full with a commit and a wait for each product",
    .source = "000 3.1",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
