/* The special-function unit: its hashes, its squarer, its errors and its special cases.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <float.h>

#include "special/unit_instruction.h"
#include "special/parts.h"

enum { STEP = 4099, SQUARES = 1 << 17 };

static double want(int function, double x) {
    switch (function) {
    case AT_SPECIAL_ex2:
        return exp2(x);
    case AT_SPECIAL_rcp:
        return 1 / x;
    case AT_SPECIAL_rsqrt:
        return 1 / sqrt(x);
    case AT_SPECIAL_sqrt:
        return sqrt(x);
    case AT_SPECIAL_lg2:
        return log2(x);
    case AT_SPECIAL_sin:
        return sin(x);
    case AT_SPECIAL_cos:
        return cos(x);
    default:
        return tanh(x);
    }
}

/* A multiplication by another bit each, added column by column: no squarer's structure, only which columns there are. */
static void test_the_fast_square_is_the_columns(void **state) {
    (void)state;
    int64_t cut = 0;
    for (uint32_t x = 0; x < SQUARES; x++) {
        const int64_t fast = at_special_square(x), whole = (int64_t)x * x >> 19;
        at_assert_true(fast == at_special_square_without(x, 19), "square of %u: %lld", x, (long long)fast);
        assert_true(fast <= whole && whole - fast <= 9);
        assert_true(at_special_square_without(x, 0) == whole);
        cut += fast != whole;
    }
    assert_true(cut > SQUARES / 2); /* what is left out matters */
}

/* Every function comes near what it stands for, within what PTX promises: in units in the last place where the error is relative,
 * absolute for lg2 near 1 and for sin and cos in [-pi, pi], relative for sqrt and tanh. */
static void test_errors_are_within_what_is_promised(void **state) {
    (void)state;
    static const double units[AT_SPECIAL_FUNCTIONS] = {
        [AT_SPECIAL_ex2] = 2.5, [AT_SPECIAL_rcp] = 1, [AT_SPECIAL_rsqrt] = 2
    };
    for (int f = 0; f < AT_SPECIAL_FUNCTIONS; f++) {
        double worst_units = 0, worst = 0, worst_relative = 0;
        long seen = 0;
        for (int64_t code = 0; code < (int64_t)1 << 32; code += 3 * STEP) {
            uint32_t y;
            at_special_each((enum at_special_function)f, NULL, 0, 1, &(uint32_t){ (uint32_t)code }, &y);
            const double x = (double)at_special_number((uint32_t)code), got = (double)at_special_number(y),
                         is = want(f, x);
            if ((f == AT_SPECIAL_sin || f == AT_SPECIAL_cos) && !(fabs(x) <= 3.14159265358979))
                continue;
            if (isnan(is) || isinf((float)is)) {
                assert_true(isnan(is) ? isnan(got) : got == (double)(float)is);
                continue;
            }
            seen++;
            worst_units = fmax(worst_units, fabs(got - is) / at_ulp(AT_F32, is));
            worst = fmax(worst, fabs(got - is));
            if (fabs(is) >= 0x1p-126)
                worst_relative = fmax(worst_relative, fabs(got - is) / fabs(is));
        }
        print_message("%-5s %ld inputs: %.4g units in the last place, relative 2^%.2f, absolute 2^%.2f\n",
                      at_special_name((enum at_special_function)f), seen, worst_units, log2(worst_relative),
                      log2(worst));
        assert_true(seen > 100000);
        assert_true(units[f] == 0 || (worst_units <= units[f] && worst_units > 0.5));
        assert_true(f != AT_SPECIAL_tanh || worst_relative <= 0x1p-11);
        assert_true(f != AT_SPECIAL_sqrt || worst_relative <= 0x1p-22);
        assert_true((f != AT_SPECIAL_sin && f != AT_SPECIAL_cos) || worst <= 0x1.8p-21);
    }
}

/* The constant that limits are made of: no argument exceeds it, and it is no more than one has. All significands with both
 * parities of the exponent, which is all there is; then codes of every exponent, subnormal ones too. */
static void test_the_error_of_rsqrt(void **state) {
    (void)state;
    double worst = 0;
    uint32_t at = 0;
    for (uint32_t code = 1; code < AT_SPECIAL_INFINITY; code += code - 0x3f800000u < 0x1000000u ? 1 : STEP) {
        const double x = (double)at_special_number(code), got = (double)at_special_number(at_special_rsqrt(code, 0)),
                     off = fabs(got * sqrt(x) - 1);
        at_assert_true(off <= AT_SPECIAL_RSQRT_ERROR, "rsqrt of %08x is off by %a of itself", code, off);
        at = off > worst ? code : at;
        worst = fmax(worst, off);
        if (code >= AT_SPECIAL_LEAST_NORMAL)
            assert_true(at_special_rsqrt(code, 1) == at_special_rsqrt(code, 0));
    }
    print_message("rsqrt is off by at most %a of itself (2^%.4f), at %08x\n", worst, log2(worst), at);
    assert_true(AT_SPECIAL_RSQRT_ERROR <= 1.0002 * worst);
}

