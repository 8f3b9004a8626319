/* Softmax decode on tensor cores, mma.sync m16n8k16: the query heads that share a kv head are the rows of one tile;
 * bf16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 03_flash_decoding, q.k and P V are sums of the tensor core, 16 products an instruction, in f32;
 * 64 keys a step of the online softmax within ranges of 256 keys; exponentials are our own, within one ulp and with the
 * same bits everywhere; P is rounded to bf16, the sum of weights is in f32 of unrounded ones; ranges are joined in
 * ascending order, in f32, with weights e^(own maximum - the row's); one division at the end.
 * Launch: grid (kv heads, requests, ranges that the longest request can have), 4 warps; shared memory 256 (d + 8) +
 * 4608 bytes for 64 keys of K and V and their scores; three barriers of the block a tile of 64 keys. Then grid (query
 * heads, requests), 128 threads, which join the ranges. Scratch: 4 (d + 2) bytes for each query head and range.
 * Limits: bf16; d 32, 64, 96 or 128; at most 16 query heads a kv head.
 * Source: 003, flash-decoding, with the query heads of a kv head as the rows of a tile. */
#include "kernels/softmax_decode/softmax_decode_mma.h"

namespace {

constexpr int RANGE = AT_SPLIT_RANGE;

template <int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, 1) attend_range(at_softmax_view<at_bf16> a, float *workspace) {
    AT_SHARED_DYNAMIC(at_bf16, memory);
    const at_heads_room<D, at_bf16> room(memory);
    const at_mma_heads<at_bf16> heads(a, RANGE);
    if (heads.empty())
        return;
    const at_mma_q<D, at_bf16> q(heads);
    at_online_rows rows(a.scale);
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
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_softmax_heads_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_softmax_heads_launch<at_bf16, RANGE>(launch, []<int D>() { return attend_range<D>; });
}

} // namespace

AT_KERNEL(softmax_decode, 04_flash_decoding_mma) = {
    .summary = "mma.sync, query heads of a kv head as rows, ranges of 256 keys; bf16, sums in f32",
    .source = "003",
    /* not tested: exp: a bf16 P hides it, and no seed of 300 was found that shows it */
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, AT_SOFTMAX_KEYS, RANGE, AT_GUARD_NONE),
    .supports = supports,
    .workspace = at_softmax_split_workspace<RANGE>,
    .launch = launch,
};
