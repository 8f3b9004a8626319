/* Softmax prefill in the shape of FlashAttention 2: f16, sums in f16, a finished score that is infinite becomes 65504.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 02_fa2_f16_sum_guarded looks at every step of both products; this is the guard of source 004 as it stands there.
 *
 * Numerically: as 02_fa2_f16_sum, but for an infinity that a whole q.k leaves, which is written as 65504 of its sign
 * before the scale; a NaN stays one, also where an infinity on the way has become it. P V has no guard.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 256 (d + 8)
 * bytes for 64 keys of K and V; two barriers of the block a tile of keys.
 * Limits: f16; d 32, 64, 96 or 128.
 * Source: 003 for the shape, 004 for sums in f16 and the guard. */
#include "kernels/softmax_prefill/softmax_prefill_mma.h"

namespace {

template <int D> __global__ void __launch_bounds__(32 * AT_FA2_WARPS, 1) attend(at_softmax_view<at_f16> a) {
    AT_SHARED_DYNAMIC(at_f16, k);
    at_f16 *v = k + AT_FA2_TILE<D>;
    const at_mma_block<at_f16, AT_FA2_WARPS> block(a);
    const at_mma_queries<at_f16> &queries = block.queries; /* of this warp */
    if (block.empty())
        return;
    const at_mma_q<D, at_f16> q(queries);
    at_online_rows rows(a.scale);
    at_sum_f16<AT_GUARD_NONE> o[D / 8] = {};
    for (int begin = 0; begin < block.keys; begin += AT_SOFTMAX_KEYS) {
        at_mma_stage<D, AT_SOFTMAX_KEYS>(a, queries.request, queries.kv_head, begin, block.keys, k, v);
        at_sync();
        if (begin < queries.keys) {
            float s[AT_SOFTMAX_KEYS / 8][4];
            at_softmax_scores<at_sum_f16<AT_GUARD_SCORE>>(rows, queries, q, k, begin, s);
            at_softmax_update(rows, s, o);
            at_softmax_values<D>(queries, begin, s, v, o);
        }
        at_sync(); /* before the next tile overwrites this one */
    }
    at_softmax_store(a, queries, rows, o);
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "activations are f16" : at_mma_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_fa2_launch<at_f16>(launch, []<int D>() { return attend<D>; });
}

} // namespace

AT_KERNEL(softmax_prefill, 02_fa2_f16_sum_score_guarded) = {
    .summary = "02_fa2_f16_sum with one guard: a finished score that is infinite becomes 65504",
    .source = "003, 004",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F16, AT_F16, AT_SOFTMAX_KEYS, 0, AT_GUARD_SCORE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
