/* AsyncT decode: ranges of 256 keys, and in each a list of the keys whose p is not 0.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The ranges are those of 11_split_k_paired, the list that of 12_sparse_p.
 *
 * Numerically: unlike 11_split_k_paired, P V of a range adds in the order in which threads reached the list's
 * counter: not declared, and other bits each time.
 *
 * Launch: grid (query heads, requests, ranges that the longest request can have), 128 threads, shared memory 12
 * bytes a key of a range and its halo; then grid (query heads, requests), 128 threads.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256.
 *
 * Source: 000 section 7.4. */
#include "kernels/asynct_decode/asynct_split.h"

namespace {

constexpr int GROUP = 8;

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    attend_range(at_asynct_view<T> a, float *partials) {
    AT_SHARED_DYNAMIC(float, row);
    AT_SHARED(uint32_t, live);
    const at_decode_query<T> query(a);
    const at_split_range range(query);
    float *p = row + at_split_row(a.n_taps);
    int *list = reinterpret_cast<int *>(p + AT_SPLIT_RANGE);
    if (query.absent() || range.empty())
        return;
    if (threadIdx.x == 0)
        live = 0;
    const at_query_run<D, GROUP> q(query.q());
    at_decode_scores<GROUP>(query, range.first, range.end, row, [&](int t) { return q.part(query.k(t)); });
    at_sync();
    at_decode_gates_listed(query, row, range.first, range.begin, range.end, p, list, &live);
    at_sync();
    float *partial = at_split_partial(query, partials, (int)gridDim.z, (int)blockIdx.z);
    for (int c = (int)threadIdx.x; c < D; c += AT_DECODE_THREADS)
        partial[c] = at_decode_listed(query, p, range.begin, list, (int)live, c);
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_sized_declines(problem, 0); }

int launch(const struct at_launch *launch) {
    return at_with_head_size(launch->problem->sizes.d, [launch]<int D>() {
        return at_split_launch(launch, attend_range<at_f16, D>, attend_range<at_bf16, D>,
                               AT_SPLIT_RANGE * (int64_t)sizeof(int));
    });
}

} // namespace

AT_KERNEL(asynct_decode, 13_split_k_sparse_p) = {
    .summary = "ranges of 256 keys; a list of the keys with p != 0 in each",
    .source = "000 7.4",
    /* not tested: gamma_on: on p or on the output is one rounding of f32, which a limit does not resolve */
    .numerics = {
        .free_order = 1,
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
        .repeats = 0,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = at_split_workspace<>,
    .launch = launch,
};
