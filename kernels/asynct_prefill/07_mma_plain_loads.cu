/* AsyncT prefill on mma.sync: operands from shared memory without ldmatrix.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 04_mma, but each lane loads the elements of its operands itself: a pair of K's channels is one load of 32 bits;
 * a pair of V's keys lies in two rows and takes two loads of 16 bits.
 *
 * Numerically: as 04_mma.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 64 (d + 8)
 * bytes for 16 keys and 256 (15 + K) bytes of scores. Two barriers of the block and two of each warp a tile of 16
 * keys.
 *
 * Limits: bf16; d 32, 64, 96 or 128.
 *
 * Source: 000 section 2, whose first version packs operands by hand and whose next one has ldmatrix, as 04_mma has. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

using T = at_bf16;
using sum = at_sum_f32;
constexpr int WARPS = 4, KEYS = AT_MMA_KEYS;
template <int D> using shared = at_mma_shared<T, D, KEYS>;

/* In the place of at_mma_ldmatrix. */
struct plain_loads {
    template <int STRIDE, class F> static __device__ void by_row(uint32_t (&r)[4], const T *tile, F place) {
        const int g = at_lane() / 4, t = at_lane() % 4;
        for (int m = 0; m < 4; m++)
            r[m] = at_load32(tile + place(m) + g * STRIDE + 2 * t);
    }
    template <int STRIDE, class F> static __device__ void by_column(uint32_t (&r)[4], const T *tile, F place) {
        const int g = at_lane() / 4, t = at_lane() % 4;
        for (int m = 0; m < 4; m++) {
            const T *first = tile + place(m) + 2 * t * STRIDE + g;
            r[m] = first[0].bits | (uint32_t)first[STRIDE].bits << 16;
        }
    }
};

template <int D> __global__ void __launch_bounds__(32 * WARPS, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const shared<D> tile{ memory };
    const at_mma_block<T, WARPS> block(a);
    if (block.empty())
        return;
    const at_mma_queries<T> &queries = block.queries;
    at_mma_warp<T, D, sum, KEYS, plain_loads> warp(a, queries, tile.rows(block.warp, a.n_taps));
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

AT_KERNEL(asynct_prefill, 07_mma_plain_loads) = {
    .summary = "04 with operands loaded by 32 and 16 bits, without ldmatrix",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_mma_bf16_declines,
    .workspace = nullptr,
    .launch = launch,
};
