/* Softmax decode: the keys of a query cut into sixteen ranges, a block for each; a second launch joins their parts.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 03_flash_decoding, whose ranges have 256 keys, a row of n keys has 16 ranges of n / 16 keys, rounded
 * up to a multiple of 16: as many blocks whatever the length. The rest is the same: q.k is eight chains of fmaf joined by a
 * butterfly, a range knows its maximum before the first exponential and leaves its sums undivided, P.V by one chain of fmaf
 * a channel; ranges are joined in ascending order with weights e^(own maximum - the row's); one division at the end.
 * Exponentials are our own, within one ulp and with the same bits everywhere.
 * Launch: grid (query heads, requests, 16), 128 threads, shared memory 4 bytes a key of the longest range that a request's
 * pages can hold, three barriers. Then grid (query heads, requests), 128 threads, which join the ranges. Scratch: 4 (d + 2)
 * bytes for each query head and range.
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; at most 901,120 keys a request.
 * Source: 003, flash-decoding, whose number of splits is a parameter. */
#include "kernels/softmax_decode/softmax_splits.h"

namespace {

constexpr int GROUP = 8, SPLITS = 16;

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    attend_range(at_softmax_view<T> a, float *workspace) {
    AT_SHARED_DYNAMIC(float, row);
    const at_softmax_query<T> query(a);
    const int range = at_splits<SPLITS>::range(query.keys), begin = (int)blockIdx.z * range,
              end = query.keys < begin + range ? query.keys : begin + range;
    if (query.absent() || begin >= end)
        return;
    const at_query_run<D, GROUP> q(query.q());
    at_decode_scores<GROUP>(query, begin, end, row, [&](int t) { return q.part(query.k(t)); });
    at_sync();
    const at_softmax_total all = at_softmax_weights<AT_DECODE_THREADS>(row, end - begin);
    float *part = at_softmax_part_of(a, query.request, query.head, workspace, SPLITS, (int)blockIdx.z);
    for (int c = (int)threadIdx.x; c < D; c += AT_DECODE_THREADS)
        part[c] = at_decode_every(query, row, begin, end, c);
    if (threadIdx.x == 0) {
        part[D] = all.max;
        part[D + 1] = all.sum;
    }
}

int launch(const struct at_launch *launch) {
    const bool f16 = launch->problem->dtype == AT_F16;
    return at_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return f16 ? at_softmax_splits_launch<SPLITS>(launch, attend_range<at_f16, D>)
                   : at_softmax_splits_launch<SPLITS>(launch, attend_range<at_bf16, D>);
    });
}

} // namespace

AT_KERNEL(softmax_decode, 03_flash_decoding_splits_16) = {
    .summary = "16 ranges, a block each; a second launch joins them by their maxima and sums",
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
        .split = AT_SPLITS_UNIT,
        .splits = SPLITS,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = at_softmax_splits_declines<SPLITS>,
    .workspace = at_softmax_splits_workspace<SPLITS>,
    .launch = launch,
};
