/* AsyncT prefill on wgmma: q.k alone.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04; wgmma sums as mma.sync does.
 * Launch: grid (query heads, requests, tiles of 64 queries), a warpgroup; shared memory 192 d bytes or more.
 * Two barriers of the block a tile of 16 keys; scores go through shared memory, P.V is mma.sync's.
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 32, 64, 96 or 128.
 * Source: 000 section 3.1. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

const char *supports(const struct at_problem *problem) { return at_wgmma_declines(problem, INT64_MAX); }

using plan = at_wgmma_plan<8, AT_WGMMA_SCORES_IN_SHARED, AT_WGMMA_VALUES_BY_MMA>;

} // namespace

AT_KERNEL(asynct_prefill, 10_wgmma_qk) = {
    .summary = "wgmma for q.k, mma.sync for P.V; scores in shared memory",
    .source = "000 3.1",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = at_wgmma_prefill_launch<at_bf16, plan>,
};
