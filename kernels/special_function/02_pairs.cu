/* The special-function unit, two elements of 16 bits at a time: a study of the hardware, not a kernel of any model.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: one instruction of the unit a pair (reference/special/unit_instruction.h, x2).
 * Launch: a thread a pair, blocks of 256; no shared memory.
 * Limits: the instructions of the table below; sm_90 for bf16.
 * Source: ours. */
#include "kernels/special_function/elements.h"

namespace {

/* The last element of an odd number is paired with 0. */
template <uint32_t (*F)(uint32_t)>
__global__ void __launch_bounds__(AT_SPECIAL_THREADS) pairs(int64_t n, const uint16_t *x, uint16_t *y) {
    const int64_t i = 2 * ((int64_t)blockIdx.x * AT_SPECIAL_THREADS + threadIdx.x);
    if (i + 1 < n)
        at_store32(&y[i], F(at_load32(&x[i])));
    else if (i < n)
        y[i] = (uint16_t)F(x[i]);
}

template <uint32_t (*F)(uint32_t)> int put(const struct at_launch *launch) {
    return at_special_put<uint16_t, 2, pairs<F>>(launch);
}

const at_special_entry table[] = {
    { "ex2.approx.f16x2", put<at_ex2_approx_f16x2> },
    { "ex2.approx.ftz.bf16x2", put<at_ex2_approx_ftz_bf16x2> },
    { "tanh.approx.f16x2", put<at_tanh_approx_f16x2> },
    { "tanh.approx.bf16x2", put<at_tanh_approx_bf16x2> },
};

const char *declines(const struct at_problem *p) { return at_special_find(table, p) ? nullptr : "another instruction"; }

int launch(const struct at_launch *launch) { return at_special_find(table, launch->problem)->launch(launch); }

} // namespace

AT_KERNEL(special_function, 02_pairs) = {
    .summary = "an instruction of the special-function unit a pair of 16 bits",
    .source = "ours",
    .numerics = AT_SPECIAL_NUMERICS,
    .supports = declines,
    .workspace = nullptr,
    .launch = launch,
};
