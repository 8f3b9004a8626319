/* AsyncT decode: the keys are cut into ranges of 512, each for a block of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 11_split_k_paired with ranges twice as long.
 *
 * Numerically: as 11_split_k_paired with half as many partial outputs: each range is summed on its own, and the f32
 * sums are added in ascending order.
 *
 * Launch: grid (query heads, requests, ranges that the longest request can have), 128 threads, shared memory 8 bytes
 * a key of a range and its halo; then grid (query heads, requests), 128 threads.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256.
 *
 * Source: 000 section 7.2. */
#include "kernels/asynct_decode/asynct_split.h"

namespace {

constexpr int GROUP = 8, RANGE = 512;

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    attend_range(at_asynct_view<T> a, float *partials) {
    AT_SHARED_DYNAMIC(float, row);
    const at_decode_query<T> query(a);
    const at_split_range_of<RANGE> range(query);
    float *p = row + at_split_row<RANGE>(a.n_taps);
    if (query.absent() || range.empty())
        return;
    const at_query_run<D, GROUP> q(query.q());
    at_decode_scores<GROUP>(query, range.first, range.end, row, [&](int t) { return q.part(query.k(t)); });
    at_sync();
    at_decode_gates(query, row, range.first, range.begin, range.end, p);
    at_sync();
    float *partial = at_split_partial(query, partials, (int)gridDim.z, (int)blockIdx.z);
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS)
        partial[c] = at_decode_live(query, p, range.begin, range.end, c);
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_sized_declines(problem, 0); }

int launch(const struct at_launch *launch) {
    return at_with_head_size(launch->problem->sizes.d, [launch]<int D>() {
        return at_split_launch<RANGE>(launch, attend_range<at_f16, D>, attend_range<at_bf16, D>, 0);
    });
}

} // namespace

AT_KERNEL(asynct_decode, 11_split_k_of_512) = {
    .summary = "ranges of 512 keys; two channels of K a load, q in registers",
    .source = "000 7.2",
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
        .split = RANGE,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = at_split_workspace<RANGE>,
    .launch = launch,
};
