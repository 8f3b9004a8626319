/* Number formats: facts, every code's round trip, rounding by hand-worked values, distances, arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <fenv.h>

static const enum at_format floating[] = { AT_F64, AT_F32, AT_TF32, AT_F16, AT_BF16, AT_E4M3, AT_E5M2 };
enum { FLOATING = sizeof floating / sizeof floating[0] };

static uint64_t sign_of(enum at_format format) { return (uint64_t)1 << (8 * at_format_info(format)->bytes - 1); }

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Facts that the standards print, written out a second time. */
static void test_facts(void **state) {
    (void)state;
    static const struct {
        enum at_format format;
        const char *name;
        size_t bytes;
        double max, least; /* largest finite, smallest subnormal */
        double u;
        uint64_t max_code, nan_code;
    } want[] = {
        { AT_F64, "f64", 8, 1.7976931348623157e308, 4.9406564584124654e-324, 0x1p-53, 0x7fefffffffffffff,
          0x7ff8000000000000 },
        { AT_F32, "f32", 4, 3.4028234663852886e38, 0x1p-149, 0x1p-24, 0x7f7fffff, 0x7fc00000 },
        { AT_TF32, "tf32", 4, 3.4011621342146535e38, 0x1p-136, 0x1p-11, 0x7f7fe000, 0x7fc00000 },
        { AT_F16, "f16", 2, 65504, 0x1p-24, 0x1p-11, 0x7bff, 0x7e00 },
        { AT_BF16, "bf16", 2, 3.3895313892515355e38, 0x1p-133, 0x1p-8, 0x7f7f, 0x7fc0 },
        { AT_E4M3, "e4m3", 1, 448, 0x1p-9, 0x1p-4, 0x7e, 0x7f },
        { AT_E5M2, "e5m2", 1, 57344, 0x1p-16, 0x1p-3, 0x7b, 0x7e },
    };
    for (size_t i = 0; i < FLOATING; i++) {
        const struct at_format_info *info = at_format_info(want[i].format);
        enum at_format parsed = AT_I32;
        assert_string_equal(info->name, want[i].name);
        assert_int_equal(info->bytes, want[i].bytes);
        at_assert_same(info->max, want[i].max);
        at_assert_same(info->u, want[i].u);
        at_assert_same(info->u, ldexp(1, -info->precision));
        at_assert_same(info->eta, want[i].format == AT_F64 ? want[i].least : want[i].least / 2);
        at_assert_same(at_round(want[i].format, nextafter(info->end, 0)), info->max);
        assert_false(isfinite(at_round(want[i].format, nextafter(info->end, INFINITY))));
        assert_int_equal(isfinite(at_round(want[i].format, info->end)) != 0, want[i].format == AT_E4M3);
        at_assert_same(at_decode(want[i].format, want[i].max_code), want[i].max);
        at_assert_same(at_decode(want[i].format, want[i].format == AT_TF32 ? 0x2000 : 1), want[i].least);
        /* all ones above 2^emax, but for e4m3, whose last fraction is taken by NaN */
        double fraction = want[i].format == AT_E4M3 ? 1.75 : 2 - ldexp(2, -info->precision);
        at_assert_same(ldexp(fraction, info->emax), want[i].max);
        at_assert_same(at_ulp(want[i].format, 0), want[i].least);
        assert_int_equal(at_encode(want[i].format, NAN), want[i].nan_code);
        assert_int_equal(info->has_infinity, want[i].format != AT_E4M3);
        at_assert_ok(at_format_parse(want[i].name, &parsed));
        assert_int_equal(parsed, want[i].format);
    }
    assert_int_equal(at_format_info(AT_I32)->precision, 32);
    at_assert_same(at_format_info(AT_I32)->u, 0);
    at_assert_same(at_format_info(AT_I32)->eta, 0);
}

