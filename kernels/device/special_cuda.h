/* kernels/device/special.h for CUDA.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SPECIAL_CUDA_H
#define AT_SPECIAL_CUDA_H

#include "kernels/device/device_cuda.h"

#define AT_SPECIAL_INSTRUCTION(NAME, PTX) \
    __device__ inline float NAME(float x) { \
        float y; \
        asm(PTX " %0, %1;" : "=f"(y) : "f"(x)); \
        return y; \
    }
AT_SPECIAL_INSTRUCTION(at_ex2_approx, "ex2.approx.f32")
AT_SPECIAL_INSTRUCTION(at_ex2_approx_ftz, "ex2.approx.ftz.f32")
AT_SPECIAL_INSTRUCTION(at_rcp_approx, "rcp.approx.f32")
AT_SPECIAL_INSTRUCTION(at_rcp_approx_ftz, "rcp.approx.ftz.f32")
AT_SPECIAL_INSTRUCTION(at_rsqrt_approx, "rsqrt.approx.f32")
AT_SPECIAL_INSTRUCTION(at_rsqrt_approx_ftz, "rsqrt.approx.ftz.f32")
AT_SPECIAL_INSTRUCTION(at_sqrt_approx, "sqrt.approx.f32")
AT_SPECIAL_INSTRUCTION(at_sqrt_approx_ftz, "sqrt.approx.ftz.f32")
AT_SPECIAL_INSTRUCTION(at_lg2_approx, "lg2.approx.f32")
AT_SPECIAL_INSTRUCTION(at_lg2_approx_ftz, "lg2.approx.ftz.f32")
AT_SPECIAL_INSTRUCTION(at_sin_approx, "sin.approx.f32")
AT_SPECIAL_INSTRUCTION(at_sin_approx_ftz, "sin.approx.ftz.f32")
AT_SPECIAL_INSTRUCTION(at_cos_approx, "cos.approx.f32")
AT_SPECIAL_INSTRUCTION(at_cos_approx_ftz, "cos.approx.ftz.f32")
AT_SPECIAL_INSTRUCTION(at_tanh_approx, "tanh.approx.f32")
#undef AT_SPECIAL_INSTRUCTION

/* Of codes, alone (C "h") and two in a word (C "r"). */
#define AT_SPECIAL_NARROW(T, NAME, PTX, C) \
    __device__ inline T NAME(T x) { \
        T y; \
        asm(PTX " %0, %1;" : "=" C(y) : C(x)); \
        return y; \
    }
AT_SPECIAL_NARROW(uint16_t, at_ex2_approx_f16, "ex2.approx.f16", "h")
AT_SPECIAL_NARROW(uint32_t, at_ex2_approx_f16x2, "ex2.approx.f16x2", "r")
AT_SPECIAL_NARROW(uint16_t, at_tanh_approx_f16, "tanh.approx.f16", "h")
AT_SPECIAL_NARROW(uint32_t, at_tanh_approx_f16x2, "tanh.approx.f16x2", "r")
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 /* has none of them: a launch traps */
#undef AT_SPECIAL_NARROW
#define AT_SPECIAL_NARROW(T, NAME, PTX, C) \
    __device__ inline T NAME(T x) { \
        __trap(); \
        return x; \
    }
#endif
AT_SPECIAL_NARROW(uint16_t, at_ex2_approx_ftz_bf16, "ex2.approx.ftz.bf16", "h")
AT_SPECIAL_NARROW(uint32_t, at_ex2_approx_ftz_bf16x2, "ex2.approx.ftz.bf16x2", "r")
AT_SPECIAL_NARROW(uint16_t, at_tanh_approx_bf16, "tanh.approx.bf16", "h")
AT_SPECIAL_NARROW(uint32_t, at_tanh_approx_bf16x2, "tanh.approx.bf16x2", "r")
#undef AT_SPECIAL_NARROW

#endif
