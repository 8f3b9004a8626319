/* at_round beside the codes it stands for: decode(encode(x)), to the bit, where the two could part.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Codes are checked by themselves, exhaustively, in test_format.c and test_format_exhaustive.c. */
#include "tests/at_test.h"

#include <fenv.h>

#include "tests/support/splitmix.h"

static const enum at_format formats[] = { AT_F16, AT_BF16, AT_F32, AT_TF32, AT_E4M3, AT_E5M2, AT_F64 };
enum { FORMATS = sizeof formats / sizeof *formats };

static double from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static long checked;

/* The sign of a NaN counts, too. */
static void check(enum at_format format, double x) {
    const double got = at_round(format, x), want = at_decode(format, at_encode(format, x));
    checked++;
    if (bits_of(got) != bits_of(want))
        fail_msg("%s of %a: %a, by way of its code %a", at_format_info(format)->name, x, got, want);
}

/* x and the doubles beside it, of both signs. */
static void check_about(enum at_format format, double x) {
    const double near[] = { x, nextafter(x, INFINITY), nextafter(x, -INFINITY) };
    for (int i = 0; i < 3; i++) {
        check(format, near[i]);
        check(format, -near[i]);
    }
}

/* Every value of a format of 16 bits or less, every tie between two, and what lies beside each. */
static void test_every_tie(void **state) {
    (void)state;
    checked = 0;
    for (int f = 0; f < FORMATS; f++) {
        const struct at_format_info *info = at_format_info(formats[f]);
        for (uint64_t code = 0; info->bytes <= 2 && code < (uint64_t)1 << (8 * info->bytes - 1); code++) {
            const double x = at_decode(formats[f], code), above = at_decode(formats[f], code + 1);
            check_about(formats[f], x);
            if (isfinite(x) && isfinite(above))
                check_about(formats[f], x + (above - x) / 2);
        }
        check_about(formats[f], info->max + ldexp(1.0, info->emax - info->precision)); /* the tie with infinity */
    }
    print_message("%ld values\n", checked);
    assert_true(checked > 6 * 2 * 65000);
}

/* f32 has too many: every exponent, with significands at either end and some in between, and their ties. */
static void test_ties_of_f32(void **state) {
    (void)state;
    struct splitmix random = { 32 };
    checked = 0;
    for (uint32_t exponent = 0; exponent < 255; exponent++)
        for (int i = 0; i < 260; i++) {
            const uint32_t any = (uint32_t)splitmix_next(&random) & 0x7fffffu;
            const uint32_t fraction = i < 20 ? (uint32_t)i : i < 40 ? 0x7fffffu - (uint32_t)(i - 20) : any;
            const uint32_t code = exponent << 23 | fraction;
            const double x = at_decode(AT_F32, code), above = at_decode(AT_F32, code + 1);
            check_about(AT_F32, x);
            if (isfinite(above))
                check_about(AT_F32, x + (above - x) / 2);
        }
    print_message("%ld values\n", checked);
}

static void test_specials(void **state) {
    (void)state;
    static const uint64_t codes[] = { 0,
                                      1,
                                      2,
                                      0x000fffffffffffffu,
                                      0x0010000000000000u,
                                      0x0010000000000001u,
                                      0x7fefffffffffffffu,
                                      0x7ff0000000000000u,
                                      0x7ff0000000000001u,
                                      0x7ff7ffffffffffffu,
                                      0x7ff8000000000000u,
                                      0x7fffffffffffffffu };
    for (int f = 0; f < FORMATS; f++)
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
            check(formats[f], from_bits(codes[i]));
            check(formats[f], from_bits(codes[i] | 0x8000000000000000u));
        }
}

/* Any bits of a double; and exponents about the format's own, which any bits seldom have. In each rounding mode of the
 * processor, on which nothing may depend. */
static void test_random(void **state) {
    (void)state;
    static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    const long n = 100000 * at_test_effort(4);
    checked = 0;
    for (int m = 0; m < 4; m++) {
        fesetround(modes[m]);
        for (int f = 0; f < FORMATS; f++) {
            struct splitmix random = { (uint64_t)(m * 100 + f) };
            const struct at_format_info *info = at_format_info(formats[f]);
            const int64_t emin = info->emin, emax = info->emax, p = info->precision;
            const uint64_t low = (uint64_t)(emin - p - 3 + 1023), span = (uint64_t)(emax - emin + p + 6);
            for (long i = 0; i < n; i++) {
                const uint64_t bits = splitmix_next(&random);
                check(formats[f], from_bits(bits));
                if (formats[f] != AT_F64)
                    check(formats[f], from_bits((bits & 0x800fffffffffffffu) | (low + (bits >> 52) % span) << 52));
            }
        }
    }
    fesetround(FE_TONEAREST);
    print_message("%ld values\n", checked);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_tie),
        cmocka_unit_test(test_ties_of_f32),
        cmocka_unit_test(test_specials),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
