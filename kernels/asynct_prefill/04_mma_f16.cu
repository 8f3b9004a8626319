/* AsyncT prefill on tensor cores, mma.sync m16n8k16: f16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04_mma, in f16.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 64 (d + 8) bytes
 * for 16 keys and 256 (15 + K) bytes of scores. Two barriers of the block and two of each warp a tile of 16 keys.
 * Limits: f16; d 32, 64, 96 or 128.
 * Source: 000 section 2, which multiplies P by V with m16n8k8 and has 8 keys a tile. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "activations are f16" : at_mma_declines(problem);
}

} // namespace

AT_KERNEL(asynct_prefill, 04_mma_f16) = {
    .summary = "mma.sync, 16 queries a warp, 16 keys a tile; f16, sums in f32",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_NUMERICS(AT_UNIT_TC_F32, AT_F16, 16, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = at_mma_prefill_launch<at_f16, 4, at_sum_f32>,
};
