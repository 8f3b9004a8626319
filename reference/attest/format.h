/* Number formats: f64 f32 tf32 f16 bf16 e4m3 e5m2, encoded with round-to-nearest-even.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sources: IEEE 754-2019 (f64, f32, f16), bfloat16 = the upper half of f32, tf32 = f32 with 10
 * stored fraction bits kept in 32-bit storage (low 13 bits zero), OCP FP8 (e4m3: no infinity, one
 * NaN code per sign, largest 448; e5m2: IEEE-like, largest 57344).
 *
 * Overflow on encode follows CUDA's non-saturating conversions: beyond the rounding boundary
 * the result is infinity, or NaN for e4m3, which has none. NaN encodes to the format's canonical
 * quiet NaN with the sign kept. */
#ifndef AT_FORMAT_H
#define AT_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "attest/status.h"

/* enum suffix, name, storage bytes, p = significand bits with the hidden one, emin, emax (of the
 * largest finite value, as 2^emax * m), largest finite value */
/* clang-format off */
#define AT_FORMAT_LIST(X)                                              \
    X(F64,  "f64",  8, 53, -1022, 1023, 0x1.fffffffffffffp1023)        \
    X(F32,  "f32",  4, 24,  -126,  127, 0x1.fffffep127)                \
    X(TF32, "tf32", 4, 11,  -126,  127, 0x1.ffcp127)                   \
    X(F16,  "f16",  2, 11,   -14,   15, 0x1.ffcp15)                    \
    X(BF16, "bf16", 2,  8,  -126,  127, 0x1.fep127)                    \
    X(E4M3, "e4m3", 1,  4,    -6,    8, 0x1.cp8)                       \
    X(E5M2, "e5m2", 1,  3,   -14,   15, 0x1.cp15)
/* clang-format on */

enum at_format {
#define X(name, text, bytes, p, emin, emax, max) AT_##name,
    AT_FORMAT_LIST(X)
#undef X
        AT_I32, /* two's complement, for lengths and page tables; never rounded to */
    AT_FORMAT_COUNT
};

struct at_format_info {
    const char *name;
    size_t bytes;
    int precision; /* p: significand bits, hidden bit included */
    int emin, emax, has_infinity;
    double max; /* largest finite value */
    double u;   /* unit roundoff 2^-p */
    double eta; /* half the smallest subnormal: the absolute error of one rounding that underflows */
    /* Half a step above max (f64: infinity): what is larger rounds to no finite value, nor does this one but in e4m3. */
    double end;
};

/* Facts of a format; the pointer is static. AT_I32 has precision 32 and u = eta = 0. */
const struct at_format_info *at_format_info(enum at_format format);

/* "bf16" -> AT_BF16. Fails with AT_USAGE and the list of names. */
at_status at_format_parse(const char *name, enum at_format *format);

/* Nearest code of the format, ties to even, straight from double (no double rounding).
 * AT_I32 takes the low 32 bits of the value truncated. The code is right-aligned in the result. */
uint64_t at_encode(enum at_format format, double value);
/* The exact value of a code; NaN codes give a quiet NaN. Every format's values fit a double. */
double at_decode(enum at_format format, uint64_t code);
/* decode(encode(value)). */
double at_round(enum at_format format, double value);

/* Arrays, contiguous in storage of the format (codes little-endian, as the machine is). */
void at_encode_array(enum at_format format, size_t n, const double *values, void *codes);
void at_decode_array(enum at_format format, size_t n, const void *codes, double *values);
/* One element i of such an array. */
double at_load(enum at_format format, const void *codes, size_t i);
uint64_t at_load_code(enum at_format format, const void *codes, size_t i);
void at_store(enum at_format format, void *codes, size_t i, double value);
void at_store_code(enum at_format format, void *codes, size_t i, uint64_t code);
/* One code in elements first .. first + n - 1. */
void at_fill_code(enum at_format format, void *codes, size_t first, size_t n, uint64_t code);

/* Distance in units of the format's last place between two values, counted along the format's own
 * ordered codes after rounding both to it; 0 for equal (also +0 and -0), UINT64_MAX when exactly
 * one is NaN, 0 when both are. */
uint64_t at_ulp_distance(enum at_format format, double a, double b);
/* Size of one ulp of the format at |value| (the spacing above it; the smallest subnormal at 0). */
double at_ulp(enum at_format format, double value);

/* Fast float forms: identical bits to at_encode/at_decode. The two here have no branch, so that loops over them
 * vectorise. */
uint16_t at_f16_from_f32(float value);
uint16_t at_bf16_from_f32(float value);

static inline float at_f32_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float at_f32_from_f16(uint16_t code) {
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16, magnitude = code & 0x7fffu;
    /* subnormal: an integer times 2^-24, exact and normal in f32 */
    const float subnormal = (float)(int32_t)magnitude * 0x1p-24f,
                normal = at_f32_of_bits((magnitude << 13) + (112u << 23));
    const float infinite = at_f32_of_bits(magnitude > 0x7c00u ? 0x7fc00000u : 0x7f800000u);
    const float size = magnitude >= 0x7c00u ? infinite : magnitude >= 0x0400u ? normal : subnormal;
    uint32_t bits;
    memcpy(&bits, &size, sizeof bits);
    return at_f32_of_bits(bits | sign);
}

static inline float at_f32_from_bf16(uint16_t code) {
    const uint32_t bits = (uint32_t)code << 16, nan = ((uint32_t)(code & 0x8000u) << 16) | 0x7fc00000u;
    return at_f32_of_bits((code & 0x7fffu) > 0x7f80u ? nan : bits);
}

#endif
