/* Bits of NVIDIA's special-function unit: ex2, rcp, rsqrt, sqrt, lg2, sin, cos and tanh .approx.f32 of PTX.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Codes of f32 in, codes of f32 out; every NaN that comes out is 0x7fffffff. `ftz` is PTX's modifier: subnormal arguments count
 * as zeros of their sign, and so do subnormal results; sin and cos have the same results with it and without, and tanh has no ftz.
 *
 * All eight work alike. Special cases by class; then a fraction of 23 bits, whose leading bits (6 or 7; of tanh
 * 0 to 4, by the binade) choose a row of three whole coefficients, and whose other bits x enter c0 +- c1 x +- c2 x^2 + bias in fixed point. The square comes from a squarer
 * without its lowest columns (interpolate.h). What is left of the sum is cut, never rounded: the bias is what rounds.
 *
 * Source: the coefficients (rows.c) are fitted to our own sweeps of an H200; results equal the device's on all 2^32 inputs of
 * every function (datasets/measurements/h200_special.txt). Prior art: ptx-math by B. Carleton, who modelled the first seven on
 * sm_50 to sm_75; nothing of it is used here. */
#ifndef AT_SPECIAL_H
#define AT_SPECIAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name in PTX, title. Those that have a form with ftz, and all. */
#define AT_SPECIAL_FLUSHING_LIST(X) \
    X(ex2, "2^x") \
    X(rcp, "1 / x") \
    X(rsqrt, "1 / sqrt(x)") \
    X(sqrt, "sqrt(x)") \
    X(lg2, "log2(x)") \
    X(sin, "sin(x)") \
    X(cos, "cos(x)")
#define AT_SPECIAL_LIST(X) \
    AT_SPECIAL_FLUSHING_LIST(X) \
    X(tanh, "tanh(x)")

enum at_special_function {
#define X(name, title) AT_SPECIAL_##name,
    AT_SPECIAL_LIST(X)
#undef X
        AT_SPECIAL_FUNCTIONS
};

struct at_special_row {
    int32_t c0, c1, c2;
};

/* What the unit is made of for a function. Others than its own are for showing that it has none but these. */
struct at_special_shape {
    const struct at_special_row *rows;
    int32_t n_rows, bias;
    int32_t columns; /* of the square of 17 bits that are left out */
};
extern const struct at_special_shape at_special_shapes[AT_SPECIAL_FUNCTIONS];

/* How far rsqrt is from 1 / sqrt(x) of any argument that is not flushed, relative to it: measured on all significands and
 * both parities of the exponent (test_special.c), 0.9999 of this at 0x1.04p+1. Of the unit's bits, not what PTX promises. */
#define AT_SPECIAL_RSQRT_ERROR 0x1.0bcp-23

uint32_t at_special_ex2(uint32_t x, int ftz);
uint32_t at_special_rcp(uint32_t x, int ftz);
uint32_t at_special_rsqrt(uint32_t x, int ftz);
uint32_t at_special_sqrt(uint32_t x, int ftz);
uint32_t at_special_lg2(uint32_t x, int ftz);
uint32_t at_special_sin(uint32_t x, int ftz);
uint32_t at_special_cos(uint32_t x, int ftz);
uint32_t at_special_tanh(uint32_t x, int ftz);

/* The same of a value of f32, to one. */
double at_special_value(enum at_special_function function, int ftz, double x);

/* ex2.approx.f16, ex2.approx.ftz.bf16, tanh.approx.f16 and .bf16, of codes of the format; the same for the pairs of .f16x2 and
 * .bf16x2. What the unit has in f32 is cut towards 0, not rounded; beyond f16's range it is infinite. A NaN is 0x7fff. */
uint16_t at_special_ex2_f16(uint16_t x);
uint16_t at_special_ex2_bf16_ftz(uint16_t x);
uint16_t at_special_tanh_f16(uint16_t x);
uint16_t at_special_tanh_bf16(uint16_t x);

/* Results of n codes x, of a unit of another shape where `shape` is not NULL. x and y may be the same. */
void at_special_each(enum at_special_function function, const struct at_special_shape *shape, int ftz, int64_t n,
                     const uint32_t *x, uint32_t *y);
/* The row that a finite x above 0 takes; of ex2 for -126 <= x < 128, of tanh for 2^-8 <= x < 8. */
int at_special_row_of(enum at_special_function function, uint32_t x);
const char *at_special_name(enum at_special_function function);

#ifdef __cplusplus
}
#endif
#endif