/* Sums of mixed results at every STEP-th code, made when the hashes of all 2^32 were those of the device: any coefficient shows. */
static void test_results_have_not_changed(void **state) {
    (void)state;
    static const uint64_t sums[AT_SPECIAL_FUNCTIONS][2] = {
        { 0x218bbbb1b399a39b, 0x6b3fde2403cb5af6 }, { 0x5c29a520dbafed19, 0x3838e70158a4be55 },
        { 0xd73156d5dfbab033, 0xa67ee29d6b1aa809 }, { 0x0be61515cab9617a, 0xb936ee3e687c6652 },
        { 0x4d3bf6e40ad7c6d3, 0xf1ac16a72fa17528 }, { 0xd956aaa62634566f, 0xd956aaa62634566f },
        { 0xb1338684b87bc026, 0xb1338684b87bc026 }, { 0x1c073dc1bc18b9cc, 0x1c073dc1bc18b9cc },
    };
    for (int f = 0; f < AT_SPECIAL_FUNCTIONS; f++)
        for (int ftz = 0; ftz < 2; ftz++) {
            uint64_t sum = 0;
            for (int64_t code = 0; code < (int64_t)1 << 32; code += STEP) {
                const uint32_t x = (uint32_t)code;
                uint32_t y;
                at_special_each((enum at_special_function)f, NULL, ftz, 1, &x, &y);
                sum = (sum ^ y) * 0x9e3779b97f4a7c15u + x;
            }
            at_assert_true(sum == sums[f][ftz], "%s, ftz %d: 0x%016llx, was 0x%016llx",
                           at_special_name((enum at_special_function)f), ftz, (unsigned long long)sum,
                           (unsigned long long)sums[f][ftz]);
        }
}

/* Codes of arguments and results, without and with ftz. */
static void test_special_cases(void **state) {
    (void)state;
    static const struct {
        enum at_special_function function;
        uint32_t x, y, flushed;
    } cases[] = {
        { AT_SPECIAL_ex2, 0x7f800000, 0x7f800000, 0x7f800000 },
        { AT_SPECIAL_ex2, 0xff800000, 0, 0 },
        { AT_SPECIAL_ex2, 0x80000001, 0x3f800000, 0x3f800000 },
        { AT_SPECIAL_ex2, 0x7fc00001, 0x7fffffff, 0x7fffffff },
        { AT_SPECIAL_ex2, 0xbf800000, 0x3f000000, 0x3f000000 },
        { AT_SPECIAL_ex2, 0xc2fc0000, 0x00800000, 0x00800000 },
        { AT_SPECIAL_ex2, 0xc2fe0000, 0x003fffff, 0 },
        { AT_SPECIAL_ex2, 0x43000000, 0x7f800000, 0x7f800000 },
        { AT_SPECIAL_ex2, 0xb4000d55, 0x3f7ffffe, 0x3f7ffffe },
        { AT_SPECIAL_rcp, 0x80000000, 0xff800000, 0xff800000 },
        { AT_SPECIAL_rcp, 0x80200000, 0xff800000, 0xff800000 },
        { AT_SPECIAL_rcp, 0x00300000, 0x7f2aaaab, 0x7f800000 },
        { AT_SPECIAL_rcp, 0x7e800001, 0x007fffff, 0 },
        { AT_SPECIAL_rcp, 0xff800000, 0x80000000, 0x80000000 },
        { AT_SPECIAL_rcp, 0x3f800000, 0x3f800000, 0x3f800000 },
        { AT_SPECIAL_rsqrt, 0x80000000, 0xff800000, 0xff800000 },
        { AT_SPECIAL_rsqrt, 0x80000001, 0x7fffffff, 0xff800000 },
        { AT_SPECIAL_rsqrt, 0x41800000, 0x3e800000, 0x3e800000 },
        { AT_SPECIAL_rsqrt, 0x7f800000, 0, 0 },
        { AT_SPECIAL_sqrt, 0x80000000, 0x80000000, 0x80000000 },
        { AT_SPECIAL_sqrt, 0x80000001, 0x7fffffff, 0x80000000 },
        { AT_SPECIAL_sqrt, 0x41800000, 0x40800000, 0x40800000 },
        { AT_SPECIAL_sqrt, 0x7f800000, 0x7f800000, 0x7f800000 },
        { AT_SPECIAL_lg2, 0, 0xff800000, 0xff800000 },
        { AT_SPECIAL_lg2, 0x80000001, 0x7fffffff, 0xff800000 },
        { AT_SPECIAL_lg2, 0x3f800000, 0, 0 },
        { AT_SPECIAL_lg2, 0x3f000000, 0xbf7ffffe, 0xbf7ffffe },
        { AT_SPECIAL_lg2, 0x00010088, 0xc304ff3c, 0xff800000 },
        { AT_SPECIAL_sin, 0x80000000, 0x80000000, 0x80000000 },
        { AT_SPECIAL_sin, 0x7f800000, 0x7fffffff, 0x7fffffff },
        { AT_SPECIAL_sin, 0x349801f1, 0x34491200, 0x34491200 },
        { AT_SPECIAL_cos, 0, 0x3f800000, 0x3f800000 },
        { AT_SPECIAL_cos, 0xff800000, 0x7fffffff, 0x7fffffff },
        { AT_SPECIAL_tanh, 0x80000001, 0x80000001, 0x80000001 },
        { AT_SPECIAL_tanh, 0xff800000, 0xbf800000, 0xbf800000 },
        { AT_SPECIAL_tanh, 0x41000000, 0x3f800000, 0x3f800000 },
        { AT_SPECIAL_tanh, 0x3b810000, 0x3b80ffff, 0x3b80ffff },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t y, flushed;
        at_special_each(cases[i].function, NULL, 0, 1, &cases[i].x, &y);
        at_special_each(cases[i].function, NULL, 1, 1, &cases[i].x, &flushed);
        at_assert_true(y == cases[i].y && flushed == cases[i].flushed,
                       "%s of %08x: %08x, with ftz %08x; wanted %08x, %08x", at_special_name(cases[i].function),
                       cases[i].x, y, flushed, cases[i].y, cases[i].flushed);
    }
}

