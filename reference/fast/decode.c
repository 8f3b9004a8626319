/* Decoding a row of q, k or v: at_decode_array() for the types of activations, in loops that vectorise.
 * SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "fast/vector.h"

static uint16_t code_at(const char *codes, int64_t i) {
    uint16_t code;
    memcpy(&code, codes + i * (int64_t)sizeof code, sizeof code);
    return code;
}

static float value_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

AT_CLONES
static void from_bf16(int64_t n, const char *restrict codes, double *restrict values) {
    for (int64_t i = 0; i < n; i++)
        values[i] = (double)value_of((uint32_t)code_at(codes, i) << 16);
}

/* An integer times a power of two, which is exact in float; infinities and NaNs get their exponent afterwards. Only the
 * product is floating-point arithmetic and it is the same for all codes, or gcc would see a branch. */
AT_CLONES
static void from_f16(int64_t n, const char *restrict codes, double *restrict values) {
    for (int64_t i = 0; i < n; i++) {
        const uint32_t code = code_at(codes, i), biased = code >> 10 & 31, normal = biased > 0;
        const int32_t integer = (int32_t)((code & 1023) | normal << 10);
        const float size = (float)integer * value_of((biased - normal + 127 - 24) << 23);
        const uint32_t special = biased == 31 ? 255u << 23 : 0, sign = (code & 0x8000u) << 16;
        values[i] = (double)value_of(bits_of(size) | special | sign);
    }
}

AT_CLONES
static void from_f32(int64_t n, const char *restrict codes, double *restrict values) {
    for (int64_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, codes + i * (int64_t)sizeof value, sizeof value);
        values[i] = (double)value;
    }
}

AT_CLONES
int at_fast_all_finite(int64_t n, const double *values) {
    int64_t finite = 0;
    for (int64_t i = 0; i < n; i++)
        finite += fabs(values[i]) <= DBL_MAX;
    return finite == n;
}

void at_fast_decode(enum at_format format, int64_t n, const void *codes, double *values) {
    if (format == AT_BF16)
        from_bf16(n, codes, values);
    else if (format == AT_F16)
        from_f16(n, codes, values);
    else if (format == AT_F32)
        from_f32(n, codes, values);
    else
        at_decode_array(format, (size_t)n, codes, values);
}
