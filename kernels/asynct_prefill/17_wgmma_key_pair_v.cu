/* AsyncT prefill on wgmma: V comes to shared memory two keys a store.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04; wgmma sums as mma.sync does.
 * Launch: as 15.
 * Limits: those of 15.
 * Source: 000 section 6.7, where it cost 10 %: fewer bank conflicts, but its loads of V no longer lay side by side.
 * Here threads side by side still load channels side by side, of two rows each. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

struct staging : at_wgmma_staging {
    static constexpr bool V_BY_KEY_PAIRS = true;
};

using plan = at_wgmma_plan<16, AT_WGMMA_TAIL_IN_REGISTERS, AT_WGMMA_P_IN_SHARED, true, staging>;

} // namespace

AT_KERNEL(asynct_prefill, 17_wgmma_key_pair_v) = {
    .summary = "as 15 with stores of V by pairs of keys",
    .source = "000 6.7",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = at_wgmma_constants_decline,
    .workspace = nullptr,
    .launch = at_wgmma_prefill_launch<at_bf16, plan>,
};
