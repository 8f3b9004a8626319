/* Softmax prefill on wgmma and TMA by persistent blocks, two query heads of a kv head a block, bf16.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 05_persistent_tma_longest_first, a warpgroup has 64 queries of each of two query heads of a kv head, so that a
 * tile of keys serves both; 128 keys a tile, the last one half a tile where that is enough; one step of the online
 * softmax for both halves; the overlap of products and softmax, and the ring of stages, run on from one item to the
 * next; o leaves by TMA. The steps are in kernels/attention/prefill_*.h, the softmax in softmax_prefill_weights.h.
 *
 * Numerically: as 03_fa3_ex2 with 128 keys a step of the online softmax. Every bit is declared.
 *
 * Launch: at most one block of 3 warpgroups a multiprocessor; warps 0 and 2 of the first load, 1 stores, the others
 * have 64 queries each. Shared memory 1792 d bytes, the items and the barriers: 4 stages of 128 keys, 3 buffers of 128
 * rows of q, then of o.
 *
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 64 or 128; scales from 2^-64 to 2^64.
 *
 * Source: ours. */
#include "kernels/softmax_prefill/softmax_prefill_weights.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_softmax_prefill_declines(problem);
}

int launch(const struct at_launch *launch) { return at_prefill_launch<at_softmax_prefill, at_bf16>(launch); }

} // namespace

AT_KERNEL(softmax_prefill, 30_persistent_packed) = {
    .summary = "wgmma and TMA by persistent blocks, two heads a block, 128 keys a tile, ex2; bf16, sums in f32",
    .source = "ours",
    .numerics = AT_SOFTMAX_PREFILL_NUMERICS(AT_BF16),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
