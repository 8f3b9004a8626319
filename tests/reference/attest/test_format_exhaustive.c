/* Rounding against MPFR: every tie and boundary of every narrow format, and the fast float forms on all
 * 2^32 floats.
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPFR is the second implementation: precision p, exponents emin and emax of the format, gradual
 * underflow by mpfr_subnormalize. It counts exponents of 0.1xxx, so its emin and emax are one more than
 * IEEE's. What it cannot know is e4m3's missing end: above 448 there is only NaN. */
#include "tests/at_test.h"

#include <float.h>
#include <mpfr.h>

#include "attest/env.h"

static const enum at_format narrow[] = { AT_F32, AT_TF32, AT_F16, AT_BF16, AT_E4M3, AT_E5M2 };
enum { NARROW = sizeof narrow / sizeof narrow[0] };

static mpfr_t number; /* of the format use_format() named last */
static const struct at_format_info *used;
static enum at_format used_format;

static void use_format(enum at_format format) {
    used_format = format;
    used = at_format_info(format);
    mpfr_set_emin(used->emin - used->precision + 2);
    mpfr_set_emax(used->emax + 1);
    mpfr_init2(number, used->precision);
}

/* Back to MPFR's own range, or it would hold for the next format's init. */
static void leave_format(void) {
    mpfr_clear(number);
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
}

static double mpfr_rounded(double value) {
    int ternary = mpfr_set_d(number, value, MPFR_RNDN);
    mpfr_subnormalize(number, ternary, MPFR_RNDN);
    double rounded = mpfr_get_d(number, MPFR_RNDN);
    return used_format == AT_E4M3 && fabs(rounded) > 448 ? copysign(NAN, value) : rounded;
}

static uint64_t tried;

static void check_value(double value) {
    double want = mpfr_rounded(value), got = at_round(used_format, value);
    int equal = isnan(want) ? isnan(got) : got == want;
    tried++;
    at_assert_true(equal && !!signbit(got) == !!signbit(value), "%s of %a is %a, MPFR says %a", used->name, value, got,
                   want);
    if (used_format == AT_F16 && value == (double)(float)value)
        assert_int_equal(at_f16_from_f32((float)value), at_encode(AT_F16, value));
    if (used_format == AT_BF16 && value == (double)(float)value)
        assert_int_equal(at_bf16_from_f32((float)value), at_encode(AT_BF16, value));
}

/* A point, its neighbours in double and its neighbours in float, with both signs. */
static void check_around(double value) {
    const double around[] = { value, nextafter(value, INFINITY), nextafter(value, -INFINITY),
                              nextafterf((float)value, INFINITY), nextafterf((float)value, -INFINITY) };
    for (int i = 0; i < 5; i++) {
        check_value(around[i]);
        check_value(-around[i]);
    }
}

/* The code itself and the midpoint to the next one; past the last code the midpoint to where the next
 * would be, which is where overflow begins. */
static void check_code(uint64_t code) {
    double value = at_decode(used_format, code);
    check_around(value);
    check_around(value + at_ulp(used_format, value) / 2);
}

/* f16, bf16, e4m3, e5m2, tf32: all finite codes. */
static void test_every_tie_and_boundary(void **state) {
    (void)state;
    static const struct {
        enum at_format format;
        uint64_t step, last, codes;
    } all[] = {
        { AT_F16, 1, 0x7bff, 0x7c00 },
        { AT_BF16, 1, 0x7f7f, 0x7f80 },
        { AT_E4M3, 1, 0x7e, 0x7f },
        { AT_E5M2, 1, 0x7b, 0x7c },
        { AT_TF32, 1 << 13, 0x7f7fe000, 0x3fc00 },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        use_format(all[i].format);
        uint64_t codes = 0;
        tried = 0;
        for (uint64_t code = 0; code <= all[i].last; code += all[i].step, codes++)
            check_code(code);
        assert_true(codes == all[i].codes && tried == codes * 20);
        at_assert_same(at_decode(all[i].format, all[i].last), used->max);
        leave_format();
    }
}

/* A small generator of our own: the test's inputs are the same everywhere. */
static uint64_t random_bits(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

/* f64 -> f32: every exponent with fractions at the ends, in the middle and at random. */
static void test_f32_ties_and_boundaries(void **state) {
    (void)state;
    static const uint32_t fractions[] = { 0, 1, 2, 3, 0x3fffff, 0x400000, 0x400001, 0x7ffffd, 0x7ffffe, 0x7fffff };
    long random = at_test_effort(20) * 20;
    use_format(AT_F32);
    for (uint32_t exponent = 0; exponent < 0xff; exponent++) {
        for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++)
            check_code(exponent << 23 | fractions[i]);
        for (long i = 0; i < random; i++)
            check_code(exponent << 23 | (uint32_t)(random_bits() >> 41));
    }
    leave_format();
}

