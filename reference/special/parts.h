/* Parts of a code of f32, and what all functions do with them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SPECIAL_PARTS_H
#define AT_SPECIAL_PARTS_H

#include <string.h>

#include "special/interpolate.h"

#define AT_SPECIAL_SIGN 0x80000000u
#define AT_SPECIAL_INFINITY 0x7f800000u
#define AT_SPECIAL_NAN 0x7fffffffu
#define AT_SPECIAL_ONE 0x3f800000u
#define AT_SPECIAL_LEAST_NORMAL 0x00800000u
#define AT_SPECIAL_FRACTION 0x007fffffu

extern const struct at_special_row at_special_ex2_rows[64], at_special_rcp_rows[128], at_special_lg2_rows[64],
    at_special_sine_rows[64];
/* 64 of arguments in [1, 2), then 64 of those in [2, 4). */
extern const struct at_special_row at_special_rsqrt_rows[128], at_special_sqrt_rows[128];

extern const struct at_special_row at_special_tanh_rows[51];

typedef uint32_t at_special_result(const struct at_special_shape *s, uint32_t x, int ftz);
extern at_special_result at_special_ex2_of, at_special_rcp_of, at_special_rsqrt_of, at_special_sqrt_of,
    at_special_lg2_of, at_special_sin_of, at_special_cos_of, at_special_tanh_of;

extern int at_special_ex2_row(uint32_t x), at_special_sin_row(uint32_t x), at_special_cos_row(uint32_t x),
    at_special_tanh_row(uint32_t x);

static inline uint32_t at_special_magnitude(uint32_t x) { return x & ~AT_SPECIAL_SIGN; }
static inline int at_special_is_nan(uint32_t x) { return at_special_magnitude(x) > AT_SPECIAL_INFINITY; }
static inline int at_special_is_subnormal(uint32_t x) { return at_special_magnitude(x) < AT_SPECIAL_LEAST_NORMAL; }
static inline uint32_t at_special_flushed(uint32_t x, int ftz) {
    return ftz && at_special_is_subnormal(x) ? x & AT_SPECIAL_SIGN : x;
}
static inline float at_special_number(uint32_t code) {
    float x;
    memcpy(&x, &code, sizeof x);
    return x;
}
static inline uint32_t at_special_code(float x) {
    uint32_t code;
    memcpy(&code, &x, sizeof code);
    return code;
}
/* x times a power of two, rounded to nearest where the result is subnormal. */
static inline uint32_t at_special_scaled(uint32_t x, float power) {
    return at_special_code(at_special_number(x) * power);
}
/* value in units of 2^-fraction_bits, above 0, cut to f32. */
static inline uint32_t at_special_cut(uint64_t value, int fraction_bits) {
    const int top = 63 - __builtin_clzll(value);
    const uint64_t significand = top >= 23 ? value >> (top - 23) : value << (23 - top);
    return ((uint32_t)(top - fraction_bits + 126) << 23) + (uint32_t)significand;
}

#endif
