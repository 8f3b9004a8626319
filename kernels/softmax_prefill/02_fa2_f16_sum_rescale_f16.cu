/* Softmax prefill in the shape of FlashAttention 2: f16, sums in f16, rescaled by f16 factors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 02_fa2_f16_sum, the factor by which a step rescales sums of P V is rounded to f16 first, so that the
 * rescaling is one f16 product; from 2^-25 down it is 0. The sum of weights keeps the factor in f32, so its error does not
 * cancel in the quotient. Sums of q.k and P V are f16: each step of 16 products and each rescaling is rounded to nearest,
 * and an overflow stays infinite. 64 keys a step of the online softmax; exponentials are our own, within one ulp; P is
 * rounded to f16, the sum of weights is in f32 of unrounded ones; one division at the end.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 256 (d + 8)
 * bytes for 64 keys of K and V; two barriers of the block a tile of keys.
 * Limits: f16; d 32, 64, 96 or 128.
 * Source: 003 for the shape, 004 for sums and rescaling in f16. */
#include "kernels/softmax_prefill/softmax_prefill_mma.h"

namespace {

/* Sums in f16 that take their factor in f16. A product of two f16 is exact in f32, so scale() rounds once. */
struct sum_scaled_in_f16 : at_sum_f16<AT_GUARD_NONE> {
    __device__ void scale(float factor, int row) {
        at_sum_f16<AT_GUARD_NONE>::scale(at_float(at_round_to<at_f16>(factor)), row);
    }
};

template <int D> __global__ void __launch_bounds__(32 * AT_FA2_WARPS, 1) attend(at_softmax_view<at_f16> a) {
    AT_SHARED_DYNAMIC(at_f16, k);
    at_f16 *v = k + AT_FA2_TILE<D>;
    const at_mma_block<at_f16, AT_FA2_WARPS> block(a);
    const at_mma_queries<at_f16> &queries = block.queries; /* of this warp */
    if (block.empty())
        return;
    const at_mma_q<D, at_f16> q(queries);
    at_online_rows rows(a.scale);
    sum_scaled_in_f16 o[D / 8] = {};
    for (int begin = 0; begin < block.keys; begin += AT_SOFTMAX_KEYS) {
        at_mma_stage<D, AT_SOFTMAX_KEYS>(a, queries.request, queries.kv_head, begin, block.keys, k, v);
        at_sync();
        if (begin < queries.keys) {
            float s[AT_SOFTMAX_KEYS / 8][4];
            at_softmax_scores<at_sum_f16<AT_GUARD_NONE>>(rows, queries, q, k, begin, s);
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

AT_KERNEL(softmax_prefill, 02_fa2_f16_sum_rescale_f16) = {
    .summary = "mma.sync, online softmax, 16 queries a warp, 64 keys a tile; f16, sums in f16, rescaled by f16 factors",
    .source = "003, 004",
    .numerics = {
        .qk_unit = AT_UNIT_TC_F16,
        .qk_lanes = 1,
        .scale_on = AT_SCALE_ON_SCORE,
        .p = AT_F16,
        .exp = AT_EXP_LIBM,
        .block = AT_SOFTMAX_KEYS,
        .rescale = AT_RESCALE_F16,
        .pv_unit = AT_UNIT_TC_F16,
        .pv_chunk = 16,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
