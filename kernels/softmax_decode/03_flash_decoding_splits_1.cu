/* Softmax decode: the keys of a query as one range, one block; a second launch divides what it leaves.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 03_flash_decoding, whose ranges have 256 keys, a row is one range however long it is: what more
 * splits are timed against. The rest is the same: q.k is eight chains of fmaf joined by a butterfly, the maximum is known
 * before the first exponential, P.V is one chain of fmaf a channel; a join with nothing else changes no bit; one division at
 * the end. Exponentials are our own, within one ulp and with the same bits everywhere.
 * Launch: grid (query heads, requests, 1), 128 threads, shared memory 4 bytes a key that a request's pages can hold,
 * three barriers. Then grid (query heads, requests), 128 threads, which divide. Scratch: 4 (d + 2) bytes for each query
 * head.
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; at most 56,320 keys a request.
 * Source: 003, flash-decoding, whose number of splits is a parameter. */
#include "kernels/softmax_decode/softmax_splits.h"

namespace {

constexpr int GROUP = 8, SPLITS = 1;

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

AT_KERNEL(softmax_decode, 03_flash_decoding_splits_1) = {
    .summary = "one range, a block for each query head; a second launch divides",
    .source = "003",
    /* not tested: split: one range is as long as its row, whatever its length would be a multiple of */
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
