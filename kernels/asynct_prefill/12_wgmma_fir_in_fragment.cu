/* AsyncT prefill on wgmma: the filter in the fragments of the scores.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04; wgmma sums as mma.sync does.
 * Launch: grid (query heads, requests, tiles of 64 queries), a warpgroup; shared memory 192 d bytes and 2.5 KiB.
 * Three barriers of the block a tile of 16 keys; the two scores
 * before it in shared memory, P through shared memory.
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 32, 64, 96 or 128; at most 3 taps.
 * Source: 000 section 3.2. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

const char *supports(const struct at_problem *problem) { return at_wgmma_declines(problem, 3); }

using plan = at_wgmma_plan<8, AT_WGMMA_TAIL_IN_SHARED, AT_WGMMA_P_IN_SHARED>;

} // namespace

AT_KERNEL(asynct_prefill, 12_wgmma_fir_in_fragment) = {
    .summary = "wgmma; the filter by shuffles in the fragments; P in shared memory",
    .source = "000 3.2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = at_wgmma_prefill_launch<at_bf16, plan>,
};
