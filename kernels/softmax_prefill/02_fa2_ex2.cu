/* Softmax prefill in the shape of FlashAttention 2 by the special-function unit: ex2, rcp and lg2 in place of e^x,
 * division and log; bf16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_fa2 in both products (tensor core, 16 products an instruction, in f32), in tiles and the format
 * of P. Weights are ex2.approx.ftz of fma(dot, b, -(max b)), b = scale log2(e): no score is scaled by itself, as in
 * the fast kernels of the field. The sum of weights is of unrounded ones, in the four lanes that share a row, two
 * keys of every eight each, joined by a butterfly; sums of V are multiplied by rcp.approx.ftz of it; lse by
 * lg2.approx.ftz. Every bit is declared.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 256 (d + 8)
 * bytes for 64 keys of K and V; two barriers of the block a tile of keys.
 * Limits: bf16; d 32, 64, 96 or 128; scales from 2^-64 to 2^64.
 * Source: 003, the shape of FlashAttention 2. */
#include "kernels/softmax_prefill/softmax_prefill_mma.h"

namespace {

using exponential = at_softmax_ex2<AT_DIVIDE_RCP_APPROX_FTZ>;

template <int D> __global__ void __launch_bounds__(32 * AT_FA2_WARPS, 1) attend(at_softmax_view<at_bf16> a) {
    AT_SHARED_DYNAMIC(at_bf16, k);
    at_bf16 *v = k + AT_FA2_TILE<D>;
    const at_mma_block<at_bf16, AT_FA2_WARPS> block(a);
    const at_mma_queries<at_bf16> &queries = block.queries; /* of this warp */
    if (block.empty())
        return;
    const at_mma_q<D, at_bf16> q(queries);
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
    const char *reason = problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
    return reason ? reason : at_softmax_ex2_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_fa2_launch<at_bf16>(launch, []<int D>() { return attend<D>; });
}

} // namespace

AT_KERNEL(softmax_prefill, 02_fa2_ex2) = {
    .summary = "02_fa2 with ex2.approx of folded arguments, rcp.approx and lg2.approx; every bit declared",
    .source = "003",
    .numerics = AT_SOFTMAX_EX2_NUMERICS(AT_BF16, AT_SOFTMAX_KEYS, 0, AT_DIVIDE_RCP_APPROX_FTZ, 0),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