static void test_parse(void **state) {
    (void)state;
    enum at_format format = AT_E5M2;
    at_assert_fails(at_format_parse("fp16", &format), AT_USAGE,
                    "unknown number format \"fp16\", did you mean \"f16\"?");
    at_assert_fails(at_format_parse("", &format), AT_USAGE, "formats: f64 f32 tf32 f16 bf16 e4m3 e5m2 i32");
    at_assert_fails(at_format_parse("F16", &format), AT_USAGE, "did you mean \"f16\"");
    assert_int_equal(format, AT_E5M2);
    at_assert_ok(at_format_parse("i32", &format));
    assert_int_equal(format, AT_I32);
}

/* One code there and back; a NaN keeps its sign and becomes the canonical one. */
static void check_code(enum at_format format, uint64_t code) {
    double value = at_decode(format, code);
    uint64_t sign = sign_of(format), back = at_encode(format, value);
    at_assert_true(!!signbit(value) == !!(code & sign), "%s code %llx gives %g", at_format_info(format)->name,
                   (unsigned long long)code, value);
    uint64_t want = isnan(value) ? at_encode(format, NAN) | (code & sign) : code;
    at_assert_true(back == want, "%s code %llx gives %a, which gives %llx, wanted %llx", at_format_info(format)->name,
                   (unsigned long long)code, value, (unsigned long long)back, (unsigned long long)want);
    at_assert_true(isnan(value) || isinf(value) || fabs(value) <= at_format_info(format)->max, "%s code %llx gives %a",
                   at_format_info(format)->name, (unsigned long long)code, value);
}

/* Every code of 8 and 16 bits; of the wide formats every exponent with fractions at both ends. */
static void test_every_code_round_trips(void **state) {
    (void)state;
    for (uint64_t code = 0; code < 0x10000; code++) {
        check_code(AT_F16, code);
        check_code(AT_BF16, code);
    }
    for (uint64_t code = 0; code < 0x100; code++) {
        check_code(AT_E4M3, code);
        check_code(AT_E5M2, code);
    }
    for (uint64_t top = 0; top < 0x200; top++)
        for (uint64_t low = 0; low < 0x400; low++) {
            check_code(AT_TF32, (top << 10 | low) << 13);
            check_code(AT_F32, top << 23 | low);
            check_code(AT_F32, top << 23 | (0x7fffff - low));
        }
    for (uint64_t top = 0; top < 0x1000; top++)
        for (uint64_t low = 0; low < 8; low++) {
            check_code(AT_F64, top << 52 | low);
            check_code(AT_F64, top << 52 | (0xfffffffffffff - low));
        }
}

/* NaN codes are the ones the formats' papers count, and nothing else. */
static void test_nan_codes(void **state) {
    (void)state;
    int f16 = 0, bf16 = 0, e4m3 = 0, e5m2 = 0;
    for (uint64_t code = 0; code < 0x10000; code++) {
        f16 += isnan(at_decode(AT_F16, code)) != 0;
        bf16 += isnan(at_decode(AT_BF16, code)) != 0;
        e4m3 += code < 0x100 && isnan(at_decode(AT_E4M3, code));
        e5m2 += code < 0x100 && isnan(at_decode(AT_E5M2, code));
    }
    assert_int_equal(f16, 2 * 1023);
    assert_int_equal(bf16, 2 * 127);
    assert_int_equal(e4m3, 2);
    assert_int_equal(e5m2, 2 * 3);
    for (int i = 0; i < FLOATING; i++) {
        assert_true(at_encode(floating[i], -NAN) == (at_encode(floating[i], NAN) | sign_of(floating[i])));
        /* a signalling NaN with a payload comes out quiet and canonical */
        assert_true(at_encode(floating[i], double_of(0x7ff0000000000001)) == at_encode(floating[i], NAN));
        uint64_t quieted = 0;
        double decoded = at_decode(floating[i], at_encode(floating[i], double_of(0xfff0000000000001)));
        memcpy(&quieted, &decoded, sizeof quieted);
        assert_true(quieted == 0xfff8000000000000);
    }
}

