/* mma.sync on patterns of operands: a study of the hardware, not a kernel of any model.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: one instruction of sm_90 a pattern (reference/tensor_core/instruction.h, hopper_mma_*).
 * Launch: a block of 4 warps for 32 patterns, 8 a warp; no shared memory.
 * Limits: the instructions of the table below; sm_89 and newer for fp8.
 * Source: ours. */
#include "kernels/tensor_core/dot_product_add.h"

#include <string.h>

namespace {

constexpr int WARPS = 4;

template <class T, int K, int N, int A, int B, class C, int CN, class F>
__device__ void run(const at_dpa_view &v, F multiply_add) {
    const int64_t first = ((int64_t)blockIdx.x * WARPS + threadIdx.x / 32) * AT_DPA_PATTERNS;
    uint32_t a[A], b[B];
    C c[CN];
    at_dpa_load_a<K, N>(v, first, a);
    at_dpa_load_b<K, N>(v, first, b);
    at_dpa_fill(v, first, c);
    multiply_add(c, a, b);
    at_dpa_store(v, first, c);
}

template <class T, class C, int CN> __global__ void __launch_bounds__(32 * WARPS) mma_16816(at_dpa_view v) {
    run<T, 16, 2, 4, 2, C, CN>(
        v, [](C(&c)[CN], const uint32_t(&a)[4], const uint32_t(&b)[2]) { at_mma_16816(c, a, b, c, T{}); });
}
template <class T, class C, int CN> __global__ void __launch_bounds__(32 * WARPS) mma_1688(at_dpa_view v) {
    run<T, 8, 2, 2, 1, C, CN>(
        v, [](C(&c)[CN], const uint32_t(&a)[2], const uint32_t(&b)[1]) { at_mma_1688(c, a, b, c, T{}); });
}
__global__ void __launch_bounds__(32 * WARPS) mma_1688_tf32(at_dpa_view v) {
    run<at_tf32, 8, 1, 4, 2, float, 4>(
        v, [](float(&c)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) { at_mma_1688(c, a, b, c, at_tf32{}); });
}
template <class T, class C, int CN> __global__ void __launch_bounds__(32 * WARPS) mma_16832(at_dpa_view v) {
    run<T, 32, 4, 4, 2, C, CN>(
        v, [](C(&c)[CN], const uint32_t(&a)[4], const uint32_t(&b)[2]) { at_mma_16832(c, a, b, c, T{}); });
}

template <void (*KERNEL)(at_dpa_view)> int put(const struct at_launch *launch) {
    const at_dpa_view v = at_dpa_view::of(launch->problem);
    const unsigned blocks = (unsigned)((v.patterns + WARPS * AT_DPA_PATTERNS - 1) / (WARPS * AT_DPA_PATTERNS));
    return at_launch(KERNEL, dim3{ blocks, 1, 1 }, dim3{ 32 * WARPS, 1, 1 }, 0, launch->stream, v);
}

const at_dpa_entry table[] = {
    { "hopper_mma_k16_f16_f32", put<mma_16816<at_f16, float, 4>> },
    { "hopper_mma_k16_bf16_f32", put<mma_16816<at_bf16, float, 4>> },
    { "hopper_mma_k16_f16_f16", put<mma_16816<at_f16, uint32_t, 2>> },
    { "hopper_mma_k8_f16_f32", put<mma_1688<at_f16, float, 4>> },
    { "hopper_mma_k8_bf16_f32", put<mma_1688<at_bf16, float, 4>> },
    { "hopper_mma_k8_f16_f16", put<mma_1688<at_f16, uint32_t, 2>> },
    { "hopper_mma_k8_tf32_f32", put<mma_1688_tf32> },
    { "hopper_mma_k32_e4m3_f32", put<mma_16832<at_e4m3, float, 4>> },
    { "hopper_mma_k32_e4m3_f16", put<mma_16832<at_e4m3, uint32_t, 2>> },
    { "hopper_mma_k32_e5m2_f32", put<mma_16832<at_e5m2, float, 4>> },
    { "hopper_mma_k32_e5m2_f16", put<mma_16832<at_e5m2, uint32_t, 2>> },
};

const char *declines(const struct at_problem *p) { return at_dpa_find(table, p) ? nullptr : "another instruction"; }

int launch(const struct at_launch *launch) { return at_dpa_launch(table, launch); }

} // namespace

AT_KERNEL(tensor_core, 01_mma) = {
    .summary = "mma.sync, 8 patterns a warp",
    .source = "ours",
    .numerics = { /* the instruction has its own */
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = declines,
    .workspace = nullptr,
    .launch = launch,
};
