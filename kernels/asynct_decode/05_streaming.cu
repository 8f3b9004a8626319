/* AsyncT decode: the keys pass through shared memory in tiles of 128; no row of scores is kept.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 03_pv_zero_skip, scores, gates and P V are computed tile by tile; the last K - 1 scores of a tile stand in
 * front of the next.
 *
 * Numerically: as 03: P V goes on from tile to tile in the same order.
 *
 * Launch: grid (query heads, requests), 128 threads; shared memory 1 KiB and K - 1 scores, whatever the length.
 * Three barriers a tile.
 *
 * Limits: f16 or bf16; d a multiple of 8, at most 512; at most 129 taps.
 *
 * Source: 000 section 5.1: the barriers cost more than the shared memory saved there. */
#include "kernels/attention/asynct_decode.h"

namespace {

constexpr int GROUP = 8, TILE = 128, CHANNELS = 4;

template <class T> __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, p);
    const at_decode_query<T> query(a);
    const int keys = query.keys, thread = (int)threadIdx.x, halo = a.n_taps - 1;
    float *tail = p + TILE, *row = tail + halo; /* the halo, then the tile's own scores */
    float sum[CHANNELS] = {};
    if (query.absent())
        return;
    for (int begin = 0; begin < keys; begin += TILE) {
        const int end = keys < begin + TILE ? keys : begin + TILE;
        at_decode_scores<GROUP>(query, begin, end, row,
                                [&](int t) { return at_group_part<GROUP>(query.q(), query.k(t), a.d); });
        at_sync();
        at_decode_gates(query, row, begin, begin, end, p);
        at_sync();
        for (int i = 0; i < CHANNELS; i++)
            if (const int c = thread + i * AT_DECODE_THREADS; c < a.d)
                sum[i] = at_decode_live(query, p, begin, end, c, sum[i]);
        if (end < keys) { /* a whole tile: its last scores are the next one's halo */
            for (int i = thread; i < halo; i += AT_DECODE_THREADS)
                tail[i] = tail[TILE + i];
            at_sync();
        }
    }
    for (int i = 0; i < CHANNELS; i++)
        if (const int c = thread + i * AT_DECODE_THREADS; c < a.d)
            query.put(c, sum[i]);
}

static_assert(AT_ASYNCT_MAX_TAPS <= TILE + 1, "a filter reaches into the tile before, and no further");

const char *supports(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    if (z->d % GROUP || z->d > CHANNELS * AT_DECODE_THREADS)
        return "d is no multiple of 8, or more than 512";
    return at_asynct_declines(problem, 0);
}

int launch(const struct at_launch *launch) {
    return at_decode_launch(launch, attend<at_f16>, attend<at_bf16>,
                            (2 * TILE + launch->problem->sizes.taps) * (int64_t)sizeof(float));
}

} // namespace

AT_KERNEL(asynct_decode, 05_streaming) = {
    .summary = "tiles of 128 keys; no row of scores",
    .source = "000 5.1",
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
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
