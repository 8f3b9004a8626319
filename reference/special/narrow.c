/* The unit's forms in f16 and bf16: the argument is widened, which is exact, and the result in f32 cut, not rounded.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/parts.h"

enum { NARROW_NAN = 0x7fff, F16_INFINITY = 0x7c00 };

static uint32_t of_f16(uint16_t x) {
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31, fraction = x & 0x3ff;
    if (exponent == 31)
        return sign | AT_SPECIAL_INFINITY | fraction << 13;
    return sign | (exponent ? (exponent + 112) << 23 | fraction << 13 : at_special_code((float)fraction * 0x1p-24f));
}

static uint16_t cut_to_f16(uint32_t x) {
    const uint32_t magnitude = at_special_magnitude(x), sign = x >> 16 & 0x8000;
    const uint32_t significand = (x & AT_SPECIAL_FRACTION) | AT_SPECIAL_LEAST_NORMAL;
    const int exponent = (int)(magnitude >> 23) - 127;
    if (at_special_is_nan(x))
        return NARROW_NAN;
    if (exponent > 15)
        return (uint16_t)(sign | F16_INFINITY);
    if (exponent < -14)
        return (uint16_t)(sign | (exponent < -24 ? 0 : significand >> (-1 - exponent)));
    return (uint16_t)(sign | (((uint32_t)(exponent + 14) << 10) + (significand >> 13)));
}

static uint16_t cut_to_bf16(uint32_t x) { return at_special_is_nan(x) ? NARROW_NAN : (uint16_t)(x >> 16); }

uint16_t at_special_ex2_f16(uint16_t x) { return cut_to_f16(at_special_ex2(of_f16(x), 0)); }
uint16_t at_special_ex2_bf16_ftz(uint16_t x) { return cut_to_bf16(at_special_ex2((uint32_t)x << 16, 1)); }
uint16_t at_special_tanh_f16(uint16_t x) { return cut_to_f16(at_special_tanh(of_f16(x), 0)); }
uint16_t at_special_tanh_bf16(uint16_t x) { return cut_to_bf16(at_special_tanh((uint32_t)x << 16, 0)); }
