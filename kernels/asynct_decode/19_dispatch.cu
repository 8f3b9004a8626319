/* AsyncT decode: batch and capacity pick one of four kernels whose bits are the same.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two choices: ranges of 256 keys each in a block of its own and added by a second kernel (as 11_split_k_paired), or
 * walked by one block that adds them as it goes; and a key shared by 16 threads, or by 8 that hold two lanes' chains
 * each. Batch and capacity decide, never lengths: a CUDA graph is replayed at lengths that its capture has not seen.
 *
 * Numerically: as 11_split_k_paired with 16 chains a dot product, whichever kernel runs.
 *
 * Launch: as 11_split_k_paired, or grid (query heads, requests), 128 threads, shared memory 8 bytes a key of a range
 * and its halo.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256.
 *
 * Source: 000 sections 5.2, 6.11 and 7.2; that no choice changes the bits is ours. */
#include "attest/way.h"
#include "kernels/asynct_decode/asynct_split.h"

namespace {

constexpr int LANES = 16;
/* The source's thresholds: wide groups from b 64, ranges from 512 keys while b does not fill the device by itself. */
constexpr int WIDE_BATCH = 64, SPLIT_CAPACITY = 512, SPLIT_BATCH = 64;

/* Scores and gates of one range to row and p; the barrier after it is the caller's. */
template <class T, class Q>
__device__ void attend_range(const at_decode_query<T> &query, const Q &q, const at_split_range &range, float *row,
                             float *p) {
    at_decode_scores<Q::THREADS>(query, range.first, range.end, row, [&](int t) { return q.part(query.k(t)); });
    at_sync();
    at_decode_gates(query, row, range.first, range.begin, range.end, p);
}

template <class T, int D, int GROUP>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    attend_split(at_asynct_view<T> a, float *partials) {
    AT_SHARED_DYNAMIC(float, row);
    const at_decode_query<T> query(a);
    const at_split_range range(query, (int)blockIdx.z);
    float *p = row + at_split_row(a.n_taps);
    if (query.absent() || range.empty())
        return;
    const at_query_run<D, LANES, GROUP> q(query.q());
    attend_range(query, q, range, row, p);
    at_sync();
    float *partial = at_split_partial(query, partials, (int)gridDim.z, (int)blockIdx.z);
    for (int c = (int)threadIdx.x; c < D; c += AT_DECODE_THREADS)
        partial[c] = at_decode_live(query, p, range.begin, range.end, c);
}

template <class T, int D, int GROUP>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend_walk(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    constexpr int CHANNELS = (D + AT_DECODE_THREADS - 1) / AT_DECODE_THREADS;
    const at_decode_query<T> query(a);
    float *p = row + at_split_row(a.n_taps);
    float sum[CHANNELS] = {};
    if (query.absent())
        return;
    const at_query_run<D, LANES, GROUP> q(query.q());
    for (int i = 0; i < at_split_ranges(query.keys); i++) {
        const at_split_range range(query, i);
        attend_range(query, q, range, row, p);
        at_sync();
        for (int n = 0; n < CHANNELS; n++) {
            const int c = (int)threadIdx.x + n * AT_DECODE_THREADS;
            const float partial = c < D ? at_decode_live(query, p, range.begin, range.end, c) : 0.0f;
            sum[n] = i == 0 ? partial : sum[n] + partial;
        } /* no barrier: row was last read before the one above, p is next written after that of the next range */
    }
    for (int n = 0; n < CHANNELS; n++)
        if ((int)threadIdx.x + n * AT_DECODE_THREADS < D)
            query.put((int)threadIdx.x + n * AT_DECODE_THREADS, sum[n]);
}

bool splits(const struct at_sizes *z) { return z->capacity >= SPLIT_CAPACITY && z->b <= SPLIT_BATCH; }

template <int D, int GROUP> int launch_way(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const int64_t shared = (at_split_row((int)z->taps) + AT_SPLIT_RANGE) * (int64_t)sizeof(float);
    if (splits(z))
        return at_split_launch(launch, attend_split<at_f16, D, GROUP>, attend_split<at_bf16, D, GROUP>, 0);
    return at_decode_launch(launch, attend_walk<at_f16, D, GROUP>, attend_walk<at_bf16, D, GROUP>, shared);
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_sized_declines(problem, 0); }

int64_t workspace(const struct at_problem *problem) {
    return splits(&problem->sizes) ? at_split_workspace<>(problem) : 0;
}

int launch(const struct at_launch *launch) {
    static const char *const ways[2][2] = { { "one-block,8-threads", "one-block,16-threads" },
                                            { "ranges,8-threads", "ranges,16-threads" } };
    const bool wide = launch->problem->sizes.b >= WIDE_BATCH;
    at_took_way(ways[splits(&launch->problem->sizes)][wide]);
    return at_with_head_size(launch->problem->sizes.d,
                             [=]<int D>() { return wide ? launch_way<D, 16>(launch) : launch_way<D, 8>(launch); });
}

} // namespace

AT_KERNEL(asynct_decode, 19_dispatch) = {
    .summary = "picks split or walk and the group's width by batch and capacity; the bits are the same",
    .source = "000 5.2, 6.11, 7.2",
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
        .split = AT_SPLIT_RANGE,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = workspace,
    .launch = launch,
};
