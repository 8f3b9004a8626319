/* y = scale * (x W), W by rows: what every kernel of the family shares, from the view of a problem to the launch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rows of x are the tokens of a batched decode, eight at most: each element of W is loaded once for all of them. Kernels are
 * compiled for 1, 2, 4 and 8 rows (M); those past m are not computed. */
#ifndef AT_GEMV_H
#define AT_GEMV_H

#include "attest/kernel.h"
#include "gemm/gemm.h"
#include "kernels/device/device.h"

/* Columns of W that a thread loads as 16 bytes. */
constexpr int AT_GEMV_MAX_ROWS = 8, AT_GEMV_VECTOR = 8;
/* Neighbours of x that 05 and 06 load as 16 bytes, and so what a chain takes of k at a time. */
constexpr int AT_GEMV_RUN = 8;

template <class T> struct at_gemv_view {
    static constexpr int EACH = AT_GEMV_VECTOR;
    int m, n, k, out; /* out: enum at_format of y */
    float scale;
    const T *x, *w;
    void *y;

    static at_gemv_view of(const struct at_problem *p) {
        const struct at_gemm_own z = at_gemm_own_of(p);
        return { (int)z.m,
                 (int)z.n,
                 (int)z.k,
                 z.out,
                 p->params.scale,
                 static_cast<const T *>(p->tensors[AT_GEMM_A].data),
                 static_cast<const T *>(p->tensors[AT_GEMM_W].data),
                 p->tensors[AT_GEMM_D].data };
    }
    __device__ const T *at(int l, int column) const { return w + (int64_t)l * n + column; }
    /* Is every row of W made of whole vectors? */
    __device__ bool is_whole() const { return n % EACH == 0; }
    /* Eight neighbours of row l of W, zeros past the last column. */
    __device__ void load(int l, int column, T (&to)[EACH]) const {
        for (int i = 0; i < EACH; i++)
            to[i] = T{};
        if (is_whole() && column < n)
            at_load16(at(l, column), to);
        for (int i = 0; !is_whole() && i < EACH; i++)
            if (column + i < n)
                to[i] = *at(l, column + i);
    }
    /* Scales a finished sum and stores it in the format of y, unless there is no such row or column. */
    __device__ void put(int row, int column, float sum) const {
        const int64_t i = (int64_t)row * n + column;
        const float value = scale * sum;
        if (row >= m || column >= n)
            return;
        if (out == AT_F32)
            static_cast<float *>(y)[i] = value;
        else if (out == AT_F16)
            static_cast<at_f16 *>(y)[i] = at_round_to<at_f16>(value);
        else
            static_cast<at_bf16 *>(y)[i] = at_round_to<at_bf16>(value);
    }
};

/* Eight neighbours of each row of x from l on, zeros past k and of rows past m: a branch less for each product. */
template <class T, int M> __device__ void at_gemv_load_x(const at_gemv_view<T> &v, int l, T (&x)[M][AT_GEMV_RUN]) {
    AT_UNROLL
    for (int i = 0; i < M; i++) {
        const T *from = v.x + (int64_t)i * v.k + l;
        for (int r = 0; r < AT_GEMV_RUN; r++)
            x[i][r] = T{};
        if (i < v.m && v.k % AT_GEMV_RUN == 0 && l < v.k)
            at_load16(from, x[i]);
        if (i < v.m && v.k % AT_GEMV_RUN != 0) {
            AT_UNROLL
            for (int r = 0; r < AT_GEMV_RUN; r++)
                if (l + r < v.k)
                    x[i][r] = from[r];
        }
    }
}

/* Eight values in pairs, by the masks 4, 2, 1. */
template <class F> __device__ float at_gemv_joined(F at) {
    return ((at(0) + at(4)) + (at(2) + at(6))) + ((at(1) + at(5)) + (at(3) + at(7)));
}

/* launch.operator()<T, M>() for the problem's format and rows; 0 where there is nothing to write. */
template <class F> int at_gemv_launch(const struct at_problem *problem, F launch) {
    const struct at_gemm_own z = at_gemm_own_of(problem);
    const auto with_rows = [&]<class T>() {
        return z.m <= 1   ? launch.template operator()<T, 1>()
               : z.m <= 2 ? launch.template operator()<T, 2>()
               : z.m <= 4 ? launch.template operator()<T, 4>()
                          : launch.template operator()<T, AT_GEMV_MAX_ROWS>();
    };
    if (z.m == 0 || z.n == 0)
        return 0;
    return problem->dtype == AT_F16 ? with_rows.template operator()<at_f16>()
                                    : with_rows.template operator()<at_bf16>();
}

/* n in pieces of `each`. */
static inline unsigned at_gemv_pieces(int64_t n, int64_t each) { return (unsigned)((n + each - 1) / each); }

/* Declared numerics: LANES chains of fma, each RUN neighbours at a time, joined by TREE; f32 adds the sums of SPLIT
 * products each (0: there is one). */
#define AT_GEMV_NUMERICS(LANES, RUN, TREE, SPLIT) \
    { \
        .qk_unit = AT_UNIT_F32_FMA, .qk_lanes = LANES, .qk_run = RUN, .qk_tree = TREE, .p = AT_F32, \
        .pv_unit = AT_UNIT_F32, .pv_chunk = 1, .split = SPLIT, .repeats = 1, .batch_invariant = 1, \
    }

/* Why a problem is declined. */
static inline const char *at_gemv_declines(const struct at_problem *p) {
    if (p->dtype != AT_F16 && p->dtype != AT_BF16)
        return "factors are f16 or bf16";
    if (at_gemm_own_of(p).layout != AT_GEMM_KN)
        return "the second factor is stored by rows";
    if (!at_gemm_is_plain(p))
        return "one scale, and neither bias nor maximum";
    return at_gemm_own_of(p).m > AT_GEMV_MAX_ROWS ? "at most eight rows" : nullptr;
}

#endif
