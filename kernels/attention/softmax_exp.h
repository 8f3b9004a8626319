/* Softmax kernels by the special-function unit: scores into weights, the factors of rescalings, output and lse.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Steps that know nothing of exponentials (softmax_mma.h, softmax_tma.h, softmax_parts.h) take one of these classes:
 *
 *   at_softmax_natural   e^x by our own at_exp, scores scaled before; one division; lse by at_log
 *   at_softmax_ex2       2^x by ex2.approx.ftz of fma(dot, b, -(max b)), b = scale log2(e): scores stay unscaled, as in the
 *                        fast kernels of the field; DIVIDE: how the sum of weights divides; lse by lg2.approx.ftz.
 *                        POLY3 of each 32 keys (the last groups of 8) take 2^x by a polynomial on the FMA units instead
 *
 * Where a maximum is -infinity 0 is subtracted in its place, so that such weights are 0, not NaN. */
#ifndef AT_ATTENTION_SOFTMAX_EXP_H
#define AT_ATTENTION_SOFTMAX_EXP_H

#include "attest/numerics.h"
#include "kernels/device/exp.h"
#include "kernels/device/special.h"
#include "softmax_attention/softmax_attention.h"

/* What is subtracted from scores whose maximum is `max`. */
__device__ inline float at_softmax_base(float max) { return max == -INFINITY ? 0.0f : max; }

/* The factor that rescales sums relative to the maximum `old` when it becomes `now`; exactly 1 while it stays. */
__device__ inline float at_softmax_factor(float old, float now) {
    return old == now ? 1.0f : at_exp(old - at_softmax_base(now));
}

struct at_softmax_natural {
    float scale;

    __device__ explicit at_softmax_natural(float of) : scale(of) {}
    __device__ float score(float dot) const { return dot * scale; }
    /* What weight() wants for a maximum. */
    __device__ static float base(float max) { return at_softmax_base(max); }
    /* group: which eight keys of a tile. */
    __device__ static float weight(float score, float base, int group) {
        (void)group;
        return at_exp(score - base);
    }
    __device__ static float factor(float old, float now) { return at_softmax_factor(old, now); }
    __device__ static float divisor(float sum) { return sum; }
    __device__ static float quotient(float x, float divisor) { return x / divisor; }
    __device__ static float lse(float max, float sum) { return max + at_log(sum); }
};

/* 2^x by a polynomial (attest/numerics.h), by the unit below its range. */
__device__ inline float at_ex2_poly3(float x) {
    if (!(x >= AT_EX2_POLY3_LOW)) /* also NaN */
        return at_ex2_approx_ftz(x);
    x = fminf(x, AT_EX2_POLY3_HIGH);
    const float whole = floorf(x), f = x - whole;
    const float p = fmaf(fmaf(fmaf(AT_EX2_POLY3_C3, f, AT_EX2_POLY3_C2), f, AT_EX2_POLY3_C1), f, 1.0f);
    return at_times_power_of_two(p, (int)whole);
}

template <enum at_divide DIVIDE, int POLY3 = 0> struct at_softmax_ex2 {
    static_assert(POLY3 % 8 == 0 && POLY3 <= AT_EX2_POLY3_OF, "whole groups of eight keys");
    float scale, folded;

    __device__ explicit at_softmax_ex2(float of) : scale(of), folded(of * 0x1.715476p0f) {}
    __device__ static float score(float dot) { return dot; }
    __device__ float base(float max) const { return at_softmax_base(max) * folded; }
    __device__ float weight(float score, float base, int group) const {
        const float x = fmaf(score, folded, -base);
        const bool by_polynomial = group % (AT_EX2_POLY3_OF / 8) >= (AT_EX2_POLY3_OF - POLY3) / 8;
        return by_polynomial ? at_ex2_poly3(x) : at_ex2_approx_ftz(x);
    }
    __device__ float factor(float old, float now) const {
        return old == now ? 1.0f : at_ex2_approx_ftz((old - at_softmax_base(now)) * folded);
    }
    __device__ static float divisor(float sum) {
        return DIVIDE == AT_DIVIDE_RCP_APPROX_FTZ ? at_rcp_approx_ftz(sum)
               : DIVIDE == AT_DIVIDE_RECIPROCAL   ? 1.0f / sum
                                                  : sum;
    }
    __device__ static float quotient(float x, float divisor) {
        return DIVIDE == AT_DIVIDE_DIVISION ? x / divisor : x * divisor;
    }
    __device__ float lse(float max, float sum) const {
        return fmaf(max, scale, at_lg2_approx_ftz(sum) * 0x1.62e43p-1f);
    }
};

/* Why a problem's scale cannot be folded into the exponential's argument, or NULL. */
static inline const char *at_softmax_ex2_declines(const struct at_problem *problem) {
    return at_softmax_folds(problem->params.scale) ? NULL : "the scale is not between 2^-64 and 2^64";
}

#endif