/* Forms in f16 and bf16: cut towards 0, subnormal, infinite beyond f16's range, NaN. */
static void test_narrow_forms(void **state) {
    (void)state;
    assert_int_equal(at_special_ex2_f16(0x11c5), 0x3c00); /* 1.000488 of the unit: 1, not the 1.001 that is nearer */
    assert_int_equal(at_special_ex2_f16(0xcb22), 0x0353); /* subnormal */
    assert_int_equal(at_special_ex2_f16(0x4c00), 0x7c00);
    assert_int_equal(at_special_ex2_f16(0xce40), 0); /* 2^-25 */
    assert_int_equal(at_special_ex2_f16(0xfe01), 0x7fff);
    assert_int_equal(at_special_ex2_f16(0xfc00), 0);
    assert_int_equal(at_special_ex2_f16(0x0001), 0x3c00);
    assert_int_equal(at_special_ex2_bf16_ftz(0x3bb9), 0x3f80);
    assert_int_equal(at_special_ex2_bf16_ftz(0xc2fe), 0);
    assert_int_equal(at_special_ex2_bf16_ftz(0xffc0), 0x7fff);
    assert_int_equal(at_special_tanh_f16(0x8001), 0x8001);
    assert_int_equal(at_special_tanh_f16(0xc525), 0xbbff);
    assert_int_equal(at_special_tanh_bf16(0x40d4), 0x3f7f);
    assert_int_equal(at_special_tanh_bf16(0x0001), 0x0001);
}

/* Each has its own name, and the results of its function: f32 with ftz and without, 16 bits alone and in pairs. */
static void test_instructions(void **state) {
    (void)state;
    int narrow = 0, flushing = 0;
    for (int i = 0; i < at_special_instruction_count(); i++) {
        const struct at_special_instruction *t = at_special_instruction_at(i);
        const uint32_t x = t->narrow ? 0x4026 : 0x40266666;
        uint32_t y = x, want;
        assert_true(at_special_instruction_find(t->name) == t);
        assert_true(at_special_arguments(t) == (t->narrow ? 65536 : (int64_t)1 << 32));
        assert_true((strstr(t->name, ".ftz") != NULL) == t->ftz);
        assert_true(strncmp(t->name, at_special_name(t->function), strlen(at_special_name(t->function))) == 0);
        assert_true((strstr(t->name, "f32") != NULL) == !t->narrow && (t->format == AT_SPECIAL_F32) == !t->narrow);
        assert_true((strstr(t->name, "bf16") != NULL) == (t->format == AT_SPECIAL_BF16));
        at_special_results(t, 1, &y, &y);
        at_special_each(t->function, NULL, t->ftz, 1, &x, &want);
        assert_true(y == (t->narrow ? t->narrow((uint16_t)x) : want) && y != x);
        narrow += t->narrow != NULL;
        flushing += t->ftz;
    }
    assert_true(at_special_instruction_count() == 23 && narrow == 8 && flushing == 9);
    assert_null(at_special_instruction_find("tanh.approx.ftz.f32"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fast_square_is_the_columns),
        cmocka_unit_test(test_errors_are_within_what_is_promised),
        cmocka_unit_test(test_the_error_of_rsqrt),
        cmocka_unit_test(test_results_have_not_changed),
        cmocka_unit_test(test_special_cases),
        cmocka_unit_test(test_narrow_forms),
        cmocka_unit_test(test_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
