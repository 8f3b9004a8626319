/* The largest logit of each row by loads of 16 bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01: values are compared as whole numbers of the same order, a NaN above all; nothing is rounded.
 * Launch: a block of 256 threads a row, which take pieces of 16 bytes of its logits in turn; shuffles join the lanes, shared
 * memory (64 bytes) the warps; one barrier.
 * Limits: logits f32, f16 or bf16; a row is whole pieces of 16 bytes.
 * Source: ours. */
#include "kernels/argmax/argmax_launch.h"

namespace {

template <class T>
__global__ void __launch_bounds__(AT_NORM_THREADS) choose(int vocabulary, const T *logits, int32_t *index) {
    constexpr int PIECE = 16 / (int)sizeof(T);
    AT_SHARED(uint32_t[AT_ARGMAX_WARPS], order_of_warp);
    AT_SHARED(int[AT_ARGMAX_WARPS], index_of_warp);
    const T *row = logits + (int64_t)blockIdx.x * vocabulary;
    at_largest mine{ 0, 0 };
    for (int i = (int)threadIdx.x * PIECE; i < vocabulary; i += AT_NORM_THREADS * PIECE) {
        T piece[PIECE];
        at_load16(row + i, piece);
        AT_UNROLL
        for (int k = 0; k < PIECE; k++)
            mine.take({ at_order_of(at_float(piece[k])), i + k });
    }
    mine = at_block_largest<AT_ARGMAX_WARPS>(mine, order_of_warp, index_of_warp);
    if (threadIdx.x == 0)
        index[blockIdx.x] = mine.index;
}

const char *declines(const struct at_problem *p) {
    const int64_t bytes = at_argmax_own_of(p).vocabulary * (int64_t)at_format_info(p->dtype)->bytes;
    return bytes % 16 ? "a row of logits is not whole pieces of 16 bytes" : nullptr;
}

int launch(const struct at_launch *launch) {
    return at_norm_launch(launch, [=]<class T>() { return at_argmax_rows<T>(launch, choose<T>); });
}

} // namespace

AT_KERNEL(argmax, 02_16_bytes) = {
    .summary = "loads of 16 bytes",
    .source = "ours",
    .numerics = AT_ARGMAX_NUMERICS,
    .supports = declines,
    .workspace = nullptr,
    .launch = launch,
};
