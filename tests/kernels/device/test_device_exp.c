/* The kernels' own exp and log against the C library's in f64: within what AT_EXP_LIBM declares.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <float.h>

#define __device__
#include "kernels/device/exp.h"

static float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Floats with bits from `first` to `last`, every `step`-th. */
static void expect_exp(uint32_t first, uint32_t last, uint32_t step) {
    for (uint32_t bits = first; bits <= last; bits += step) {
        const float x = of_bits(bits), got = at_exp(x);
        const double want = exp((double)x);
        int e;
        (void)frexp(want, &e);
        const double ulp = ldexp(1, e - 24 < -149 ? -149 : e - 24);
        at_assert_true(want > FLT_MAX ? got >= FLT_MAX : fabs((double)got - want) <= ulp, "exp(%a) is %a, wanted %a",
                       (double)x, (double)got, want);
    }
}

/* To 88, although kernels ask for 0 at most. Fast: one in 1009, in full: one in 101. Every one of them was looked at once: 0.78 ulp at most. */
static void test_exp(void **state) {
    (void)state;
    const uint32_t step = at_test_effort(10) > 1 ? 101 : 1009;
    expect_exp(0, 0x42b17218u, step);           /* 0 to 88.7 */
    expect_exp(0x80000000u, 0xc2f00000u, step); /* -0 to -120 */
}

/* From 2^-126 on, although kernels ask for 1 at least. */
static void test_log(void **state) {
    (void)state;
    for (uint32_t bits = 0x800000u; bits<0x7f800000u; bits += at_test_effort(10)> 1 ? 101 : 1009) {
        const float x = of_bits(bits);
        const double want = log((double)x), error = fabs((double)at_log(x) - want);
        at_assert_true(error <= 0x1p-24 * fabs(want) * (1 + 0x1p-20), "log(%a) is off by %g", (double)x, error);
    }
}

/* At 1 and its neighbours, where a logarithm has the least to hold on to. */
static void test_log_near_1(void **state) {
    (void)state;
    for (uint32_t bits = 0x3f800000u - 1000; bits <= 0x3f800000u + 1000; bits++) {
        const double want = log((double)of_bits(bits));
        at_assert_true(fabs((double)at_log(of_bits(bits)) - want) <= 0x1p-24 * fabs(want) * (1 + 0x1p-20), "log(%a)",
                       (double)of_bits(bits));
    }
}

static void test_special_values(void **state) {
    (void)state;
    assert_true(at_exp(0.0f) == 1.0f && at_exp(-0.0f) == 1.0f);
    assert_true(at_exp(-INFINITY) == 0.0f && at_exp(-120.0f) == 0.0f && at_exp(-FLT_MAX) == 0.0f);
    assert_true(isnan(at_exp(NAN)) && isnan(at_log(NAN)) && isnan(at_log(-1.0f)));
    assert_true(at_log(1.0f) == 0.0f && at_log(0.0f) == -INFINITY);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_exp), cmocka_unit_test(test_log),
                                        cmocka_unit_test(test_log_near_1), cmocka_unit_test(test_special_values) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
