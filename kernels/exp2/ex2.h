/* 2^x by the hardware's approximation: the kernel that applies it to each element.
 * SPDX-License-Identifier: Apache-2.0
 *
 * PTX promises that ex2.approx.f32 is within two units in the last place of the correctly rounded result (PTX ISA 9.1,
 * 9.7.3.21); its bits are those of reference/special. */
#ifndef AT_EX2_H
#define AT_EX2_H

#include "attest/kernel.h"
#include "exp2/exp2.h"
#include "kernels/device/special.h"

constexpr int AT_EX2_THREADS = 256;

/* y[i] = F(x[i]), a thread an element. */
template <float (*F)(float)>
static __global__ void __launch_bounds__(AT_EX2_THREADS) at_ex2_elements(int64_t n, const float *x, float *y) {
    const int64_t i = (int64_t)blockIdx.x * AT_EX2_THREADS + threadIdx.x;
    if (i < n)
        y[i] = F(x[i]);
}

template <float (*F)(float)> int at_ex2_launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const unsigned blocks = (unsigned)((at_exp2_own_of(p).n + AT_EX2_THREADS - 1) / AT_EX2_THREADS);
    if (blocks == 0)
        return 0;
    return at_launch(at_ex2_elements<F>, dim3{ blocks, 1, 1 }, dim3{ AT_EX2_THREADS, 1, 1 }, 0, launch->stream,
                     at_exp2_own_of(p).n, static_cast<const float *>(p->tensors[AT_EXP2_X].data),
                     static_cast<float *>(p->tensors[AT_EXP2_Y].data));
}

/* What the variants declare: an instruction, nothing summed. */
#define AT_EX2_NUMERICS(exponential) \
    { \
        .qk_unit = AT_UNIT_F32, .qk_lanes = 1, .p = AT_F32, .exp = (exponential), .pv_unit = AT_UNIT_F32, \
        .pv_chunk = 1, .repeats = 1, .batch_invariant = 1 \
    }

#endif
