/* AsyncT prefill on wgmma: P stays in registers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04; wgmma sums as mma.sync does.
 * Launch: grid (query heads, requests, tiles of 64 queries), a warpgroup; shared memory 192 d bytes.
 * Two barriers of the block a tile of 16 keys; the rest as 15.
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 32, 64, 96 or 128; at most 3 taps, a ReLU
 * before the filter, a gate from 0 to 1.
 * Source: ours. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

using plan = at_wgmma_plan<16, AT_WGMMA_TAIL_IN_REGISTERS, AT_WGMMA_P_IN_REGISTERS, true>;

} // namespace

AT_KERNEL(asynct_prefill, 20_wgmma_p_in_registers) = {
    .summary = "as 15 with P as an operand in registers",
    .source = "ours",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_wgmma_constants_decline,
    .workspace = nullptr,
    .launch = at_wgmma_prefill_launch<at_bf16, plan>,
};
