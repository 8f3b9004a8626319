/* AsyncT prefill on mma.sync: the scale goes to q, which is rounded back to bf16.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 04_mma, which multiplies every score by the scale; here it multiplies q once, in registers, as many softmax
 * kernels have it. A tensor core takes q in bf16 alone.
 *
 * Numerically: unlike 04_mma, q times the scale is rounded to bf16 before the products, and the score is what they sum
 * to. With a scale that is a power of two the bits are those of 04_mma, unless they leave the normal numbers.
 *
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 64 (d + 8)
 * bytes for 16 keys and 256 (15 + K) bytes of scores. Two barriers of the block and two of each warp a tile of 16
 * keys.
 *
 * Limits: bf16; d 32, 64, 96 or 128.
 *
 * Source: ours. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

using T = at_bf16;
constexpr int WARPS = 4, KEYS = AT_MMA_KEYS;
template <int D> using shared = at_mma_shared<T, D, KEYS>;

/* Two neighbouring channels of q by the scale. */
__device__ inline uint32_t scaled(uint32_t pair, float scale) {
    return at_pack<T>(at_float(T{ (uint16_t)pair }) * scale, at_float(T{ (uint16_t)(pair >> 16) }) * scale);
}

template <int D> __global__ void __launch_bounds__(32 * WARPS, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const shared<D> tile{ memory };
    const at_mma_block<T, WARPS> block(a);
    if (block.empty())
        return;
    const at_mma_queries<T> &queries = block.queries;
    at_mma_q<D, T> q(queries);
    for (auto &step : q.x)
        for (uint32_t &pair : step)
            pair = scaled(pair, a.scale);
    at_asynct_view<T> unscaled = a; /* for the scores: q has the scale */
    unscaled.scale = 1.0f;
    const at_score_rows<T, KEYS> rows(unscaled, queries.head, tile.rows(block.warp, a.n_taps));
    at_sum_f32 o[D / 8] = {};
    for (int begin = 0; begin < block.keys; begin += KEYS) {
        at_mma_stage<D, KEYS>(a, queries.request, queries.kv_head, begin, block.keys, tile.k(), tile.v());
        at_sync();
        if (begin < queries.keys) {
            at_sum_f32 s[KEYS / 8] = {};
            at_mma_scores(q, tile.k(), s);
            rows.put(s);
            at_sync_warp();
            uint32_t p[KEYS / 4];
            rows.gates(queries, begin, p);
            at_mma_values<D>(queries, begin, p, tile.v(), o);
            at_sync_warp();
            rows.keep_tail();
        }
        at_sync();
    }
    at_asynct_store(a, queries, o);
}

int launch(const struct at_launch *launch) {
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return at_mma_launch(launch, attend<D>, WARPS, shared<D>::bytes(WARPS, launch));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 23_mma_q_rounded) = {
    .summary = "mma.sync; the scale multiplies q once, rounded to bf16",
    .source = "ours",
    .numerics = AT_ASYNCT_MMA_SCALED_NUMERICS(AT_UNIT_TC_F32, AT_BF16, 16, AT_GUARD_NONE, AT_SCALE_ON_Q_ROUNDED),
    .supports = at_mma_bf16_declines,
    .workspace = nullptr,
    .launch = launch,
};
