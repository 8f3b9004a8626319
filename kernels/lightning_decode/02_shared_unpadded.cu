/* Lightning decode with the state in shared memory, its rows as long as they are.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: 01, but the decayed state and the product are added by one fmaf.
 * Launch: a block of 128 threads a head of a request; 4 bytes of dynamic shared memory for each element of the state, and the
 * vectors of a step; three barriers a step. A thread a row, so that with rows of 32 n floats all lanes of a warp want one bank.
 * Limits: state and vectors fit 227 KiB.
 * Source: 001. There it is four times slower than the naive kernel, for those bank conflicts. */
#include "kernels/lightning_decode/lightning_tile.h"

namespace {

constexpr int PAD = 0;

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

AT_KERNEL(lightning_decode, 02_shared_unpadded) = {
    .summary = "the state in shared memory: bank conflicts",
    .source = "001",
    .numerics = AT_LIGHTNING_NUMERICS(1, 1, 0, AT_TREE_SEQUENTIAL),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