/* Values whose codes were worked out by hand: value, format, code. */
static void test_known_values(void **state) {
    (void)state;
    static const struct {
        enum at_format format;
        double value;
        uint64_t code;
    } known[] = {
        { AT_F16, 1, 0x3c00 },
        { AT_F16, -2, 0xc000 },
        { AT_F16, 1.0 / 3, 0x3555 },
        { AT_F16, 65504, 0x7bff },
        { AT_F16, 65519.999, 0x7bff },
        { AT_F16, 65520, 0x7c00 }, /* the tie goes to the even code, which is infinity's */
        { AT_F16, -1e300, 0xfc00 },
        { AT_F16, INFINITY, 0x7c00 },
        { AT_F16, 0x1p-24, 0x0001 },
        { AT_F16, 0x1p-25, 0x0000 }, /* tie between 0 and 1 */
        { AT_F16, -0x1p-25, 0x8000 },
        { AT_F16, 0x1.0000000000001p-25, 0x0001 },
        { AT_F16, 0x1.8p-24, 0x0002 },   /* tie between 1 and 2 */
        { AT_F16, 0x1.ffcp-15, 0x0400 }, /* tie between the largest subnormal and 2^-14 */
        { AT_F16, 2049, 0x6800 },
        { AT_F16, 2051, 0x6802 },
        { AT_F16, 4.9e-324, 0x0000 },
        { AT_BF16, 1, 0x3f80 },
        { AT_BF16, 1.0 / 3, 0x3eab },
        { AT_BF16, 257, 0x4380 },
        { AT_BF16, 259, 0x4382 },
        { AT_BF16, 0x1.fep127, 0x7f7f },
        { AT_BF16, 0x1.fefffp127, 0x7f7f },
        { AT_BF16, 0x1.ffp127, 0x7f80 },
        { AT_BF16, 0x1p-134, 0x0000 },
        { AT_BF16, 0x1.8p-133, 0x0002 },
        /* would be 257 -> 256 after a first rounding to f32, and is above the tie in one step */
        { AT_BF16, 257.0000000001, 0x4381 },
        { AT_TF32, 1.0 / 3, 0x3eaaa000 },
        { AT_TF32, 2049, 0x45000000 },
        { AT_TF32, 2051, 0x45004000 },
        { AT_TF32, 0x1.ffep127, 0x7f800000 },
        { AT_TF32, 0x1p-137, 0x00000000 },
        { AT_F32, 0.1, 0x3dcccccd },
        { AT_F32, 16777217, 0x4b800000 },
        { AT_F32, 16777219, 0x4b800002 },
        { AT_F32, 0x1.fffffefffffffp127, 0x7f7fffff },
        { AT_F32, 0x1.ffffffp127, 0x7f800000 },
        { AT_F32, 0x1p-150, 0x00000000 },
        { AT_F32, 0x1.0000000000001p-150, 0x00000001 },
        { AT_E4M3, 1, 0x38 },
        { AT_E4M3, 448, 0x7e },
        { AT_E4M3, 464, 0x7e }, /* ties to 448 */
        { AT_E4M3, 464.0000001, 0x7f },
        { AT_E4M3, 480, 0x7f },
        { AT_E4M3, -1e9, 0xff },
        { AT_E4M3, INFINITY, 0x7f },
        { AT_E4M3, -INFINITY, 0xff },
        { AT_E4M3, 0x1p-10, 0x00 },
        { AT_E4M3, 0x1.8p-9, 0x02 },
        { AT_E4M3, 17, 0x58 },
        { AT_E4M3, 19, 0x5a },
        { AT_E5M2, 1, 0x3c },
        { AT_E5M2, 57344, 0x7b },
        { AT_E5M2, 61439.99, 0x7b },
        { AT_E5M2, 61440, 0x7c },
        { AT_E5M2, -INFINITY, 0xfc },
        { AT_E5M2, 0x1p-17, 0x00 },
        { AT_E5M2, 0x1p-16, 0x01 },
        { AT_F64, -0.0, 0x8000000000000000 },
        { AT_F64, 4.9e-324, 1 },
        { AT_I32, -1, 0xffffffff },
        { AT_I32, 2147483647, 0x7fffffff },
        { AT_I32, -2147483648.0, 0x80000000 },
        { AT_I32, 3.99, 3 },
        { AT_I32, -3.99, 0xfffffffd },
        { AT_I32, 4294967297.0, 1 },
        { AT_I32, -4294967297.0, 0xffffffff },
        { AT_I32, 1e300, 0 },
        { AT_I32, NAN, 0 },
        { AT_I32, -INFINITY, 0 },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint64_t code = at_encode(known[i].format, known[i].value);
        at_assert_true(code == known[i].code, "%s of %.17g is %llx, wanted %llx", at_format_info(known[i].format)->name,
                       known[i].value, (unsigned long long)code, (unsigned long long)known[i].code);
    }
    assert_true(at_decode(AT_I32, 0xffffffff) == -1.0);
}

