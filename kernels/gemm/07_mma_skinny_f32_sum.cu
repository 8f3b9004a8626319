/* A product of few rows, as a decode step has: bound by reading b once, so all of the device reads it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block has all rows of a and 8 or 32 columns of d; its warps take ranges of 256 products in turn. A warp copies what it
 * multiplies into a ring of its own, steps of 64 products ahead by cp.async, and waits for no other warp. After each of
 * its ranges the block adds the warps' sums in their order.
 *
 * Numerically: mma.sync as 01_mma_f32_sum within a range of 256 products; f32 adds the ranges' sums, the first first.
 * Launch: grid (columns / 8, or / 32 where that still fills the device), 4 warps; 64 to 212 KiB of dynamic shared memory;
 * two barriers of the block for every 1024 products.
 * Limits: f16 or bf16; at most 64 rows; k a multiple of 8, for copies of 16 bytes.
 * Source: ours; a decode step's products. */
#include "kernels/gemm/gemm_skinny.h"

namespace {

template <class T, int M, int N> __global__ void __launch_bounds__(AT_GEMM_THREADS, 1) multiply(at_gemm_view<T> v) {
    AT_SHARED_DYNAMIC(T, memory);
    using tile = at_skinny_tile<T, M, N>;
    const tile t{ v, memory };
    float totals[M * N] = {};
    const int steps = t.steps();
    for (int s = 0; s < tile::STAGES - 1; s++)
        t.copy(s);
    for (int first = 0; first < steps; first += tile::STEPS) {
        at_sum_f32 sums[M][N] = {};
        for (int s = first; s < first + tile::STEPS; s++) {
            at_copy_wait<tile::STAGES - 2>();
            at_sync_warp(); /* the step is there, and the stage of the one before has been read */
            t.copy(s + tile::STAGES - 1);
            t.multiply(s, sums);
        }
        t.put(sums);
        at_sync();
        t.add(first, totals);
        at_sync(); /* before the next sums are put there */
    }
    t.store(totals);
}

template <class T, int M, int N> int start(const struct at_launch *launch, const at_gemm_view<T> &v) {
    using tile = at_skinny_tile<T, M, N>;
    const dim3 grid{ (unsigned)((v.n + 8 * N - 1) / (8 * N)), 1, 1 };
    return at_launch(multiply<T, M, N>, grid, dim3{ AT_GEMM_THREADS, 1, 1 }, tile::BYTES, launch->stream, v);
}

/* Each block reads all of a: with many columns fewer blocks of more columns read less. */
template <class T, int M> int with_columns(const struct at_launch *launch, const at_gemm_view<T> &v) {
    enum { MANY = 2048 };
    return v.n < MANY ? start<T, M, 1>(launch, v) : start<T, M, 4>(launch, v);
}

template <class T> int with_rows(const struct at_launch *launch) {
    const at_gemm_view<T> v = at_gemm_view<T>::of(launch->problem);
    const int code = at_gemm_begin(launch, v);
    if (code || v.m == 0 || v.n == 0)
        return code;
    return v.m <= 16 ? with_columns<T, 1>(launch, v)
                     : (v.m <= 32 ? with_columns<T, 2>(launch, v) : with_columns<T, 4>(launch, v));
}

const char *supports(const struct at_problem *problem) {
    const struct at_gemm_own z = at_gemm_own_of(problem);
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "factors are f16 or bf16";
    if (z.m > 64)
        return "it has at most 64 rows";
    return z.k % 8 ? "rows of the factors are no multiple of 16 bytes" : at_gemm_declines(problem);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_F16 ? with_rows<at_f16>(launch) : with_rows<at_bf16>(launch);
}

} // namespace

AT_KERNEL(gemm, 07_mma_skinny_f32_sum) = {
    .summary = "few rows: every warp copies and multiplies a range of 256 products of its own; sums in f32",
    .source = "ours",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_F32, AT_SKINNY_RANGE, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
