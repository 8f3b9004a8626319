/* Softmax decode on tensor cores, mma.sync m16n8k16: the query heads of a kv head are the rows; bf16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: q.k and P.V are sums of a tensor core, 16 products a step; 64 keys a step of the online softmax within
 * ranges of 256 keys; P is rounded to bf16, its sum is not; ranges are joined in ascending order, in f32, with weights
 * e^(own maximum - the row's); one division at the end. Exponentials as in 01.
 * Launch: grid (kv heads, requests, ranges that the longest request can have), 4 warps, shared memory
 * 256 (d + 8) + 4608 bytes, three barriers a tile of 64 keys; then grid (query heads, requests), 128 threads.
 * Limits: bf16; d 32, 64, 96 or 128; at most 16 query heads a kv head.
 * Source: 003, flash-decoding, with the query heads of a kv head as the rows of a tile. */
#include "kernels/softmax_decode/softmax_decode_mma.h"

namespace {

constexpr int RANGE = AT_SPLIT_RANGE;

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_softmax_heads_declines(problem);
}

} // namespace

AT_KERNEL(softmax_decode, 04_flash_decoding_mma) = {
    .summary = "mma.sync, query heads of a kv head as rows, ranges of 256 keys; bf16, sums in f32",
    .source = "003",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, AT_SOFTMAX_KEYS, RANGE, AT_GUARD_NONE),
    .supports = supports,
    .workspace = at_softmax_split_workspace<RANGE>,
    .launch = at_softmax_heads_launch<at_bf16, RANGE, at_sum_f32>,
};
