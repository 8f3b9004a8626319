/* SiLU(gate) * up of one element, by an exponential and a quotient of the caller's choice, and what kernels declare of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SILU_H
#define AT_SILU_H

#include "kernels/device/special.h"
#include "kernels/gated/gated.h"

/* g / s, correctly rounded; g times the reciprocal of s by the special-function unit. */
__device__ inline float at_silu_division(float g, float s) { return g / s; }
__device__ inline float at_silu_rcp_approx(float g, float s) { return g * at_rcp_approx(s); }
__device__ inline float at_silu_rcp_approx_ftz(float g, float s) { return g * at_rcp_approx_ftz(s); }

/* g / (1 + 2^(-g log2(e))) * up: the argument, 1 + e, the quotient and the product are rounded one by one. */
template <float (*EX2)(float), float (*QUOTIENT)(float, float)> __device__ float at_silu_mul(float g, float up) {
    const float e = EX2(g * -0x1.715476p0f);
    return QUOTIENT(g, 1.0f + e) * up;
}

/* What a kernel declares: nothing is summed. */
#define AT_SILU_NUMERICS(exponential, quotient) \
    { \
        .qk_unit = AT_UNIT_F32, .qk_lanes = 1, .p = AT_F32, .exp = (exponential), .divide = (quotient), \
        .pv_unit = AT_UNIT_F32, .pv_chunk = 1, .repeats = 1, .batch_invariant = 1 \
    }

#endif
