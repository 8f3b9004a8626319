/* AsyncT prefill on wgmma and TMA, a producer warp and two warpgroups that take turns: bf16.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04; wgmma sums as mma.sync does.
 * Launch: grid (query heads, requests, tiles of 128 queries), 3 warpgroups: one thread of the first loads tiles of 64
 * keys, the others have 64 queries each; shared memory 768 d bytes and 72. Two stages of K and V.
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 64 or 128; at most 3 taps.
 * Source: ours, the shape of FlashAttention 3. */
#include "kernels/asynct_prefill/asynct_tma.h"

namespace {

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_BF16)
        return "activations are bf16";
    return problem->sizes.taps > 3 ? "a filter of more than 3 taps" : at_tma_declines(problem);
}

} // namespace

AT_KERNEL(asynct_prefill, 21_wgmma_tma) = {
    .summary = "wgmma and TMA, a producer and two warpgroups in turns, 64 keys a tile; bf16, sums in f32",
    .source = "ours",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = at_asynct_tma_launch<at_bf16, at_sum_f32>,
};
