/* AsyncT prefill: wgmma where it fits and pays, mma.sync elsewhere, with the same bits.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04, whichever way is taken: wgmma sums as mma.sync does. So what a request gets does not depend on
 * the others of its batch. Launch: as 15 for 1024 elements a query (h d), pages of 16, three taps, a ReLU before the
 * filter and a gate from 0 to 1, and a request with room for 64 queries at least; as 04 otherwise. Sizes alone decide,
 * which a captured graph keeps; lengths do not. Limits: those of 04; the first way wants sm_90a. Source: 000 sections 4
 * and 5.2, whose other way is 01 and has other bits. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

using plan = at_wgmma_plan<16, AT_WGMMA_TAIL_IN_REGISTERS, AT_WGMMA_P_IN_SHARED, true>;

constexpr int64_t QUERY_ELEMENTS = 1024, PAGE = 16, TAPS = 3;

bool pays(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->h * z->d == QUERY_ELEMENTS && z->page == PAGE && z->taps == TAPS && z->max_sq >= AT_WGMMA_QUERIES &&
           !at_wgmma_constants_decline(problem);
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

int launch(const struct at_launch *launch) {
    return pays(launch->problem) ? at_wgmma_prefill_launch<at_bf16, plan>(launch)
                                 : at_mma_prefill_launch<at_bf16, AT_WGMMA_WARPS, at_sum_f32>(launch);
}

} // namespace

AT_KERNEL(asynct_prefill, 19_dispatch) = {
    .summary = "wgmma for shapes it is made for, mma.sync for others, the same bits",
    .source = "000 4, 5.2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
