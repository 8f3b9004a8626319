/* Slots of new tokens: a block a request, and one for the padding; nothing is searched.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: whole numbers.
 * Launch: a block of 256 threads a request, which take its new tokens in turn; the last block writes -1 behind them; no
 * shared memory.
 * Limits: none.
 * Source: ours. */
#include "kernels/slot_mapping/slot_view.h"

namespace {

__global__ void __launch_bounds__(AT_SLOT_THREADS) map(at_slot_view a) {
    const int r = (int)blockIdx.x, first = a.query_start[r];
    if (r == a.b) {
        for (int token = first + (int)threadIdx.x; token < a.tokens; token += AT_SLOT_THREADS)
            a.slot_mapping[token] = -1;
        return;
    }
    const int end = a.query_start[r + 1], keys_before = a.seq_lens[r] - end;
    for (int token = first + (int)threadIdx.x; token < end; token += AT_SLOT_THREADS)
        a.slot_mapping[token] = a.slot(r, keys_before + token);
}

int launch(const struct at_launch *launch) {
    const at_slot_view a = at_slot_view::of(launch->problem);
    return at_launch(map, dim3{ (unsigned)a.b + 1, 1, 1 }, dim3{ AT_SLOT_THREADS, 1, 1 }, 0, launch->stream, a);
}

} // namespace

AT_KERNEL(slot_mapping, 02_block_per_request) = {
    .summary = "a block a request, nothing is searched",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
