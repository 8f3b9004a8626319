/* What kernels of gated products share: where gate and up lie, a kernel that takes an element a thread, one that takes 16 bytes
 * at a time, and their launches.
 * SPDX-License-Identifier: Apache-2.0
 *
 * F(gate, up) is the product in f32; activations of type T, float, at_f16 or at_bf16, are rounded to once. */
#ifndef AT_KERNELS_GATED_H
#define AT_KERNELS_GATED_H

#include "attest/kernel.h"
#include "gated/gated.h"
#include "kernels/device/device.h"

constexpr int AT_GATED_THREADS = 256;
/* Of the kernel that takes 16 bytes at a time: rows of 3072 and 4096 in 16 bits are whole blocks; eight blocks a multiprocessor of
 * an H200, which has 132. */
constexpr int AT_GATED_PIECE_THREADS = 128;
constexpr int64_t AT_GATED_BLOCKS = 1056;

/* Rows of gate and up, `stride` elements apart; y is dense. Three dense tensors are one row. whole: rows of all three begin at 16
 * bytes; those of halves together do so in gate and up alike only where a half is whole pieces of 16 bytes. */
template <class T> struct at_gated_rows_of {
    const T *gate, *up;
    T *y;
    int64_t rows, channels, stride;
    bool whole;

    static at_gated_rows_of of(const struct at_problem *p) {
        const auto data = [p](int t) { return static_cast<T *>(p->tensors[t].data); };
        const int64_t rows = p->sizes.tokens, n = p->sizes.channels;
        if (at_gated_own_of(p).halves == AT_HALVES_APART)
            return { data(AT_GATED_GATE), data(AT_GATED_UP), data(AT_GATED_Y), 1, rows * n, rows * n, true };
        T *both = data(AT_GATED_GATE_UP);
        return { both, both + n, data(AT_GATED_Y), rows, n, 2 * n, n * (int64_t)sizeof(T) % 16 == 0 };
    }
};

/* An element a thread. */
template <class T, float (*F)(float, float)>
static __global__ void __launch_bounds__(AT_GATED_THREADS) at_gated_elements(at_gated_rows_of<T> x) {
    const int64_t i = (int64_t)blockIdx.x * AT_GATED_THREADS + threadIdx.x;
    if (i >= x.rows * x.channels)
        return;
    const int64_t at = i / x.channels * x.stride + i % x.channels;
    x.y[i] = at_round_to<T>(F(at_float(x.gate[at]), at_float(x.up[at])));
}

/* N elements of a row from channel c on, or what there is of them. */
template <int N, float (*F)(float, float), class T>
__device__ void at_gated_piece(const at_gated_rows_of<T> &x, int64_t row, int64_t c) {
    const T *gate = x.gate + row * x.stride + c, *up = x.up + row * x.stride + c;
    T *y = x.y + row * x.channels + c;
    if (x.whole && c + N <= x.channels) {
        T g[N], u[N];
        at_load16(gate, g);
        at_load16(up, u);
        AT_UNROLL
        for (int j = 0; j < N; j++)
            g[j] = at_round_to<T>(F(at_float(g[j]), at_float(u[j])));
        at_store16(y, g);
    } else {
        for (int j = 0; j < N && c + j < x.channels; j++)
            y[j] = at_round_to<T>(F(at_float(gate[j]), at_float(up[j])));
    }
}

/* Pieces of a row that are 16 bytes long, a thread each: blocks in x share a row, blocks in y take rows, and both go on a grid
 * further. A complete piece is loaded and stored whole where rows begin at 16 bytes; all else goes by elements. No division finds
 * the row: it would take as long as the product. */
template <class T, float (*F)(float, float)>
static __global__ void __launch_bounds__(AT_GATED_PIECE_THREADS) at_gated_pieces(at_gated_rows_of<T> x) {
    constexpr int N = 16 / (int)sizeof(T);
    const int64_t first = ((int64_t)blockIdx.x * AT_GATED_PIECE_THREADS + threadIdx.x) * N;
    for (int64_t row = blockIdx.y; row < x.rows; row += gridDim.y)
        for (int64_t c = first; c < x.channels; c += (int64_t)gridDim.x * AT_GATED_PIECE_THREADS * N)
            at_gated_piece<N, F>(x, row, c);
}

/* f(rows) for the problem's activations; 0 when it has none. */
template <class F> int at_gated_launch(const struct at_problem *p, F f) {
    if (p->sizes.tokens == 0)
        return 0;
    if (p->dtype == AT_F16)
        return f(at_gated_rows_of<at_f16>::of(p));
    return p->dtype == AT_BF16 ? f(at_gated_rows_of<at_bf16>::of(p)) : f(at_gated_rows_of<float>::of(p));
}

template <float (*F)(float, float)> int at_gated_launch_elements(const struct at_launch *launch) {
    return at_gated_launch(launch->problem, [=]<class T>(const at_gated_rows_of<T> &x) {
        const int64_t blocks = (x.rows * x.channels + AT_GATED_THREADS - 1) / AT_GATED_THREADS;
        return at_launch(at_gated_elements<T, F>, dim3{ (unsigned)blocks, 1, 1 }, dim3{ AT_GATED_THREADS, 1, 1 }, 0,
                         launch->stream, x);
    });
}

template <float (*F)(float, float)> int at_gated_launch_pieces(const struct at_launch *launch) {
    return at_gated_launch(launch->problem, [=]<class T>(const at_gated_rows_of<T> &x) {
        const int64_t a_block = AT_GATED_PIECE_THREADS * 16 / (int64_t)sizeof(T);
        const int64_t wanted = (x.channels + a_block - 1) / a_block;
        const int64_t across = wanted < AT_GATED_BLOCKS ? wanted : AT_GATED_BLOCKS, most = AT_GATED_BLOCKS / across;
        return at_launch(at_gated_pieces<T, F>, dim3{ (unsigned)across, (unsigned)(x.rows < most ? x.rows : most), 1 },
                         dim3{ AT_GATED_PIECE_THREADS, 1, 1 }, 0, launch->stream, x);
    });
}

#endif
