/* A product with weights by rows: tiles of 128 columns and 256 products, whose sums are added by atomics.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 01_plain, a column has a block for every 256 products, so that 4096 by 4096 is work for 512 blocks; x is in shared
 * memory. The f32 sums that atomics add to must be 0 before: a kernel of its own clears them.
 *
 * Atomics on global memory take subnormal terms and sums for 0. A column therefore has two sums: of partial sums from 2^-80
 * on, which are whole multiples of 2^-103 and stay so, and of smaller ones times 2^80, multiples of 2^-69.
 *
 * Numerically: one chain of fma for each 256 products; their sums are added in f32 in the order in which blocks come, which
 * changes from launch to launch; one fma joins the two. One rounding for the scale, one for the format of y.
 * Launch: grid (elements / 256), 256 threads, to clear; grid (columns / 128 * products / 256), 128 threads, 1 KiB of shared
 * memory a row, one barrier of the block; grid (elements / 256), 256 threads, to scale and round. Scratch: 8 bytes an
 * element of y.
 * Limits: f16 or bf16; at most eight rows; any n, k.
 * Source: 002. */
#include "kernels/gemv/gemv_tile.h"

namespace {

constexpr float SMALL = 0x1p-80f;

/* [elements] each: sums of what is SMALL or more, and of the rest divided by SMALL */
struct split_sums {
    float *large, *small;
};
static split_sums sums_in(void *workspace, int64_t elements) {
    float *const large = static_cast<float *>(workspace);
    return { large, large + elements };
}

__global__ void __launch_bounds__(AT_GEMV_ELEMENTS) clear(split_sums sums, int64_t n) {
    const int64_t i = (int64_t)blockIdx.x * AT_GEMV_ELEMENTS + (int)threadIdx.x;
    if (i < n)
        sums.large[i] = sums.small[i] = 0;
}

template <class T, int M>
__global__ void __launch_bounds__(AT_GEMV_TILE_COLUMNS) multiply(at_gemv_view<T> v, split_sums sums) {
    at_gemv_tile<T, M>(v, [&](int, int row, int column, float sum) {
        const int64_t i = (int64_t)row * v.n + column;
        if (fabsf(sum) < SMALL)
            at_atomic_add(sums.small + i, sum / SMALL);
        else
            at_atomic_add(sums.large + i, sum);
    });
}

template <class T> __global__ void __launch_bounds__(AT_GEMV_ELEMENTS) finish(at_gemv_view<T> v, split_sums sums) {
    const int64_t i = (int64_t)blockIdx.x * AT_GEMV_ELEMENTS + (int)threadIdx.x;
    if (i < (int64_t)v.m * v.n)
        v.put((int)(i / v.n), (int)(i % v.n), fmaf(sums.small[i], SMALL, sums.large[i]));
}

int64_t elements_of(const struct at_problem *p) { return at_gemm_own_of(p).m * at_gemm_own_of(p).n; }

int64_t workspace(const struct at_problem *p) { return elements_of(p) * 2 * (int64_t)sizeof(float); }

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_gemv_launch(p, [=]<class T, int M>() {
        const at_gemv_view<T> v = at_gemv_view<T>::of(p);
        const dim3 tiles = at_gemv_tiles(p), elements = at_gemv_elements(p), threads{ AT_GEMV_ELEMENTS, 1, 1 };
        const split_sums sums = sums_in(launch->workspace, elements_of(p));
        int code = at_launch(clear, elements, threads, 0, launch->stream, sums, elements_of(p));
        if (code == 0 && tiles.x > 0)
            code = at_launch(multiply<T, M>, tiles, dim3{ AT_GEMV_TILE_COLUMNS, 1, 1 }, 0, launch->stream, v, sums);
        return code == 0 ? at_launch(finish<T>, elements, threads, 0, launch->stream, v, sums) : code;
    });
}

} // namespace

AT_KERNEL(gemv, 03_split_atomic) = {
    .summary = "tiles of 128 x 256, added by atomics in f32",
    .source = "002",
    .numerics = {
        .free_order = 1,
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .split = AT_GEMV_TILE_PRODUCTS,
    },
    .supports = at_gemv_declines,
    .workspace = workspace,
    .launch = launch,
};
