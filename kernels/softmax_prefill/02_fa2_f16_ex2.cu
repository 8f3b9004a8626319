/* Softmax prefill in the shape of FlashAttention 2 by the special-function unit, with a true division; f16, sums in
 * f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_fa2_f16 in both products (tensor core, 16 products an instruction, in f32), in tiles and the
 * format of P. Weights are ex2.approx.ftz of fma(dot, b, -(max b)), b = scale log2(e): no score is scaled by itself,
 * as in the fast kernels of the field. The sum of weights is of unrounded ones, in the four lanes that share a row,
 * two keys of every eight each, joined by a butterfly; one division at the end; lse by lg2.approx.ftz. Every bit is
 * declared.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 256 (d + 8)
 * bytes for 64 keys of K and V; two barriers of the block a tile of keys.
 * Limits: f16; d 32, 64, 96 or 128; scales from 2^-64 to 2^64.
 * Source: 003, the shape of FlashAttention 2. */
#include "kernels/softmax_prefill/softmax_prefill_mma.h"

namespace {

using exponential = at_softmax_ex2<AT_DIVIDE_DIVISION>;

template <int D> __global__ void __launch_bounds__(32 * AT_FA2_WARPS, 1) attend(at_softmax_view<at_f16> a) {
    AT_SHARED_DYNAMIC(at_f16, k);
    at_f16 *v = k + AT_FA2_TILE<D>;
    const at_mma_block<at_f16, AT_FA2_WARPS> block(a);
    const at_mma_queries<at_f16> &queries = block.queries; /* of this warp */
    if (block.empty())
        return;
    const at_mma_q<D, at_f16> q(queries);
    at_online_rows<exponential> rows(a.scale);
    at_sum_f32 o[D / 8] = {};
    for (int begin = 0; begin < block.keys; begin += AT_SOFTMAX_KEYS) {
        at_mma_stage<D, AT_SOFTMAX_KEYS>(a, queries.request, queries.kv_head, begin, block.keys, k, v);
        at_sync();
        if (begin < queries.keys) {
            float s[AT_SOFTMAX_KEYS / 8][4];
            at_softmax_scores<at_sum_f32>(rows, queries, q, k, begin, s);
            at_softmax_update(rows, s, o);
            at_softmax_values<D>(queries, begin, s, v, o);
        }
        at_sync(); /* before the next tile overwrites this one */
    }
    at_softmax_store(a, queries, rows, o);
}

const char *supports(const struct at_problem *problem) {
    const char *reason = problem->dtype != AT_F16 ? "activations are f16" : at_mma_declines(problem);
    return reason ? reason : at_softmax_ex2_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_fa2_launch<at_f16>(launch, []<int D>() { return attend<D>; });
}

} // namespace

AT_KERNEL(softmax_prefill, 02_fa2_f16_ex2) = {
    .summary = "02_fa2_f16 with ex2.approx of folded arguments and lg2.approx; a true division; every bit declared",
    .source = "003",
    .numerics = AT_SOFTMAX_EX2_NUMERICS(AT_F16, AT_SOFTMAX_KEYS, 0, AT_DIVIDE_DIVISION, 0),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
