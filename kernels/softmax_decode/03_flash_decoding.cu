/* Softmax decode: the keys of a query cut into ranges of 256, a block for each; a second launch joins their parts.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 02_block_merge, q.k is eight chains of fmaf joined by a butterfly; a range has 256 keys, knows
 * its maximum before the first exponential and leaves its sums undivided, P.V by one chain of fmaf a channel. Ranges
 * are joined in ascending order with weights e^(own maximum - the row's), which is the merge by lse; one division at
 * the end. Exponentials are our own, within one ulp and with the same bits everywhere.
 * Launch: grid (query heads, requests, ranges that the longest request can have), 128 threads, shared memory 4 bytes a
 * key of a range, three barriers. Then grid (query heads, requests), 128 threads, which join the ranges. Scratch: 4
 * (d + 2) bytes for each query head and range.
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256.
 * Source: 003, flash-decoding. */
#include "kernels/softmax_decode/softmax_split.h"

namespace {

constexpr int GROUP = 8, RANGE = AT_SPLIT_RANGE;

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    attend_range(at_softmax_view<T> a, float *workspace) {
    AT_SHARED_DYNAMIC(float, row);
    const at_softmax_query<T> query(a);
    const int begin = (int)blockIdx.z * RANGE, end = query.keys < begin + RANGE ? query.keys : begin + RANGE;
    if (query.absent() || begin >= end)
        return;
    const at_query_run<D, GROUP> q(query.q());
    at_decode_scores<GROUP>(query, begin, end, row, [&](int t) { return q.part(query.k(t)); });
    at_sync();
    const at_softmax_total all = at_softmax_weights<AT_DECODE_THREADS>(row, end - begin);
    float *part = at_softmax_part_of(a, query.request, query.head, workspace, (int)gridDim.z, (int)blockIdx.z);
    for (int c = (int)threadIdx.x; c < D; c += AT_DECODE_THREADS)
        part[c] = at_decode_every(query, row, begin, end, c);
    if (threadIdx.x == 0) {
        part[D] = all.max;
        part[D + 1] = all.sum;
    }
}

const char *supports(const struct at_problem *problem) {
    const char *reason = at_head_size_declines(problem);
    return reason ? reason : at_attention_declines(problem, 0);
}

int launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const int64_t shared = RANGE * (int64_t)sizeof(float);
    const bool f16 = launch->problem->dtype == AT_F16;
    return at_with_head_size(z->d, [=]<int D>() {
        return f16 ? at_softmax_split_launch<RANGE>(launch, attend_range<at_f16, D>, z->h, shared)
                   : at_softmax_split_launch<RANGE>(launch, attend_range<at_bf16, D>, z->h, shared);
    });
}

} // namespace

AT_KERNEL(softmax_decode, 03_flash_decoding) = {
    .summary = "ranges of 256 keys, a block each; a second launch joins them by their maxima and sums",
    .source = "003",
    /* not tested: block: f32 rescaling is of the size that another right exponential may be off by */
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 8,
        .qk_tree = AT_TREE_BUTTERFLY,
        .scale_on = AT_SCALE_ON_SCORE,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .split = RANGE,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = at_softmax_split_workspace<RANGE>,
    .launch = launch,
};