/* The fast forms on every 16-bit code; float to code is test_format_exhaustive's. */
static void test_fast_decode(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 0x10000; code++) {
        float f16 = at_f32_from_f16((uint16_t)code), bf16 = at_f32_from_bf16((uint16_t)code);
        at_assert_same(f16, at_decode(AT_F16, code));
        at_assert_same(bf16, at_decode(AT_BF16, code));
        assert_int_equal(!!signbit(f16), code >> 15);
        assert_int_equal(!!signbit(bf16), code >> 15);
        uint32_t bits;
        memcpy(&bits, &bf16, sizeof bits);
        assert_true(bits == (uint32_t)at_encode(AT_F32, at_decode(AT_BF16, code)));
        memcpy(&bits, &f16, sizeof bits);
        assert_true(bits == (uint32_t)at_encode(AT_F32, at_decode(AT_F16, code)));
    }
}

static void test_ulp_distance(void **state) {
    (void)state;
    for (int i = 0; i < FLOATING; i++) {
        enum at_format f = floating[i];
        double least = at_ulp(f, 0), after_one = 1 + 2 * at_format_info(f)->u;
        assert_true(at_ulp_distance(f, 0.0, -0.0) == 0);
        assert_true(at_ulp_distance(f, least, -least) == 2);
        assert_true(at_ulp_distance(f, 1, after_one) == 1);
        assert_true(at_ulp_distance(f, -1, -after_one) == 1);
        assert_true(at_ulp_distance(f, after_one, 1) == 1);
        assert_true(at_ulp_distance(f, NAN, 1) == UINT64_MAX);
        assert_true(at_ulp_distance(f, 1, -NAN) == UINT64_MAX);
        assert_true(at_ulp_distance(f, NAN, -NAN) == 0);
        assert_true(at_ulp_distance(f, INFINITY, INFINITY) == 0);
        if (at_format_info(f)->has_infinity)
            assert_true(at_ulp_distance(f, INFINITY, at_format_info(f)->max) == 1);
    }
    assert_true(at_ulp_distance(AT_F64, -INFINITY, INFINITY) == 2 * 0x7ff0000000000000u);
    assert_true(at_ulp_distance(AT_F16, -65504, 65504) == 2 * 0x7bff);
    assert_true(at_ulp_distance(AT_TF32, 1, 2) == 1024);
    assert_true(at_ulp_distance(AT_F16, 1, 1 + 0x1p-12) == 0); /* rounds to 1 */
    assert_true(at_ulp_distance(AT_E4M3, 448, INFINITY) == UINT64_MAX);
    assert_true(at_ulp_distance(AT_I32, -2147483648.0, 2147483647) == UINT32_MAX);
}

