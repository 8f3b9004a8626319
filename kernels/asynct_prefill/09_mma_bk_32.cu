/* AsyncT prefill: 04 with tiles of 32 keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 128 (d + 8)
 * bytes for 32 keys and 256 (31 + K) bytes of scores. Two barriers of the block and two of each warp a tile of 32 keys.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 000 section 2, where 32 keys a tile take nearly twice as long as 16. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

} // namespace

AT_KERNEL(asynct_prefill, 09_mma_bk_32) = {
    .summary = "04 with 32 keys a tile",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = at_mma_prefill_launch<at_bf16, 4, at_sum_f32, 32>,
};
