/* AsyncT decode: the keys are cut into ranges of 256, each for a block of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 02_cooperative_qk, a query has as many blocks as ranges. A range computes K - 1 scores to its left once
 * more; its partial output goes to the workspace, and a second kernel adds the partial outputs.
 *
 * Numerically: as 02 within a range; partial outputs are f32 and added in ascending order.
 *
 * Launch: grid (query heads, requests, ranges that the longest request can have), 128 threads, shared memory 8 bytes
 * a key of a range and its halo; then grid (query heads, requests), 128 threads.
 *
 * Limits: f16 or bf16; d a multiple of 8.
 *
 * Source: 000 section 5.2. */
#include "kernels/asynct_decode/asynct_split.h"

namespace {

constexpr int GROUP = 8;

template <class T>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    attend_range(at_asynct_view<T> a, float *partials) {
    AT_SHARED_DYNAMIC(float, row);
    const at_decode_query<T> query(a);
    const at_split_range range(query);
    float *p = row + at_split_row(a.n_taps);
    if (query.absent() || range.empty())
        return;
    at_decode_scores<GROUP>(query, range.first, range.end, row,
                            [&](int t) { return at_group_part<GROUP>(query.q(), query.k(t), a.d); });
    at_sync();
    at_decode_gates(query, row, range.first, range.begin, range.end, p);
    at_sync();
    float *partial = at_split_partial(query, partials, (int)gridDim.z, (int)blockIdx.z);
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS)
        partial[c] = at_decode_every(query, p, range.begin, range.end, c);
}

const char *supports(const struct at_problem *problem) {
    return problem->sizes.d % GROUP ? "d is no multiple of 8" : at_asynct_declines(problem, 0);
}

int launch(const struct at_launch *launch) {
    return at_split_launch(launch, attend_range<at_f16>, attend_range<at_bf16>, 0);
}

} // namespace

AT_KERNEL(asynct_decode, 07_split_k) = {
    .summary = "ranges of 256 keys, a block each; partial outputs added in order",
    .source = "000 5.2",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 8,
        .qk_tree = AT_TREE_BUTTERFLY,
        .scale_on = AT_SCALE_ON_SCORE,
        .fir_order = AT_FIR_ORDER_TAPS,
        .fir_fma = 1,
        .p = AT_F32,
        .gamma_on = AT_GAMMA_ON_P,
        .clamp = AT_CLAMP_FMINMAX,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .split = AT_SPLIT_RANGE,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = at_split_workspace<>,
    .launch = launch,
};
