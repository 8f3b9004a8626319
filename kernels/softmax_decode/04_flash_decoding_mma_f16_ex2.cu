/* Softmax decode on tensor cores by the special-function unit, with a true division; f16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04_flash_decoding_mma_f16 in both products (tensor core, 16 products an instruction, in f32), in
 * tiles and the format of P. Weights are ex2.approx.ftz of fma(dot, b, -(max b)), b = scale log2(e): no score is
 * scaled by itself, as in the fast kernels of the field. The sum of weights is of unrounded ones, in the four lanes
 * that share a row, two keys of every eight each, joined by a butterfly; one division at the end; lse by
 * lg2.approx.ftz. Ranges are joined in ascending order, in f32, with factors as those of rescalings. Every bit is
 * declared.
 * Launch: grid (kv heads, requests, ranges that the longest request can have), 4 warps; shared memory 256 (d + 8) +
 * 4608 bytes for 64 keys of K and V and their scores; three barriers of the block a tile of 64 keys. Then grid (query
 * heads, requests), 128 threads, which join the ranges. Scratch: 4 (d + 2) bytes for each query head and range.
 * Limits: f16; d 32, 64, 96 or 128; at most 16 query heads a kv head; scales from 2^-64 to 2^64.
 * Source: 003, flash-decoding, with the query heads of a kv head as the rows of a tile. */
#include "kernels/softmax_decode/softmax_decode_mma.h"

namespace {

using exponential = at_softmax_ex2<AT_DIVIDE_DIVISION>;

constexpr int RANGE = AT_SPLIT_RANGE;

template <int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, 1) attend_range(at_softmax_view<at_f16> a, float *workspace) {
    AT_SHARED_DYNAMIC(at_f16, memory);
    const at_heads_room<D, at_f16> room(memory);
    const at_mma_heads<at_f16> heads(a, RANGE);
    if (heads.empty())
        return;
    const at_mma_q<D, at_f16> q(heads);
    at_online_rows<exponential> rows(a.scale);
    at_sum_f32 o[AT_HEADS_SUMS<D>] = {};
    for (int tile = heads.begin; tile < heads.end; tile += AT_SOFTMAX_KEYS) {
        at_mma_stage<D, AT_SOFTMAX_KEYS>(a, heads.request, heads.kv_head, tile, heads.end, room.k, room.v);
        at_sync();
        at_heads_put_scores<at_sum_f32>(rows, q, room.k, heads.end - tile, room.scores);
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
    const char *reason = problem->dtype != AT_F16 ? "activations are f16" : at_softmax_heads_declines(problem);
    return reason ? reason : at_softmax_ex2_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_softmax_heads_launch<at_f16, RANGE, exponential>(launch, []<int D>() { return attend_range<D>; });
}

} // namespace

AT_KERNEL(softmax_decode, 04_flash_decoding_mma_f16_ex2) = {
    .summary = "04_flash_decoding_mma_f16 with ex2.approx of folded arguments and lg2.approx; a true division; every "
               "bit declared",
    .source = "003",
    .numerics = AT_SOFTMAX_EX2_NUMERICS(AT_F16, AT_SOFTMAX_KEYS, RANGE, AT_DIVIDE_DIVISION, 0),
    .supports = supports,
    .workspace = at_softmax_split_workspace<RANGE>,
    .launch = launch,
};
