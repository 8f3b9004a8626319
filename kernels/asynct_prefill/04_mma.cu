/* AsyncT prefill on tensor cores, mma.sync m16n8k16: bf16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 01 to 03, q.k and P.V are sums of a tensor core: 16 products a step, cut where they are aligned
 * and cut again to f32. P is rounded to bf16; a key that is multiplied by p = 0 counts.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 64 (d + 8) bytes
 * for 16 keys and 256 (15 + K) bytes of scores. Two barriers of the block and two of each warp a tile of 16 keys.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 000 section 2, which multiplies P by V with m16n8k8 and has 8 keys a tile. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

} // namespace

AT_KERNEL(asynct_prefill, 04_mma) = {
    .summary = "mma.sync, 16 queries a warp, 16 keys a tile; bf16, sums in f32",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = at_mma_prefill_launch<at_bf16, 4, at_sum_f32>,
};
