/* Softmax prefill on wgmma and TMA, a producer warp and two warpgroups that take turns: bf16, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_fa2; wgmma sums as mma.sync does.
 * Launch: grid (query heads, requests, tiles of 128 queries), 3 warpgroups: one thread of the first loads tiles of 64
 * keys, the others have 64 queries each; shared memory 768 d bytes and 72. Two stages of K and V.
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 64 or 128.
 * Source: 003, the shape of FlashAttention 3. */
#include "kernels/softmax_prefill/softmax_tma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_tma_declines(problem);
}

} // namespace

AT_KERNEL(softmax_prefill, 03_fa3) = {
    .summary = "wgmma and TMA, a producer and two warpgroups in turns, 64 keys a tile; bf16, sums in f32",
    .source = "003",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, AT_TMA_KEYS, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = at_softmax_tma_launch<at_bf16, at_sum_f32>,
};
