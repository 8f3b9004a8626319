/* Sampling from the k largest logits: a block a row, which looks for one rank after the other.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: ranks by whole numbers of the same order. f32: a difference, a product with log2(e) / T, ex2.approx, one chain of
 * sums in the order of ranks by one thread; the threshold is rounded.
 * Launch: a block of 256 threads a row. Rank after rank, the largest behind the last one found: the row is read once a rank; two
 * barriers a rank. Shared memory: 4 bytes a rank and 72.
 * Limits: logits f32, f16 or bf16; at most 4096 kept.
 * Source: 002, which means to sample on the GPU next; ours. */
#include "kernels/top_k/top_k_draw_step.h"

namespace {

/* The largest of a row behind `last`; all threads get it. `found`: shared, read before the next barrier. */
template <class T>
__device__ at_largest next_rank(const T *row, int vocabulary, at_largest last, at_top_k_shared &shared) {
    at_largest mine{ 0, 0 };
    for (int i = (int)threadIdx.x; i < vocabulary; i += AT_NORM_THREADS) {
        const at_largest x{ at_order_of(at_float(row[i])), i };
        if (last.is_before(x))
            mine.take(x);
    }
    mine = at_block_largest<AT_TOP_K_WARPS>(mine, shared.order, shared.index);
    if (threadIdx.x == 0)
        shared.found = mine;
    at_sync();
    return shared.found;
}

template <class T> __global__ void __launch_bounds__(AT_NORM_THREADS) draw(at_top_k_view<T> a) {
    AT_SHARED(at_top_k_shared, shared);
    AT_SHARED_DYNAMIC(int, place);
    const T *row = a.logits + (int64_t)blockIdx.x * a.vocabulary;
    at_largest last{ 0xffffffffu, -1 }; /* before every logit */
    for (int j = 0; j < a.kept; j++) {
        last = next_rank(row, a.vocabulary, last, shared);
        if (threadIdx.x == 0)
            place[j] = last.index;
    }
    if (threadIdx.x == 0)
        a.draw(row, place);
}

int launch(const struct at_launch *launch) {
    return at_norm_launch(launch, [=]<class T>() { return at_top_k_rows<T>(launch, draw<T>); });
}

} // namespace

AT_KERNEL(top_k, 01_block_per_row) = {
    .summary = "a block a row, rank after rank; ex2.approx",
    .source = "002, ours",
    .numerics = AT_TOP_K_NUMERICS,
    .supports = at_top_k_declines,
    .workspace = nullptr,
    .launch = launch,
};
