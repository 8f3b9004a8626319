/* wgmma on patterns of operands: a study of the hardware, not a kernel of any model.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: one instruction of sm_90a a pattern (reference/tensor_core/instruction.h, hopper_wgmma_*).
 * Launch: a warpgroup a block for 8 patterns: its first warp holds their rows of a, the other three zeros; 256 bytes of
 * shared memory for b.
 * Limits: the instructions of the table below; sm_90a.
 * Source: ours. */
#include "kernels/tensor_core/dot_product_add.h"
#include "kernels/device/wgmma.h"

#include <string.h>

namespace {

constexpr int THREADS = 128;

struct alignas(128) columns {
    uint32_t words[64];
};

template <class TA, class TB, class C, int CN, int K, int N>
__global__ void __launch_bounds__(THREADS) wgmma(at_dpa_view v) {
    AT_SHARED(columns, b_tile);
    const int64_t first = (int64_t)blockIdx.x * AT_DPA_PATTERNS;
    const bool has_rows = threadIdx.x < 32;
    uint32_t a[4], b[2];
    C c[1][CN];
    at_dpa_load_a<K, N>(v, has_rows ? first : v.patterns, a);
    at_dpa_fill(v, has_rows ? first : v.patterns, c[0]);
    at_dpa_load_b<K, N>(v, first, b);
    if (has_rows) /* columns of 16 bytes, the second half of k behind the first */
        for (int r = 0; r < 2; r++)
            b_tile.words[32 * r + 4 * (at_lane() / 4) + at_lane() % 4] = b[r];
    at_proxy_fence();
    at_sync();
    at_wgmma_fence(c);
    at_wgmma(c, a, at_matrix::k_major(&b_tile, 128, 256), TA{}, TB{});
    at_wgmma_commit();
    at_wgmma_wait<0>(c);
    if (has_rows)
        at_dpa_store(v, first, c[0]);
}

template <void (*KERNEL)(at_dpa_view)> int put(const struct at_launch *launch) {
    const at_dpa_view v = at_dpa_view::of(launch->problem);
    const unsigned blocks = (unsigned)((v.patterns + AT_DPA_PATTERNS - 1) / AT_DPA_PATTERNS);
    return at_launch(KERNEL, dim3{ blocks, 1, 1 }, dim3{ THREADS, 1, 1 }, 0, launch->stream, v);
}

const at_dpa_entry table[] = {
    { "hopper_wgmma_k16_f16_f32", put<wgmma<at_f16, at_f16, float, 4, 16, 2>> },
    { "hopper_wgmma_k16_bf16_f32", put<wgmma<at_bf16, at_bf16, float, 4, 16, 2>> },
    { "hopper_wgmma_k16_f16_f16", put<wgmma<at_f16, at_f16, uint32_t, 2, 16, 2>> },
    { "hopper_wgmma_k8_tf32_f32", put<wgmma<at_tf32, at_tf32, float, 4, 8, 1>> },
    { "hopper_wgmma_k32_e4m3_f32", put<wgmma<at_e4m3, at_e4m3, float, 4, 32, 4>> },
    { "hopper_wgmma_k32_e4m3_f16", put<wgmma<at_e4m3, at_e4m3, uint32_t, 2, 32, 4>> },
    { "hopper_wgmma_k32_e4m3_e5m2_f32", put<wgmma<at_e4m3, at_e5m2, float, 4, 32, 4>> },
    { "hopper_wgmma_k32_e4m3_e5m2_f16", put<wgmma<at_e4m3, at_e5m2, uint32_t, 2, 32, 4>> },
    { "hopper_wgmma_k32_e5m2_e4m3_f32", put<wgmma<at_e5m2, at_e4m3, float, 4, 32, 4>> },
    { "hopper_wgmma_k32_e5m2_e4m3_f16", put<wgmma<at_e5m2, at_e4m3, uint32_t, 2, 32, 4>> },
    { "hopper_wgmma_k32_e5m2_f32", put<wgmma<at_e5m2, at_e5m2, float, 4, 32, 4>> },
    { "hopper_wgmma_k32_e5m2_f16", put<wgmma<at_e5m2, at_e5m2, uint32_t, 2, 32, 4>> },
};

const char *declines(const struct at_problem *p) { return at_dpa_find(table, p) ? nullptr : "another instruction"; }

int launch(const struct at_launch *launch) { return at_dpa_launch(table, launch); }

} // namespace

AT_KERNEL(tensor_core, 02_wgmma) = {
    .summary = "wgmma, 8 patterns a warpgroup",
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
