/* Powers of two a second time: 200 bits, one argument at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_EXP2_MPFR_H
#define AT_EXP2_MPFR_H

/* 2^x rounded to nearest double, and *nearest, the same rounded once to nearest f32; *off, when wanted: |value - 2^x|
 * rounded up, NaN where either is not finite. */
double at_exp2_mpfr(float x, double value, float *nearest, double *off);

#endif
