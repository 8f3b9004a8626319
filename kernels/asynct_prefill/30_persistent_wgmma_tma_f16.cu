/* AsyncT prefill in f16 on wgmma and TMA by persistent blocks, sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 30_persistent_wgmma_tma, activations and P are f16.
 *
 * Numerically: as there, P rounded to f16.
 *
 * Launch: at most one block of 3 warpgroups a multiprocessor; warps 0 and 2 of the first load, 1 stores, the others
 * have 64 queries each. Shared memory 1792 d bytes, the items and the barriers: 4 stages of 128 keys, 3 buffers of 128
 * rows of q, then of o.
 *
 * Limits: sm_90a, elsewhere a launch traps; f16; d 64 or 128; 3 taps, a ReLU before the filter, a gate from 0 to 1.
 *
 * Source: ours. */
#include "kernels/asynct_prefill/asynct_prefill_gate.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "activations are f16" : at_asynct_prefill_declines(problem);
}

int launch(const struct at_launch *launch) { return at_prefill_launch<at_asynct_prefill_in_time, at_f16>(launch); }

} // namespace

AT_KERNEL(asynct_prefill, 30_persistent_wgmma_tma_f16) = {
    .summary = "wgmma and TMA by persistent blocks, two heads a block, 128 keys a tile; f16, sums in f32",
    .source = "ours",
    .numerics = AT_ASYNCT_PREFILL_NUMERICS(AT_F16),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
