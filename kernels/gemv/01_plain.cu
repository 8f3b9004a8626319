/* A product with weights by rows: a thread has a column and walks along k.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: one chain of fma an element, in ascending order; one rounding for the scale, one for the format of y.
 * Launch: grid (columns / 256), 256 threads; no shared memory, no barrier. Neighbouring threads load neighbouring
 * elements of a row, 2 bytes each.
 * Limits: f16 or bf16; at most eight rows; any n, k.
 * Source: ours. */
#include "kernels/gemv/gemv.h"

namespace {

constexpr int THREADS = 256;

template <class T, int M> __global__ void __launch_bounds__(THREADS) multiply(at_gemv_view<T> v) {
    const int column = (int)blockIdx.x * THREADS + (int)threadIdx.x;
    if (column >= v.n)
        return;
    float sums[M] = {};
    for (int l = 0; l < v.k; l++) {
        const float w = at_float(*v.at(l, column));
        AT_UNROLL
        for (int i = 0; i < M; i++)
            if (i < v.m)
                sums[i] = fmaf(at_float(v.x[(int64_t)i * v.k + l]), w, sums[i]);
    }
    AT_UNROLL
    for (int i = 0; i < M; i++)
        v.put(i, column, sums[i]);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_gemv_launch(p, [=]<class T, int M>() {
        return at_launch(multiply<T, M>, dim3{ at_gemv_pieces(at_gemm_own_of(p).n, THREADS), 1, 1 },
                         dim3{ THREADS, 1, 1 }, 0, launch->stream, at_gemv_view<T>::of(p));
    });
}

} // namespace

AT_KERNEL(gemv, 01_plain) = {
    .summary = "a thread a column, one chain of fma along k",
    .source = "ours",
    .numerics = AT_GEMV_NUMERICS(1, 0, AT_TREE_SEQUENTIAL, 0),
    .supports = at_gemv_declines,
    .workspace = nullptr,
    .launch = launch,
};
