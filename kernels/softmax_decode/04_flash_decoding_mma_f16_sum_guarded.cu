/* Softmax decode on tensor cores, query heads of a kv head as rows: f16, sums in f16, infinities replaced by 65504
 * after every step.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: sums of q.k and P V within a range are f16, each step of 16 products and each rescaling rounded to
 * nearest; unlike 04_flash_decoding_mma_f16_sum, an infinity that a step leaves is written as 65504 of its sign, and a
 * NaN stays one. 64 keys a step of the online softmax within ranges of 256 keys; exponentials are our own, within one
 * ulp and with the same bits everywhere; P is rounded to f16, the sum of weights is in f32 of unrounded ones; ranges
 * are joined in ascending order, in f32, with weights e^(own maximum - the row's); one division at the end.
 * Launch: grid (kv heads, requests, ranges that the longest request can have), 4 warps; shared memory 256 (d + 8) +
 * 4608 bytes for 64 keys of K and V and their scores; three barriers of the block a tile of 64 keys. Then grid (query
 * heads, requests), 128 threads, which join the ranges. Scratch: 4 (d + 2) bytes for each query head and range.
 * Limits: f16; d 32, 64, 96 or 128; at most 16 query heads a kv head.
 * Source: 003, flash-decoding, with the query heads of a kv head as the rows of a tile; 004 for sums in f16 and the
 * guard. */
#include "kernels/softmax_decode/softmax_decode_mma.h"

namespace {

constexpr int RANGE = AT_SPLIT_RANGE;

template <int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, 1) attend_range(at_softmax_view<at_f16> a, float *workspace) {
    AT_SHARED_DYNAMIC(at_f16, memory);
    const at_heads_room<D, at_f16> room(memory);
    const at_mma_heads<at_f16> heads(a, RANGE);
    if (heads.empty())
        return;
    const at_mma_q<D, at_f16> q(heads);
    at_online_rows rows(a.scale);
    at_sum_f16<AT_GUARD_ISINF> o[AT_HEADS_SUMS<D>] = {};
    for (int tile = heads.begin; tile < heads.end; tile += AT_SOFTMAX_KEYS) {
        at_mma_stage<D, AT_SOFTMAX_KEYS>(a, heads.request, heads.kv_head, tile, heads.end, room.k, room.v);
        at_sync();
        at_heads_put_scores<at_sum_f16<AT_GUARD_ISINF>>(rows, q, room.k, heads.end - tile, room.scores);
        at_sync();
        float s[AT_SOFTMAX_KEYS / 8][4];
        at_heads_take_scores(room.scores, s);
        at_softmax_update(rows, s, o);
        at_heads_values<D>(s, room.v, o);
        at_sync(); /* before the next tile overwrites this one */
    }
    at_heads_store_part<D>(heads, rows, o, workspace);
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "activations are f16" : at_softmax_heads_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_softmax_heads_launch<at_f16, RANGE>(launch, []<int D>() { return attend_range<D>; });
}

} // namespace

AT_KERNEL(softmax_decode, 04_flash_decoding_mma_f16_sum_guarded) = {
    .summary =
        "mma.sync, query heads of a kv head as rows, ranges of 256 keys; f16, sums in f16, infinities written as 65504",
    .source = "003, 004",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F16, AT_F16, AT_SOFTMAX_KEYS, RANGE, AT_GUARD_ISINF),
    .supports = supports,
    .workspace = at_softmax_split_workspace<RANGE>,
    .launch = launch,
};
