/* Softmax prefill on tensor cores, mma.sync m16n8k16, the softmax kept online: bf16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: q.k and P.V are sums of a tensor core, 16 products a step; 64 keys a step of the online softmax; weights
 * by an exponential of our own, within one ulp and with the same bits everywhere; P is rounded to bf16, its sum is not;
 * one division at the end.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 256 (d + 8)
 * bytes for 64 keys. Two barriers of the block a tile of keys.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 003, the shape of FlashAttention 2. */
#include "kernels/attention/softmax_mma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

} // namespace

AT_KERNEL(softmax_prefill, 02_fa2) = {
    .summary = "mma.sync, online softmax, 16 queries a warp, 64 keys a tile; bf16, sums in f32",
    .source = "003",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, AT_SOFTMAX_KEYS, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = at_softmax_prefill_launch<at_bf16, 4, at_sum_f32>,
};
