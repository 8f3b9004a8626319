/* exp, exp2 and log2 out of +, -, *, / and integer operations alone: one text, the same bits on every machine.
 * SPDX-License-Identifier: Apache-2.0
 *
 * libm's functions differ between versions and from those of a GPU; these do not, as long as nothing is contracted to
 * fma and subnormals live. No branches, so that loops over them vectorise. C and CUDA C++ read this file; CUDA sets
 * AT_PLAIN to `static __host__ __device__ __forceinline__` first.
 *
 * at_plain_exp: x = n ln 2 + r, |r| <= ln(2)/2, Taylor's series of exp(r) to r^13 (the rest is below 2^-57), then times
 * 2^n in two steps, so that a subnormal result is rounded once. At most 2 ulp off, 0 only below -745.13, inf above
 * 709.78; exp(0) is 1. at_plain_exp2: the same with r = (x - n) ln 2; whole numbers are exact.
 *
 * at_plain_log2: x = 2^e m, m in [sqrt(1/2), sqrt(2)); with s = (m - 1) / (m + 1), log2 m = 2/ln 2 (s + s^3/3 + ...) to
 * s^23. s is kept in two parts, and so is 2/ln 2. At most 2 ulp off; log2 of a power of two is exact; 0 gives -inf,
 * negative numbers NaN. */
#ifndef AT_PLAIN_MATH_H
#define AT_PLAIN_MATH_H

#include <stdint.h>
#include <string.h>

#ifndef AT_PLAIN
#define AT_PLAIN static inline
#endif

AT_PLAIN int64_t at_plain_bits(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

AT_PLAIN double at_plain_from_bits(int64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a where the condition (0 or 1) holds, else b; of ?: compilers make branches here. */
AT_PLAIN double at_plain_take(int64_t condition, double a, double b) {
    return at_plain_from_bits(at_plain_bits(b) ^ ((at_plain_bits(a) ^ at_plain_bits(b)) & -condition));
}

/* 2^n, -1022 <= n <= 1023. */
AT_PLAIN double at_plain_power(int64_t n) {
    return at_plain_from_bits((int64_t)((uint64_t)(n + 1023) << 52)); /* of a NaN's n, any bits at all */
}

/* exp(r) 2^n for |r| <= 0.35 and |n| <= 2044. */
AT_PLAIN double at_plain_exp_of(double r, int64_t n) {
    double q = 1.0 / 6227020800.0; /* 1/13! */
    q = q * r + 1.0 / 479001600.0;
    q = q * r + 1.0 / 39916800.0;
    q = q * r + 1.0 / 3628800.0;
    q = q * r + 1.0 / 362880.0;
    q = q * r + 1.0 / 40320.0;
    q = q * r + 1.0 / 5040.0;
    q = q * r + 1.0 / 720.0;
    q = q * r + 1.0 / 120.0;
    q = q * r + 1.0 / 24.0;
    q = q * r + 1.0 / 6.0;
    q = q * r + 0.5;
    const double e = 1.0 + (r + (r * r) * q);
    const int64_t half = n >> 1;
    return (e * at_plain_power(half)) * at_plain_power(n - half);
}

/* The whole number nearest to x, |x| < 2^51, in the low bits of the sum's significand. */
#define AT_PLAIN_ROUND 0x1.8p52

AT_PLAIN double at_plain_exp(double x) {
    const double inv_ln2 = 0x1.71547652b82fep0;
    const double ln2_high = 0x1.62e42fefa2000p-1, ln2_low = 0x1.9ef35793c7673p-41; /* 13 zero bits end the first */
    const double above = at_plain_take(x < -800.0, -800.0, x), y = at_plain_take(above > 800.0, 800.0, above);
    const double shifted = y * inv_ln2 + AT_PLAIN_ROUND, whole = shifted - AT_PLAIN_ROUND;
    const int64_t n = at_plain_bits(shifted) - at_plain_bits(AT_PLAIN_ROUND);
    const double e = at_plain_exp_of((y - whole * ln2_high) - whole * ln2_low, n);
    return at_plain_take(x == x, e, x);
}

AT_PLAIN double at_plain_exp2(double x) {
    const double above = at_plain_take(x < -1200.0, -1200.0, x), y = at_plain_take(above > 1200.0, 1200.0, above);
    const double shifted = y + AT_PLAIN_ROUND, whole = shifted - AT_PLAIN_ROUND;
    const int64_t n = at_plain_bits(shifted) - at_plain_bits(AT_PLAIN_ROUND);
    const double e = at_plain_exp_of((y - whole) * 0x1.62e42fefa39efp-1, n);
    return at_plain_take(x == x, e, x);
}

/* The upper 26 bits of x's significand. */
AT_PLAIN double at_plain_upper(double x) { return at_plain_from_bits(at_plain_bits(x) & ~(int64_t)0x7ffffff); }

AT_PLAIN double at_plain_log2(double x) {
    const double c_high = 0x1.7154764000000p1, c_low = 0x1.2b82fe1777d10p-27; /* 2 / ln 2 */
    /* subnormal numbers are lifted by 2^54 first */
    const int64_t low = x < 0x1p-1022;
    const int64_t bits = at_plain_bits(x * at_plain_take(low, 0x1p54, 1.0));
    const uint64_t root = 0x3fe6a09e667f3bcd; /* of 1/2 */
    const int64_t steps = (int64_t)(((uint64_t)bits - root + ((uint64_t)1024 << 52)) >> 52);
    const int64_t e = steps - 1024;
    const double m = at_plain_from_bits((int64_t)((uint64_t)bits - ((uint64_t)e << 52)));
    const double u = m - 1.0, w = m + 1.0;
    const double w_high = at_plain_upper(w), w_low = m - (w_high - 1.0);
    const double s_near = u / w, s_high = at_plain_upper(s_near);
    const double s_low = ((u - s_high * w_high) - s_high * w_low) / w;
    const double s = s_high + s_low, z = s * s;
    double p = 0x1.71547652b82fep1 / 23.0;
    p = p * z + 0x1.71547652b82fep1 / 21.0;
    p = p * z + 0x1.71547652b82fep1 / 19.0;
    p = p * z + 0x1.71547652b82fep1 / 17.0;
    p = p * z + 0x1.71547652b82fep1 / 15.0;
    p = p * z + 0x1.71547652b82fep1 / 13.0;
    p = p * z + 0x1.71547652b82fep1 / 11.0;
    p = p * z + 0x1.71547652b82fep1 / 9.0;
    p = p * z + 0x1.71547652b82fep1 / 7.0;
    p = p * z + 0x1.71547652b82fep1 / 5.0;
    p = p * z + 0x1.71547652b82fep1 / 3.0;
    const double rest = (c_low * s + c_high * s_low) + (z * s) * p;
    const double whole = (double)(int32_t)(e - 54 * low), head = c_high * s_high;
    /* |whole| is 0, or larger than |head|: the sum's error is exact */
    const double sum = whole + head, error = (whole - sum) + head;
    const double inf = at_plain_from_bits(0x7ff0000000000000), nan = at_plain_from_bits(0x7ff8000000000000);
    const double y = at_plain_take(x == inf, inf, at_plain_take(x == 0.0, -inf, sum + (error + rest)));
    return at_plain_take(x >= 0.0, y, nan); /* for NaN too */
}

#endif
