/* AsyncT prefill on wgmma: keys that lie in a row, without a page table.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04; wgmma sums as mma.sync does.
 * Launch: as 15.
 * Limits: those of 15; contiguous K and V (page 0), as a prompt without a cached prefix has them.
 * Source: 000 section 6.5, where it gained nothing: a page table of 16 keys costs little, and its prompts came as views
 * that are not contiguous. */
#include "kernels/asynct_prefill/asynct_wgmma.h"

namespace {

struct staging : at_wgmma_staging {
    template <class T> static __device__ int64_t key(const at_attention_view<T> &a, int request, int t, int kv_head) {
        return (int64_t)(a.key_start[request] + t) * a.key_step + kv_head * a.d;
    }
};

const char *supports(const struct at_problem *problem) {
    return problem->sizes.page ? "K and V are contiguous" : at_wgmma_constants_decline(problem);
}

using plan = at_wgmma_plan<16, AT_WGMMA_TAIL_IN_REGISTERS, AT_WGMMA_P_IN_SHARED, true, staging>;

} // namespace

AT_KERNEL(asynct_prefill, 16_wgmma_contiguous) = {
    .summary = "as 15 for contiguous keys: no page table",
    .source = "000 6.5",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = at_wgmma_prefill_launch<at_bf16, plan>,
};
