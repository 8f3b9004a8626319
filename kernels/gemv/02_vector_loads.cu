/* A product with weights by rows: a thread has eight columns, whose elements it loads as 16 bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 01_plain, an access of a warp is 512 bytes of a row, and the loads of eight rows are under way before the first
 * is used; but n = 4096 is work for 512 threads, and most multiprocessors have none.
 *
 * Numerically: as 01_plain, the same bits.
 * Launch: grid (columns / 512), 64 threads; no shared memory, no barrier.
 * Limits: f16 or bf16; at most eight rows; any n, k. Where n is no multiple of 8, elements are loaded one by one.
 * Source: 002, which predicts 10 % of its decode step from loads of 16 bytes. */
#include "kernels/gemv/gemv.h"

namespace {

constexpr int THREADS = 64, EACH = AT_GEMV_VECTOR, AHEAD = 8;

template <class T, int M> __global__ void __launch_bounds__(THREADS) multiply(at_gemv_view<T> v) {
    const int column = ((int)blockIdx.x * THREADS + (int)threadIdx.x) * EACH;
    float sums[M][EACH] = {};
    for (int begin = 0; begin < v.k; begin += AHEAD) {
        T w[AHEAD][EACH];
        AT_UNROLL
        for (int r = 0; r < AHEAD; r++)
            if (begin + r < v.k)
                v.load(begin + r, column, w[r]);
        AT_UNROLL
        for (int r = 0; r < AHEAD; r++) {
            if (begin + r >= v.k)
                break;
            AT_UNROLL
            for (int i = 0; i < M; i++) {
                if (i >= v.m)
                    break;
                const float x = at_float(v.x[(int64_t)i * v.k + begin + r]);
                AT_UNROLL
                for (int c = 0; c < EACH; c++)
                    sums[i][c] = fmaf(x, at_float(w[r][c]), sums[i][c]);
            }
        }
    }
    AT_UNROLL
    for (int i = 0; i < M; i++) {
        AT_UNROLL
        for (int c = 0; c < EACH; c++)
            v.put(i, column + c, sums[i][c]);
    }
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_gemv_launch(p, [=]<class T, int M>() {
        return at_launch(multiply<T, M>, dim3{ at_gemv_pieces(at_gemm_own_of(p).n, THREADS * EACH), 1, 1 },
                         dim3{ THREADS, 1, 1 }, 0, launch->stream, at_gemv_view<T>::of(p));
    });
}

} // namespace

AT_KERNEL(gemv, 02_vector_loads) = {
    .summary = "01 with eight columns a thread, loaded as 16 bytes",
    .source = "002",
    .numerics = AT_GEMV_NUMERICS(1, 0, AT_TREE_SEQUENTIAL, 0),
    .supports = at_gemv_declines,
    .workspace = nullptr,
    .launch = launch,
};