/* at_ulp is the gap to the next code up, at every finite 16- and 8-bit code but the last. */
static void test_ulp(void **state) {
    (void)state;
    static const enum at_format narrow[] = { AT_F16, AT_BF16, AT_E4M3, AT_E5M2 };
    for (int i = 0; i < 4; i++)
        for (uint64_t code = 0; at_decode(narrow[i], code) < at_format_info(narrow[i])->max; code++) {
            double value = at_decode(narrow[i], code), gap = at_decode(narrow[i], code + 1) - value;
            at_assert_same(at_ulp(narrow[i], value), gap);
            at_assert_same(at_ulp(narrow[i], -value - gap / 2), gap);
        }
    at_assert_same(at_ulp(AT_F16, 65504), 32);
    at_assert_same(at_ulp(AT_F16, 1e300), 32);
    at_assert_same(at_ulp(AT_E4M3, 448), 32);
    at_assert_same(at_ulp(AT_F64, 1), 0x1p-52);
    at_assert_same(at_ulp(AT_F64, 0x1p-1060), 0x1p-1074);
    at_assert_same(at_ulp(AT_F32, -3), 0x1p-22);
    at_assert_same(at_ulp(AT_F32, INFINITY), NAN);
    at_assert_same(at_ulp(AT_F32, NAN), NAN);
    at_assert_same(at_ulp(AT_I32, 7), 1);
}

/* Arrays and single elements say the same as codes do, at addresses that are aligned to nothing, and
 * touch no byte beside theirs. */
static void test_arrays(void **state) {
    (void)state;
    enum { N = 67 };
    double values[N], back[N];
    for (int i = 0; i < N; i++)
        values[i] = ldexp((i % 2 ? -1 : 1) * (1 + i / 67.0), i - 33);
    values[7] = NAN, values[8] = -INFINITY, values[9] = -0.0;
    for (int f = 0; f < AT_FORMAT_COUNT; f++) {
        enum at_format format = (enum at_format)f;
        size_t bytes = at_format_info(format)->bytes;
        unsigned char store[N * 8 + 2];
        memset(store, 0x5a, sizeof store);
        at_encode_array(format, N, values, store + 1);
        assert_int_equal(store[0], 0x5a);
        for (size_t k = 1 + N * bytes; k < sizeof store; k++)
            assert_int_equal(store[k], 0x5a);
        at_decode_array(format, N, store + 1, back);
        for (size_t i = 0; i < N; i++) {
            assert_true(at_load_code(format, store + 1, i) == at_encode(format, values[i]));
            at_assert_same(at_load(format, store + 1, i), at_round(format, values[i]));
            at_assert_same(back[i], at_round(format, values[i]));
        }
        at_store(format, store + 1, 3, 1.75);
        at_assert_same(at_load(format, store + 1, 3), at_round(format, 1.75));
        at_assert_same(at_load(format, store + 1, 2), back[2]);
        at_assert_same(at_load(format, store + 1, 4), back[4]);
    }
}

/* The code of a value does not depend on the machine's rounding mode. */
static void test_rounding_mode_does_not_matter(void **state) {
    (void)state;
    static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    static const double values[] = { 1.0 / 3, -1.0 / 3, 65519.9, 1e-7, -1e-40, 464, 2049, 2051, 16777217 };
    for (int m = 0; m < 3; m++)
        for (int f = 0; f < FLOATING; f++)
            for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
                volatile double value = values[i];
                uint64_t want = at_encode(floating[f], value);
                double rounded = at_round(floating[f], value), under_mode;
                uint16_t f16 = at_f16_from_f32((float)value), bf16 = at_bf16_from_f32((float)value);
                volatile float narrow = (float)value;
                fesetround(modes[m]);
                int same = at_encode(floating[f], value) == want && at_f16_from_f32(narrow) == f16 &&
                           at_bf16_from_f32(narrow) == bf16;
                under_mode = at_round(floating[f], value);
                fesetround(FE_TONEAREST);
                at_assert_same(under_mode, rounded);
                assert_true(same);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_every_code_round_trips),
        cmocka_unit_test(test_nan_codes),
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_fast_decode),
        cmocka_unit_test(test_ulp_distance),
        cmocka_unit_test(test_ulp),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_rounding_mode_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
