/* 2^x by the hardware's approximation, and the kernel that applies it to each element.
 * SPDX-License-Identifier: Apache-2.0
 *
 * PTX promises that ex2.approx.f32 is within two units in the last place of the correctly rounded result (PTX ISA 9.1,
 * 9.7.3.21). The bits come from tables of the special-function unit, which the vendor does not document; a public
 * project, ptx-math by B. Carleton, has a model of them for older GPUs, whose results an H200's equal on every f32 input.
 * The SIMT machine has no model yet, and a mere approximation would look like a prediction while it is wrong by a unit
 * here and there: kernels that use the unit decline there. `attest study exp2` pins their bits on a device. */
#ifndef AT_EX2_H
#define AT_EX2_H

#include "attest/kernel.h"
#include "exp2/exp2.h"
#include "kernels/device/device.h"

#ifdef __CUDACC__

/* Subnormal results are kept. */
__device__ inline float at_ex2_approx(float x) {
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* Subnormal arguments count as 0, and subnormal results are 0. */
__device__ inline float at_ex2_approx_ftz(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* Why this build has no such instruction, nullptr where it has. */
static inline const char *at_ex2_declines(const struct at_problem *) { return nullptr; }

#else

/* Never run: see at_ex2_declines. A NaN, so that no result could pass for one. */
/* not reached: runs on a GPU alone */
static inline float at_ex2_approx(float) { return NAN; }
/* not reached: runs on a GPU alone */
static inline float at_ex2_approx_ftz(float) { return NAN; }
static inline const char *at_ex2_declines(const struct at_problem *) {
    return "ex2.approx runs on a GPU alone: the SIMT machine has no model of its bits";
}

#endif

constexpr int AT_EX2_THREADS = 256;

/* y[i] = F(x[i]), a thread an element. */
template <float (*F)(float)>
/* not reached: runs on a GPU alone */
static __global__ void __launch_bounds__(AT_EX2_THREADS) at_ex2_elements(int64_t n, const float *x, float *y) {
    const int64_t i = (int64_t)blockIdx.x * AT_EX2_THREADS + threadIdx.x;
    /* not reached: runs on a GPU alone */
    if (i < n)
        y[i] = F(x[i]);
}

/* not reached: runs on a GPU alone */
template <float (*F)(float)> int at_ex2_launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const unsigned blocks = (unsigned)((at_exp2_own_of(p).n + AT_EX2_THREADS - 1) / AT_EX2_THREADS);
    /* not reached: runs on a GPU alone */
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
