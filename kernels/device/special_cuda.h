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

#endif
