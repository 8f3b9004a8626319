/* AsyncT decode: sixteen threads share the dot product of a key.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 03_pv_zero_skip with sixteen threads a key where that has eight; 08_group_of_4 says why each width is a
 * variant.
 *
 * Numerically: unlike 03, q.k is sixteen chains of fmaf over d / 16 neighbouring channels each, joined by a
 * butterfly; keys with p = 0 are left out.
 *
 * Launch: grid (query heads, requests), 128 threads; shared memory 8 bytes a key.
 *
 * Limits: f16 or bf16; d a multiple of 16; at most 28,160 keys a request.
 *
 * Source: 000 section 6.11: the best there from 64 requests on. */
#include "kernels/attention/asynct_decode.h"

namespace {

constexpr int GROUP = 16;

template <class T> __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    const at_decode_query<T> query(a);
    const int keys = query.keys;
    float *p = row + keys;
    if (query.absent())
        return;
    at_decode_scores<GROUP>(query, 0, keys, row,
                            [&](int t) { return at_group_part<GROUP>(query.q(), query.k(t), a.d); });
    at_sync();
    at_decode_gates(query, row, 0, 0, keys, p);
    at_sync();
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS)
        query.put(c, at_decode_live(query, p, 0, keys, c));
}

const char *supports(const struct at_problem *problem) {
    return problem->sizes.d % GROUP ? "d is no multiple of 16" : at_asynct_declines(problem, 8);
}

int launch(const struct at_launch *launch) {
    return at_decode_launch(launch, attend<at_f16>, attend<at_bf16>, launch->problem->sizes.capacity * 8);
}

} // namespace

AT_KERNEL(asynct_decode, 18_group_of_16) = {
    .summary = "groups of 16 threads share the dot product of a key",
    .source = "000 6.11",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 16,
        .qk_tree = AT_TREE_BUTTERFLY,
        .scale_on = AT_SCALE_ON_SCORE,
        .fir_order = AT_FIR_ORDER_TAPS,
        .fir_fma = 1,
        .p = AT_F32,
        .gamma_on = AT_GAMMA_ON_P,
        .clamp = AT_CLAMP_FMINMAX,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
