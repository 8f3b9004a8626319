/* Lightning decode with the state in shared memory, padded, which neighbouring threads write back side by side.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: 02.
 * Launch: 03, but the state leaves shared memory element by element over the threads; it still comes in by rows.
 * Limits: state and vectors fit 227 KiB.
 * Source: 001. There it is ahead of Triton for every number of requests. */
#include "kernels/lightning_decode/lightning_tile.h"

namespace {

constexpr int PAD = 1;

template <class T> __global__ void __launch_bounds__(AT_LIGHTNING_THREADS) decode(at_lightning_view<T> a) {
    AT_SHARED_DYNAMIC(float, memory);
    const at_lightning_block<T> head(a, blockIdx.x);
    const at_lightning_tile<T> tile(head, memory, head.e + PAD);
    tile.decode();
    tile.write_coalesced();
}

const char *supports(const struct at_problem *p) { return at_lightning_tile_declines(p, PAD); }

int launch(const struct at_launch *launch) {
    const int64_t shared = at_lightning_tile_bytes(launch->problem, PAD);
    return at_lightning_launch(launch->problem,
                               [=]<class T>() { return at_lightning_heads<T>(launch, decode<T>, shared); });
}

} // namespace

AT_KERNEL(lightning_decode, 04_coalesced_write) = {
    .summary = "padded rows, coalesced write-back",
    .source = "001",
    .numerics = AT_LIGHTNING_NUMERICS(1, 1, 0, AT_TREE_SEQUENTIAL),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
