/* The special-function unit, an element at a time: a study of the hardware, not a kernel of any model.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: one instruction of the unit an element (reference/special/unit_instruction.h).
 * Launch: a thread an element, blocks of 256; no shared memory.
 * Limits: the instructions of the table below; sm_90 for bf16.
 * Source: ours. */
#include "kernels/special_function/elements.h"

namespace {

/* Elements as the instruction takes them: numbers of f32, codes of 16 bits. */
template <class T, T (*F)(T)>
__global__ void __launch_bounds__(AT_SPECIAL_THREADS) elements(int64_t n, const T *x, T *y) {
    const int64_t i = (int64_t)blockIdx.x * AT_SPECIAL_THREADS + threadIdx.x;
    if (i < n)
        y[i] = F(x[i]);
}

template <class T, T (*F)(T)> int put(const struct at_launch *launch) {
    return at_special_put<T, 1, elements<T, F>>(launch);
}

const at_special_entry table[] = {
    { "ex2.approx.f32", put<float, at_ex2_approx> },
    { "ex2.approx.ftz.f32", put<float, at_ex2_approx_ftz> },
    { "rcp.approx.f32", put<float, at_rcp_approx> },
    { "rcp.approx.ftz.f32", put<float, at_rcp_approx_ftz> },
    { "rsqrt.approx.f32", put<float, at_rsqrt_approx> },
    { "rsqrt.approx.ftz.f32", put<float, at_rsqrt_approx_ftz> },
    { "sqrt.approx.f32", put<float, at_sqrt_approx> },
    { "sqrt.approx.ftz.f32", put<float, at_sqrt_approx_ftz> },
    { "lg2.approx.f32", put<float, at_lg2_approx> },
    { "lg2.approx.ftz.f32", put<float, at_lg2_approx_ftz> },
    { "sin.approx.f32", put<float, at_sin_approx> },
    { "sin.approx.ftz.f32", put<float, at_sin_approx_ftz> },
    { "cos.approx.f32", put<float, at_cos_approx> },
    { "cos.approx.ftz.f32", put<float, at_cos_approx_ftz> },
    { "tanh.approx.f32", put<float, at_tanh_approx> },
    { "ex2.approx.f16", put<uint16_t, at_ex2_approx_f16> },
    { "ex2.approx.ftz.bf16", put<uint16_t, at_ex2_approx_ftz_bf16> },
    { "tanh.approx.f16", put<uint16_t, at_tanh_approx_f16> },
    { "tanh.approx.bf16", put<uint16_t, at_tanh_approx_bf16> },
};

const char *declines(const struct at_problem *p) { return at_special_find(table, p) ? nullptr : "another instruction"; }

int launch(const struct at_launch *launch) { return at_special_find(table, launch->problem)->launch(launch); }

} // namespace

AT_KERNEL(special_function, 01_unit) = {
    .summary = "an instruction of the special-function unit an element",
    .source = "ours",
    .numerics = AT_SPECIAL_NUMERICS,
    .supports = declines,
    .workspace = nullptr,
    .launch = launch,
};