/* Doubles of any bits: far outside a narrow format's range, and subnormal ones. */
static void test_random_doubles(void **state) {
    (void)state;
    long count = at_test_effort(10) * 20000;
    for (int f = 0; f < NARROW; f++) {
        use_format(narrow[f]);
        for (long i = 0; i < count; i++) {
            uint64_t bits = random_bits();
            double value;
            if (i % 2) /* exponents within 2^-160 .. 2^160 */
                bits = (bits & 0x800fffffffffffffu) | (863 + (bits >> 52) % 320) << 52;
            memcpy(&value, &bits, sizeof value);
            if (!isnan(value))
                check_value(value);
        }
        const double ends[] = { 0, DBL_MAX, DBL_MIN, 0x1p-1074, INFINITY };
        for (int i = 0; i < 5; i++) {
            check_value(ends[i]);
            check_value(-ends[i]);
        }
        leave_format();
    }
}

/* MPFR must itself be set up right, or agreement means little: its answers to what a hand can work out. */
static void test_the_oracle(void **state) {
    (void)state;
    use_format(AT_F16);
    at_assert_same(mpfr_rounded(65519.999), 65504);
    at_assert_same(mpfr_rounded(65520), INFINITY);
    at_assert_same(mpfr_rounded(-0x1p-25), -0.0);
    at_assert_same(mpfr_rounded(0x1.8p-24), 0x1p-23);
    leave_format();
    use_format(AT_E4M3);
    at_assert_same(mpfr_rounded(464), 448);
    at_assert_same(mpfr_rounded(465), NAN);
    at_assert_same(mpfr_rounded(0x1.8p-9), 0x1p-8);
    leave_format();
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Every `stride`-th float of both signs through the fast and the general form. */
static void check_floats(enum at_format format, uint16_t (*fast)(float), uint64_t stride) {
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += stride) {
        float value = float_of((uint32_t)bits);
        uint64_t got = fast(value), want = at_encode(format, (double)value);
        if (got != want) /* the message costs more than the test */
            fail_msg("%s of %a (bits %08llx) is %04llx in the fast form, %04llx in the general one",
                     at_format_info(format)->name, (double)value, (unsigned long long)bits, (unsigned long long)got,
                     (unsigned long long)want);
    }
}

/* Largest positive float that the general form gives a code up to `code`, by bisection. */
static uint32_t last_float_of(enum at_format format, uint64_t code) {
    uint32_t low = 0, high = 0x7f800000;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (at_encode(format, (double)float_of(middle)) <= code)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Floats with bits from `from` to `to` must give `code`, and with a minus sign that with the sign bit. */
static at_status check_interval(uint16_t (*fast)(float), uint32_t from, uint32_t to, uint32_t code) {
    uint32_t wrong = 0;
    for (uint32_t bits = from; bits <= to; bits++)
        wrong |= (fast(float_of(bits)) ^ code) | (fast(float_of(bits | 0x80000000u)) ^ code ^ 0x8000u);
    return wrong ? AT_FAIL(AT_BUG, "not all floats with bits %08x to %08x give %04x", from, to, code) : AT_OK;
}

struct fast_form {
    enum at_format format;
    uint16_t (*fast)(float);
};

/* The positive floats of bits [begin, end), step by step. */
static at_status check_bits(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct fast_form *form = context;
    uint32_t from = (uint32_t)begin, last = (uint32_t)(end - 1);
    while (from <= last) {
        float value = float_of(from);
        uint64_t code = at_encode(form->format, (double)value);
        uint32_t to = isnan(value) ? last : last_float_of(form->format, code);
        if (to > last)
            to = last;
        AT_TRY(check_interval(form->fast, from, to, (uint32_t)code));
        from = to + 1;
    }
    return AT_OK;
}

/* All 2^32 floats through the fast form. Rounding is a staircase: its steps come from the general form
 * (one bisection a code), which keeps the general form out of the loop of 2^32; that the general form is
 * such a staircase is seen on every 1021st float, and against MPFR on both sides of every step. */
static void check_all_floats(struct fast_form form) {
    at_assert_ok(at_parallel((int64_t)1 << 31, 1 << 22, at_threads(), check_bits, &form));
}

/* AT_EFFORT=fast: every 40961st float. Full: every 1021st against the general form, and all of them
 * against its steps. Both strides are prime, so that no bits of a float stay fixed. */
static void test_fast_forms_on_floats(void **state) {
    (void)state;
    int full = at_test_effort(2) == 2;
    check_floats(AT_F16, at_f16_from_f32, full ? 1021 : 40961);
    check_floats(AT_BF16, at_bf16_from_f32, full ? 1021 : 40961);
    if (full) {
        check_all_floats((struct fast_form){ AT_F16, at_f16_from_f32 });
        check_all_floats((struct fast_form){ AT_BF16, at_bf16_from_f32 });
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oracle),
        cmocka_unit_test(test_every_tie_and_boundary),
        cmocka_unit_test(test_f32_ties_and_boundaries),
        cmocka_unit_test(test_random_doubles),
        cmocka_unit_test(test_fast_forms_on_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
