/* exp and log with the same bits on every machine, since CUDA's differ from the C library's.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only f32 and f64 operations and fma, each correctly rounded, in a fixed order. For C and C++. */
#ifndef AT_DEVICE_EXP_H
#define AT_DEVICE_EXP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#include "kernels/device/device.h"
#endif

/* 2^e, -126 <= e <= 127. */
static __device__ inline float at_power_of_two(int e) {
    const uint32_t bits = (uint32_t)(e + 127) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* p 2^n for p in [1, 2], where the result is a normal number. */
static __device__ inline float at_times_power_of_two(float p, int n) {
    uint32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += (uint32_t)n << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

/* e^x of a score less its row's maximum, x <= 0, within one ulp (tests/kernels/device/test_device_exp.c); exactly 1 at 0, 0
 * from -104 down; a NaN stays one. x = n log 2 + r, |r| <= log(2)/2; e^r by Taylor's polynomial of degree 7, which is
 * 2^-27 from it at the ends. What 1 + r and the reduction lose is added again, so that one rounding counts. */
static __device__ inline float at_exp(float x) {
    if (!(x > -104.0f))
        return x <= -104.0f ? 0.0f : x;
    const float n = rintf(x * 0x1.715476p0f);
    const float high = fmaf(n, -0x1.62e4p-1f, x); /* exact: 15 bits of log 2 by at most 8 of n */
    const float r = fmaf(n, -0x1.7f7d1cp-20f, high), lost = fmaf(n, -0x1.7f7d1cp-20f, high - r);
    float p = 0x1.a01a02p-13f; /* 1/7! */
    p = fmaf(p, r, 0x1.6c16c2p-10f);
    p = fmaf(p, r, 0x1.111112p-7f);
    p = fmaf(p, r, 0x1.555556p-5f);
    p = fmaf(p, r, 0x1.555556p-3f);
    p = fmaf(p, r, 0.5f);
    const float one_and_r = 1.0f + r, left = r - (one_and_r - 1.0f);
    p = one_and_r + (left + fmaf(p * r, r, lost));
    const int e = (int)n, half = e / 2; /* in two steps: 2^e may lie beyond the normal numbers */
    return p * at_power_of_two(half) * at_power_of_two(e - half);
}

/* log x of a sum of weights to a rounding of its value in f64; x is 1 or more, since the maximum's own weight is 1, and
 * finite; down to 2^-126 it is right, too; 0 gives -infinity, NaN and less than 0 NaN.
 * x = 2^e m, sqrt(1/2) <= m < sqrt(2); log m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172: s^21/21 < 2^-57. */
static __device__ inline float at_log(float x) {
    if (!(x > 0.0f))
        return x == 0.0f ? -INFINITY : NAN;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 23) - 127;
    bits = (bits & 0x7fffffu) | 0x3f800000u;
    float m;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e6p0f) {
        m *= 0.5f;
        e++;
    }
    const double s = ((double)m - 1.0) / ((double)m + 1.0), z = s * s;
    double p = 0.0;
    for (int i = 19; i >= 1; i -= 2)
        p = fma(p, z, 1.0 / i);
    return (float)fma((double)e, 0x1.62e42fefa39efp-1, 2.0 * s * p);
}

#endif
