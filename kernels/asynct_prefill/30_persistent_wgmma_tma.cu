/* AsyncT prefill on wgmma and TMA by persistent blocks: two query heads of a kv head a block, keys permuted in a tile.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 21_wgmma_tma, a warpgroup has 64 queries of each of two query heads of a kv head, so that a tile of keys
 * serves both; 128 keys a tile, so that a product takes two thirds of the bytes of shared memory; the filter runs
 * within a lane, whose keys are neighbours; the gate takes four instructions a score, the scale being in the taps; the
 * last tile is half a tile where that is enough; blocks stay, and a ring of stages of K and V, and the overlap of
 * products and gate, run on from one item to the next; o leaves by TMA. The steps are in kernels/attention/prefill_*.h,
 * the gate in asynct_prefill_gate.h.
 *
 * Numerically: as 21 but the scale, which is in the taps, each rounded to f32, and gamma, which is applied to the sums;
 * a step of P V has 16 keys out of 64 where keys are contiguous or pages whole groups of 64.
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

int launch(const struct at_launch *launch) { return at_prefill_launch<at_asynct_prefill_in_time, at_bf16>(launch); }

} // namespace

AT_KERNEL(asynct_prefill, 30_persistent_wgmma_tma) = {
    .summary = "wgmma and TMA by persistent blocks, two heads a block, 128 keys a tile; bf16, sums in f32",
    .source = "ours",
    .numerics = AT_ASYNCT_PREFILL_NUMERICS(AT_BF16),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
