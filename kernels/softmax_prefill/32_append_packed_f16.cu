/* Softmax of up to 16 queries a request against many keys, the query heads of a kv head packed; f16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 02_fa2_f16_ex2, the rows of a warp are those of all query heads of a kv head, a block has a range of 1024 keys, and
 * the next tile of K and V is copied by cp.async while one is multiplied. Rows, ranges and tiles are in
 * kernels/attention/packed_rows.h.
 *
 * Numerically: as 02_fa2_f16_ex2 in each range of 1024 keys, with rcp.approx.ftz for the division; ranges are joined in
 * ascending order, in f32, with factors as those of rescalings, as in softmax_decode/04_flash_decoding_mma_ex2. Every bit
 * is declared.
 *
 * Launch: grid (kv heads times blocks of rows, requests, ranges that the longest request can have), 2 warps of 16 rows
 * each, or 4 where a request may have more than 32 rows; shared memory 512 (d + 8) bytes for two tiles of 64 keys; one
 * barrier of the block a tile. Then grid (query heads, requests, queries of the longest request), 128 threads, which join
 * the ranges. Scratch: 4 (d + 2) bytes for each token, query head and range.
 *
 * Limits: f16; d 32, 64, 96 or 128; at most 16 queries a request and 16 query heads a kv head; scales from 2^-64 to
 * 2^64.
 *
 * Source: ours. */
#include "kernels/softmax_prefill/softmax_append.h"

namespace {

using T = at_f16;
using exponential = at_softmax_ex2<AT_DIVIDE_RCP_APPROX_FTZ>;
using places = at_packed_places<AT_SOFTMAX_KEYS>;
constexpr int STAGES = AT_APPEND_STAGES;

template <int D>
__global__ void __launch_bounds__(AT_PACKED_THREADS, 1) attend_range(at_softmax_view<T> a, float *workspace) {
    AT_SHARED_DYNAMIC(T, memory);
    const at_append_ring<T, D> ring{ memory };
    const at_packed_block<T> block(a);
    if (block.empty())
        return;
    const at_mma_q<D, T> q(block.rows);
    at_online_rows<exponential> rows(a.scale);
    at_sum_f32 o[D / 8] = {};
    for (int i = 0; i < STAGES - 1; i++)
        ring.copy(block, places::of(block, block.begin + i * AT_SOFTMAX_KEYS), block.begin + i * AT_SOFTMAX_KEYS, i);
    auto next = places::of(block, block.begin + (STAGES - 1) * AT_SOFTMAX_KEYS);
    for (int begin = block.begin, stage = 0; begin < block.keys;
         begin += AT_SOFTMAX_KEYS, stage = (stage + 1) % STAGES) {
        at_copy_wait<STAGES - 2>();
        at_sync(); /* the tile is there, and all have left the one before it */
        ring.copy(block, next, begin + (STAGES - 1) * AT_SOFTMAX_KEYS, (stage + STAGES - 1) % STAGES);
        next = places::of(block, begin + STAGES * AT_SOFTMAX_KEYS);
        if (begin < block.rows.keys) {
            float s[AT_SOFTMAX_KEYS / 8][4];
            at_softmax_scores<at_sum_f32>(rows, block.rows, q, ring.k(stage), begin, s);
            at_softmax_update(rows, s, o);
            at_softmax_values<D>(block.rows, begin, s, ring.v(stage), o);
        }
    }
    at_append_store_part(a, block, rows, o, workspace);
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "activations are f16" : at_append_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_append_launch<T, exponential>(launch, []<int D>() { return attend_range<D>; });
}

} // namespace

AT_KERNEL(softmax_prefill, 32_append_packed_f16) = {
    .summary = "few queries and many keys: the heads of a kv head packed, ranges of 1024 keys, cp.async, ex2; f16",
    .source = "ours",
    .numerics = AT_SOFTMAX_EX2_NUMERICS(AT_F16, AT_SOFTMAX_KEYS, AT_PACKED_RANGE, AT_DIVIDE_RCP_APPROX_FTZ, 0),
    .supports = supports,
    .workspace = at_append_workspace,
    .launch = launch,
};
