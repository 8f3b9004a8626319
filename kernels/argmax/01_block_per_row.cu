/* The largest logit of each row: a block a row.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: values are compared as whole numbers of the same order, a NaN above all; nothing is rounded.
 * Launch: a block of 256 threads a row, which take its logits in turn; shuffles join the lanes, shared memory (64 bytes) the
 * warps; one barrier.
 * Limits: logits f32, f16 or bf16.
 * Source: 002, which means to sample on the GPU next; ours. */
#include "kernels/argmax/argmax_launch.h"

namespace {

template <class T>
__global__ void __launch_bounds__(AT_NORM_THREADS) choose(int vocabulary, const T *logits, int32_t *index) {
    AT_SHARED(uint32_t[AT_ARGMAX_WARPS], order_of_warp);
    AT_SHARED(int[AT_ARGMAX_WARPS], index_of_warp);
    const T *row = logits + (int64_t)blockIdx.x * vocabulary;
    at_largest mine{ 0, 0 };
    for (int i = (int)threadIdx.x; i < vocabulary; i += AT_NORM_THREADS)
        mine.take({ at_order_of(at_float(row[i])), i });
    mine = at_block_largest<AT_ARGMAX_WARPS>(mine, order_of_warp, index_of_warp);
    if (threadIdx.x == 0)
        index[blockIdx.x] = mine.index;
}

int launch(const struct at_launch *launch) {
    return at_norm_launch(launch, [=]<class T>() { return at_argmax_rows<T>(launch, choose<T>); });
}

} // namespace

AT_KERNEL(argmax, 01_block_per_row) = {
    .summary = "a block a row",
    .source = "002, ours",
    .numerics = AT_ARGMAX_NUMERICS,
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
