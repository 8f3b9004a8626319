/* Slots of new tokens: a thread a token, which searches its request.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: whole numbers.
 * Launch: a thread a token, blocks of 256; a binary search of query_start; no shared memory.
 * Limits: none.
 * Source: 000 section 6.10, whose serving engine makes the mapping that its cache write reads; ours. */
#include "kernels/slot_mapping/slot_view.h"

namespace {

/* The first request that ends behind the token: those without tokens own none. b: padding. */
inline __device__ int request_of(const at_slot_view &a, int token) {
    int low = 0, high = a.b;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (a.query_start[middle + 1] > token)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

__global__ void __launch_bounds__(AT_SLOT_THREADS) map(at_slot_view a) {
    const int token = (int)(blockIdx.x * AT_SLOT_THREADS + threadIdx.x);
    if (token >= a.tokens)
        return;
    const int r = request_of(a, token);
    if (r == a.b) {
        a.slot_mapping[token] = -1;
        return;
    }
    const int keys_before = a.seq_lens[r] - a.query_start[r + 1];
    a.slot_mapping[token] = a.slot(r, keys_before + token);
}

int launch(const struct at_launch *launch) {
    const at_slot_view a = at_slot_view::of(launch->problem);
    if (a.tokens == 0)
        return 0;
    const unsigned blocks = ((unsigned)a.tokens + AT_SLOT_THREADS - 1) / AT_SLOT_THREADS;
    return at_launch(map, dim3{ blocks, 1, 1 }, dim3{ AT_SLOT_THREADS, 1, 1 }, 0, launch->stream, a);
}

} // namespace

AT_KERNEL(slot_mapping, 01_thread_per_token) = {
    .summary = "a thread a token, which searches its request",
    .source = "000 6.10, ours",
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
