/* Number formats: facts, codes and their values, and the rounding between them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything here is integer arithmetic on the bits of the value, or exact and on normal values, so that it does
 * not depend on the rounding mode, on flushed denormals (but for whole arrays of f32 and bf16) or on how a compiler
 * converts. A floating format is described by p and emin: the code of n * 2^(e - p + 1), 2^(p-1) <= n < 2^p, is (e - emin) * 2^(p-1) + n; below
 * emin the exponent stays emin and n is shorter. Consecutive codes are consecutive values, so a round
 * up that carries lands on the next binade's first code, and past the last finite code, by itself. */
#include "attest/format.h"

#include <math.h>
#include <string.h>

#include "attest/names.h"

/* What format.h does not say: codes of a positive infinity (or NaN where there is none) and of the
 * canonical NaN, the place of the code within the storage, and the place of the sign. */
struct coding {
    uint64_t infinity, nan; /* before the shift */
    int shift;              /* tf32: 13 zero bits below the code */
    int sign_bit;           /* in storage */
};

static const struct coding codings[AT_FORMAT_COUNT] = {
    [AT_F64] = { 0x7ff0000000000000u, 0x7ff8000000000000u, 0, 63 },
    [AT_F32] = { 0x7f800000u, 0x7fc00000u, 0, 31 },
    [AT_TF32] = { 0x7f800000u >> 13, 0x7fc00000u >> 13, 13, 31 },
    [AT_F16] = { 0x7c00u, 0x7e00u, 0, 15 },
    [AT_BF16] = { 0x7f80u, 0x7fc0u, 0, 15 },
    [AT_E4M3] = { 0x7fu, 0x7fu, 0, 7 },
    [AT_E5M2] = { 0x7cu, 0x7eu, 0, 7 },
    [AT_I32] = { 0, 0, 0, 31 },
};

/* u = 2^-p and eta = 2^(emin - p), half of the smallest subnormal 2^(emin - p + 1); for f64 that half
 * is below double's range and eta is the smallest subnormal itself, an upper bound. */
