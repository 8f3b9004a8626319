/* Lightning decode with the state in shared memory, a float of padding behind each row.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: 02.
 * Launch: 02, but rows begin in different banks.
 * Limits: state and vectors fit 227 KiB.
 * Source: 001. There it is ahead of Triton up to 4 requests, then two to three times slower: rows are written back apart. */
#include "kernels/lightning_decode/lightning_tile.h"

namespace {

constexpr int PAD = 1;

template <class T> __global__ void __launch_bounds__(AT_LIGHTNING_THREADS) decode(at_lightning_view<T> a) {
    AT_SHARED_DYNAMIC(float, memory);
    const at_lightning_block<T> head(a, blockIdx.x);
    const at_lightning_tile<T> tile(head, memory, head.e + PAD);
    tile.decode();
    tile.write_rows();
}

const char *supports(const struct at_problem *p) { return at_lightning_tile_declines(p, PAD); }

int launch(const struct at_launch *launch) {
    const int64_t shared = at_lightning_tile_bytes(launch->problem, PAD);
    return at_lightning_launch(launch->problem,
                               [=]<class T>() { return at_lightning_heads<T>(launch, decode<T>, shared); });
}

} // namespace

AT_KERNEL(lightning_decode, 03_shared_padded) = {
    .summary = "padded rows: no bank conflicts",
    .source = "001",
    .numerics = AT_LIGHTNING_NUMERICS(1, 1, 0, AT_TREE_SEQUENTIAL),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
