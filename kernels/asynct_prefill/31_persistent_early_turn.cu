/* AsyncT prefill by persistent blocks as 30, a warpgroup passes the turn on before it has issued its last products.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 30_persistent_wgmma_tma, the turn passes two products earlier: a warp is held up while it issues, and the
 * tensor core would wait for the other warpgroup to begin.
 *
 * Numerically: as 30_persistent_wgmma_tma.
 *
 * Launch: at most one block of 3 warpgroups a multiprocessor; warps 0 and 2 of the first load, 1 stores, the others
 * have 64 queries each. Shared memory 1792 d bytes, the items and the barriers: 4 stages of 128 keys, 3 buffers of 128
 * rows of q, then of o.
 *
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 64 or 128; 3 taps, a ReLU before the filter, a gate from 0 to 1.
 *
 * Source: ours. */
#include "kernels/asynct_prefill/asynct_prefill_gate.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_asynct_prefill_declines(problem);
}

int launch(const struct at_launch *launch) { return at_prefill_launch<at_asynct_prefill_early, at_bf16>(launch); }

} // namespace

AT_KERNEL(asynct_prefill, 31_persistent_early_turn) = {
    .summary = "as 30, the turn passes two products earlier; bf16, sums in f32",
    .source = "ours",
    .numerics = AT_ASYNCT_PREFILL_NUMERICS(AT_BF16),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