/* clang-format off */
static const struct at_format_info infos[AT_FORMAT_COUNT] = {
#define U(p) (1.0 / (double)(1ull << (p)))
#define ETA_F64  0x1p-1074
#define ETA_F32  0x1p-150
#define ETA_TF32 0x1p-137
#define ETA_F16  0x1p-25
#define ETA_BF16 0x1p-134
#define ETA_E4M3 0x1p-10
#define ETA_E5M2 0x1p-17
#define END_F64  HUGE_VAL
#define END_F32  0x1.ffffffp127
#define END_TF32 0x1.ffep127
#define END_F16  0x1.ffep15
#define END_BF16 0x1.ffp127
#define END_E4M3 0x1.dp8
#define END_E5M2 0x1.ep15
#define X(id, text, bytes, p, emin, emax, max) \
    [AT_##id] = { text, bytes, p, emin, emax, AT_##id != AT_E4M3, max, U(p), ETA_##id, END_##id },
    AT_FORMAT_LIST(X)
#undef X
    [AT_I32] = { "i32", 4, 32, 0, 30, 0, 2147483647.0, 0, 0, 0x1p31 },
};
/* clang-format on */

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const struct at_format_info *at_format_info(enum at_format format) { return &infos[format]; }

at_status at_format_parse(const char *name, enum at_format *format) {
    const char *names[AT_FORMAT_COUNT];
    char list[128] = "";
    for (int i = 0; i < AT_FORMAT_COUNT; i++) {
        names[i] = infos[i].name;
        if (strcmp(name, names[i]) == 0) {
            *format = (enum at_format)i;
            return AT_OK;
        }
        strncat(list, i ? " " : "", sizeof list - strlen(list) - 1);
        strncat(list, names[i], sizeof list - strlen(list) - 1);
    }
    const char *near = at_nearest_name(name, names, AT_FORMAT_COUNT);
    return AT_FAIL(AT_USAGE, "unknown number format \"%s\"%s%s%s; formats: %s", name, near ? ", did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "", list);
}

/* floor(value / 2^shift) rounded to nearest, ties to even; shift >= 1, value < 2^54. */
static uint64_t shift_right_even(uint64_t value, int shift) {
    if (shift > 54)
        return 0;
    uint64_t half = (uint64_t)1 << (shift - 1);
    uint64_t kept = value >> shift, rest = value & (half * 2 - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* Code without sign and shift of a finite, nonzero |value| given by its bits; format narrower than f64. */
static uint64_t encode_finite(enum at_format format, uint64_t magnitude) {
    const struct at_format_info *info = &infos[format];
    const int exponent = (int)(magnitude >> 52) - 1023, drop = 53 - info->precision;
    uint64_t code;
    if (exponent >= info->emin) {
        /* The double's own exponent and leading bits, less what its exponents begin with; see round_to(). */
        code = (magnitude + (((uint64_t)1 << (drop - 1)) - 1) + (magnitude >> drop & 1)) >> drop;
        code -= (uint64_t)(info->emin + 1022) << (info->precision - 1);
    } else {
        /* Doubles below 2^-1022 lack the hidden bit, but every narrower format takes them to 0 all the same. */
        const uint64_t significand = (magnitude & 0xfffffffffffffu) | 0x10000000000000u;
        code = shift_right_even(significand, info->emin - exponent + drop);
    }
    return code < codings[format].infinity ? code : codings[format].infinity;
}

/* Truncated toward zero, modulo 2^32; what has no integer part (NaN, infinity) is 0. */
static uint64_t encode_i32(double value) {
    if (!isfinite(value))
        return 0;
    return (uint32_t)(int64_t)fmod(trunc(value), 4294967296.0);
}

uint64_t at_encode(enum at_format format, double value) {
    if (format == AT_I32)
        return encode_i32(value);
    const struct coding *coding = &codings[format];
    uint64_t bits = bits_of(value);
    uint64_t magnitude = bits & 0x7fffffffffffffffu;
    uint64_t code;
    if (magnitude > 0x7ff0000000000000u)
        code = coding->nan;
    else if (format == AT_F64)
        code = magnitude;
    else if (magnitude == 0x7ff0000000000000u)
        code = coding->infinity;
    else
        code = magnitude ? encode_finite(format, magnitude) : 0;
    return (code << coding->shift) | ((bits >> 63) << coding->sign_bit);
}

double at_decode(enum at_format format, uint64_t code) {
    float single = 0;
    switch (format) { /* what tensors mostly hold goes the short way */
    case AT_F16:
        return (double)at_f32_from_f16((uint16_t)code);
    case AT_F32:
        single = at_f32_of_bits((uint32_t)code);
        break;
    case AT_BF16:
        single = at_f32_of_bits((uint32_t)code << 16);
        break;
    case AT_I32:
        return (double)(int32_t)(uint32_t)code;
    default:
        break;
    }
    if (single >= 0x1p-126f || single <= -0x1p-126f) /* what processors widen alike in every mode of theirs */
        return (double)single;
    const struct coding *coding = &codings[format];
    const struct at_format_info *info = &infos[format];
    uint64_t sign = ((code >> coding->sign_bit) & 1) << 63;
    uint64_t magnitude = (code & (((uint64_t)1 << coding->sign_bit) - 1)) >> coding->shift;
    if (magnitude > coding->infinity || (magnitude == coding->infinity && !info->has_infinity))
        return from_bits(sign | 0x7ff8000000000000u);
    if (magnitude == coding->infinity)
        return from_bits(sign | 0x7ff0000000000000u);
    if (format == AT_F64)
        return from_bits(sign | magnitude);
    int fraction = info->precision - 1;
    int biased = (int)(magnitude >> fraction);
    uint64_t n = magnitude & (((uint64_t)1 << fraction) - 1);
    if (biased)
        n |= (uint64_t)1 << fraction;
    /* n has at most 24 bits and the power is a normal double: the product is exact. By way of a signed
     * integer: compilers convert unsigned ones by a subtraction, which makes 0 a -0 when rounding down. */
    int power = info->emin - fraction + (biased ? biased - 1 : 0);
    double size = (double)(int64_t)n * from_bits((uint64_t)(power + 1023) << 52);
    return from_bits(sign | bits_of(size));
}

/* To p bits with these exponents by way of the double's own bits: no code in between, and with constants no table. In the
 * normal range adding just under half of what is dropped, and the last kept bit, rounds to nearest even, and a carry
 * goes on into the exponent by itself. Below it the value is a short integer of smallest subnormals. */
static inline double round_to(int p, int emin, int emax, double value) {
    const uint64_t bits = bits_of(value), sign = bits & 0x8000000000000000u, size = bits ^ sign;
    const uint64_t least = (uint64_t)(emin + 1023) << 52, beyond = (uint64_t)(emax + 1 + 1023) << 52;
    const int drop = 53 - p;
    if (size >= least) {
        const uint64_t kept = (size + (((uint64_t)1 << (drop - 1)) - 1) + (size >> drop & 1)) >> drop << drop;
        if (kept < beyond)
            return from_bits(sign | kept);
        return from_bits(sign | (size > 0x7ff0000000000000u ? 0x7ff8000000000000u : 0x7ff0000000000000u));
    }
    /* a double below 2^-1022 lacks the hidden bit; it goes to 0 with it or without */
    const uint64_t significand = (size & 0xfffffffffffffu) | 0x10000000000000u;
    const uint64_t n = shift_right_even(significand, emin - ((int)(size >> 52) - 1023) + drop);
    return from_bits(sign | bits_of((double)(int64_t)n * from_bits((uint64_t)(emin - p + 1 + 1023) << 52)));
}

/* The accumulators' formats come up for every sum of every model: they go the short way. */
double at_round(enum at_format format, double value) {
    switch (format) {
    case AT_F16:
        return round_to(11, -14, 15, value);
    case AT_BF16:
        return round_to(8, -126, 127, value);
    case AT_F32:
        return round_to(24, -126, 127, value);
    default:
        return at_decode(format, at_encode(format, value));
    }
}

uint64_t at_load_code(enum at_format format, const void *codes, size_t i) {
    const uint8_t *at = (const uint8_t *)codes + i * infos[format].bytes;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (infos[format].bytes) {
    case 1:
        return *at;
    case 2:
        memcpy(&two, at, sizeof two);
        return two;
    case 4:
        memcpy(&four, at, sizeof four);
        return four;
    default:
        memcpy(&eight, at, sizeof eight);
        return eight;
    }
}

void at_store_code(enum at_format format, void *codes, size_t i, uint64_t code) {
    uint8_t *at = (uint8_t *)codes + i * infos[format].bytes;
    switch (infos[format].bytes) { /* little-endian: the low bytes come first */
    case 1:
        *at = (uint8_t)code;
        break;
    case 2:
        memcpy(at, &code, 2);
        break;
    case 4:
        memcpy(at, &code, 4);
        break;
    default:
        memcpy(at, &code, 8);
    }
}

double at_load(enum at_format format, const void *codes, size_t i) {
    return at_decode(format, at_load_code(format, codes, i));
}

void at_store(enum at_format format, void *codes, size_t i, double value) {
    at_store_code(format, codes, i, at_encode(format, value));
}

void at_fill_code(enum at_format format, void *codes, size_t first, size_t n, uint64_t code) {
    uint8_t *at = (uint8_t *)codes + first * infos[format].bytes;
    switch (infos[format].bytes) {
    case 1:
        memset(at, (int)code, n);
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            memcpy(at + 2 * i, &code, 2);
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(at + 4 * i, &code, 4);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(at + 8 * i, &code, 8);
    }
}

void at_encode_array(enum at_format format, size_t n, const double *values, void *codes) {
    for (size_t i = 0; i < n; i++)
        at_store(format, codes, i, values[i]);
}

/* Whole tensors pass here, again and again: for the formats they mostly have, the choice is made once. */
void at_decode_array(enum at_format format, size_t n, const void *codes, double *values) {
    uint16_t code;
    float value;
    switch (format) {
    case AT_F32:
        for (size_t i = 0; i < n; i++) {
            memcpy(&value, (const uint8_t *)codes + i * sizeof value, sizeof value);
            values[i] = isnan(value) ? at_load(format, codes, i) : (double)value;
        }
        break;
    case AT_F16:
        for (size_t i = 0; i < n; i++) {
            memcpy(&code, (const uint8_t *)codes + i * sizeof code, sizeof code);
            values[i] = (double)at_f32_from_f16(code);
        }
        break;
    case AT_BF16:
        for (size_t i = 0; i < n; i++) {
            memcpy(&code, (const uint8_t *)codes + i * sizeof code, sizeof code);
            values[i] = (double)at_f32_from_bf16(code);
        }
        break;
    default:
        for (size_t i = 0; i < n; i++)
            values[i] = at_load(format, codes, i);
    }
}

/* Position of a code on the line of all codes, both zeros at 0. */
static int64_t position(enum at_format format, uint64_t code) {
    const struct coding *coding = &codings[format];
    if (format == AT_I32)
        return (int32_t)(uint32_t)code;
    uint64_t sign = (uint64_t)1 << coding->sign_bit;
    int64_t magnitude = (int64_t)((code & (sign - 1)) >> coding->shift);
    return code & sign ? -magnitude : magnitude;
}

uint64_t at_ulp_distance(enum at_format format, double a, double b) {
    if (a == b) /* of kernels that are right, most */
        return 0;
    uint64_t code_a = at_encode(format, a), code_b = at_encode(format, b);
    int nan_a = isnan(at_decode(format, code_a)), nan_b = isnan(at_decode(format, code_b));
    if (nan_a || nan_b)
        return nan_a && nan_b ? 0 : UINT64_MAX;
    int64_t at_a = position(format, code_a), at_b = position(format, code_b);
    /* unsigned: -inf to +inf of f64 is more than an int64 holds */
    return at_a > at_b ? (uint64_t)at_a - (uint64_t)at_b : (uint64_t)at_b - (uint64_t)at_a;
}

/* Beyond the largest value the last binade's spacing goes on; not finite: NaN, so that no comparison
 * with it accepts. */
double at_ulp(enum at_format format, double value) {
    const struct at_format_info *info = &infos[format];
    if (!isfinite(value))
        return NAN;
    if (format == AT_I32)
        return 1;
    int exponent = (int)(bits_of(value) >> 52 & 0x7ff) - 1023; /* doubles below 2^-1022 are below every emin, too */
    if (exponent < info->emin)
        exponent = info->emin;
    if (exponent > info->emax)
        exponent = info->emax;
    const int power = exponent - info->precision + 1;
    return power < -1022 ? ldexp(1.0, power) : from_bits((uint64_t)(power + 1023) << 52);
}

uint16_t at_f16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t magnitude = bits & 0x7fffffffu, code;
    if (magnitude > 0x7f800000u) {
        code = 0x7e00u;
    } else if (magnitude >= 0x47800000u) { /* 2^16 and more */
        code = 0x7c00u;
    } else if (magnitude >= 0x38800000u) { /* 2^-14: normal; 65520 carries into 0x7c00 */
        uint32_t lowered = magnitude - (112u << 23);
        code = (lowered + 0xfffu + ((lowered >> 13) & 1)) >> 13;
    } else if (magnitude > 0x33000000u) { /* above 2^-25, which ties to 0 */
        uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
        code = (uint32_t)shift_right_even(significand, 126 - (int)(magnitude >> 23));
    } else {
        code = 0;
    }
    return (uint16_t)(code | ((bits >> 16) & 0x8000u));
}

uint16_t at_bf16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(((bits >> 16) & 0x8000u) | 0x7fc0u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}
