/* Softmax decode on tensor cores, mma.sync m16n8k16: f16, sums in f16, infinities written as 65504.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04_flash_decoding_mma_f16_sum, but an infinity that a step of 16 products leaves is written as 65504;
 * a NaN passes.
 * Launch: grid (kv heads, requests, ranges that the longest request can have), 4 warps, shared memory
 * 256 (d + 8) + 4608 bytes, three barriers a tile of 64 keys; then grid (query heads, requests), 128 threads.
 * Limits: f16; d 32, 64, 96 or 128; at most 16 query heads a kv head.
 * Source: 003, flash-decoding, with the query heads of a kv head as the rows of a tile; 004 for the guard. */
#include "kernels/softmax_decode/softmax_decode_mma.h"

namespace {

constexpr int RANGE = AT_SPLIT_RANGE;

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "activations are f16" : at_softmax_heads_declines(problem);
}

} // namespace

AT_KERNEL(softmax_decode, 04_flash_decoding_mma_f16_sum_guarded) = {
    .summary =
        "mma.sync, query heads of a kv head as rows, ranges of 256 keys; f16, sums in f16, infinities written as 65504",
    .source = "003, 004",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F16, AT_F16, AT_SOFTMAX_KEYS, RANGE, AT_GUARD_ISINF),
    .supports = supports,
    .workspace = at_softmax_split_workspace<RANGE>,
    .launch = at_softmax_heads_launch<at_f16, RANGE, at_sum_f16<AT_GUARD_ISINF>>,
};
