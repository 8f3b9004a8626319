/* AsyncT prefill: 04 with tiles of 8 keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 04, P.V is added in steps of 8 products.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 32 (d + 8) bytes
 * for 8 keys and 256 (7 + K) bytes of scores. Two barriers of the block and two of each warp a tile of 8 keys.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 000 section 2, whose kernel has 8 keys a tile: q.k by m16n8k16, P.V by m16n8k8. Fastest there, by little. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

} // namespace

AT_KERNEL(asynct_prefill, 09_mma_bk_8) = {
    .summary = "04 with 8 keys a tile, P.V by m16n8k8",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, 8, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = at_mma_prefill_launch<at_bf16, 4, at_sum_f32, 8>,
};
