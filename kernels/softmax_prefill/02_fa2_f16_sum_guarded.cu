/* Softmax prefill on tensor cores, mma.sync m16n8k16, the softmax kept online: f16, sums in f16, infinities
 * written as 65504.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_fa2_f16_sum, but an infinity that a step of 16 products leaves is written as 65504; a NaN passes.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 256 (d + 8)
 * bytes for 64 keys. Two barriers of the block a tile of keys.
 * Limits: f16; d 32, 64, 96 or 128.
 * Source: 003 for the shape, 004 for sums in f16 and the guard. */
#include "kernels/attention/softmax_mma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "activations are f16" : at_mma_declines(problem);
}

} // namespace

AT_KERNEL(softmax_prefill, 02_fa2_f16_sum_guarded) = {
    .summary =
        "mma.sync, online softmax, 16 queries a warp, 64 keys a tile; f16, sums in f16, infinities written as 65504",
    .source = "003, 004",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F16, AT_F16, AT_SOFTMAX_KEYS, 0, AT_GUARD_ISINF),
    .supports = supports,
    .workspace = nullptr,
    .launch = at_softmax_prefill_launch<at_f16, 4, at_sum_f16<AT_GUARD_ISINF>>,
};
