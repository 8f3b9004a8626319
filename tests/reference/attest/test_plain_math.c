/* exp, exp2 and log2 of attest's own against MPFR: at most 2 ulp off, exact where they say so; vector loops the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpfr.h>

#include "attest/plain_math.h"
#include "fast/score_rows.h"
#include "tests/at_test.h"
#include "tests/support/splitmix.h"

enum { PRECISION = 200 };

/* Spacing of doubles around x. */
static double spacing(double x) {
    int exponent;
    if (fabs(x) < 0x1p-1022)
        return 0x1p-1074;
    frexp(x, &exponent);
    return ldexp(1.0, exponent - 53);
}

/* |got - exact| in units of the exact value's last place. */
static double off_by(double got, mpfr_t exact) {
    mpfr_t difference;
    const double unit = spacing(mpfr_get_d(exact, MPFR_RNDN));
    mpfr_init2(difference, PRECISION);
    mpfr_sub_d(difference, exact, got, MPFR_RNDN);
    mpfr_div_d(difference, difference, unit, MPFR_RNDN);
    const double off = fabs(mpfr_get_d(difference, MPFR_RNDN));
    mpfr_clear(difference);
    return off;
}

typedef int (*mpfr_function)(mpfr_t, const mpfr_t, mpfr_rnd_t);

/* Largest error over n points; every one is held to 2 ulp. */
static double check(const char *name, double (*ours)(double), mpfr_function theirs, long n, double low, double high) {
    struct splitmix random = { 5 };
    double worst = 0;
    mpfr_t x, y;
    mpfr_inits2(PRECISION, x, y, (mpfr_ptr)NULL);
    for (long i = 0; i < n; i++) {
        const double u = (double)(int64_t)(splitmix_next(&random) >> 11) * 0x1p-53, at = low + u * (high - low);
        mpfr_set_d(x, at, MPFR_RNDN);
        theirs(y, x, MPFR_RNDN);
        const double off = off_by(ours(at), y);
        at_assert_true(off <= 2, "%s(%a) = %a is %.3f ulp off", name, at, ours(at), off);
        worst = off > worst ? off : worst;
    }
    mpfr_clears(x, y, (mpfr_ptr)NULL);
    print_message("%s on [%g, %g]: at most %.3f ulp\n", name, low, high, worst);
    return worst;
}

static double plain_exp(double x) { return at_plain_exp(x); }
static double plain_exp2(double x) { return at_plain_exp2(x); }
static double plain_log2(double x) { return at_plain_log2(x); }

static void test_exp(void **state) {
    (void)state;
    const long n = 2000 * at_test_effort(20);
    check("exp", plain_exp, mpfr_exp, n, -40, 0);
    check("exp", plain_exp, mpfr_exp, n, -1, 1);
    check("exp", plain_exp, mpfr_exp, n, -1e-9, 1e-9);
    check("exp", plain_exp, mpfr_exp, n, -745, -700); /* subnormal results */
    check("exp", plain_exp, mpfr_exp, n, -700, 709.7);
    at_assert_same(at_plain_exp(0.0), 1.0);
    at_assert_same(at_plain_exp(-0.0), 1.0);
    at_assert_same(at_plain_exp(-(double)INFINITY), 0.0);
    at_assert_same(at_plain_exp((double)INFINITY), (double)INFINITY);
    at_assert_same(at_plain_exp(-746), 0.0);
    at_assert_same(at_plain_exp(710), (double)INFINITY);
    at_assert_same(at_plain_exp((double)NAN), (double)NAN);
    at_assert_same(at_plain_exp(1e300), (double)INFINITY);
    at_assert_same(at_plain_exp(-1e300), 0.0);
}

static void test_exp2(void **state) {
    (void)state;
    const long n = 2000 * at_test_effort(20);
    check("exp2", plain_exp2, mpfr_exp2, n, 0, 24);
    check("exp2", plain_exp2, mpfr_exp2, n, -1060, 1023.9);
    for (int i = -1074; i < 1024; i++)
        at_assert_same(at_plain_exp2(i), ldexp(1.0, i));
    at_assert_same(at_plain_exp2((double)INFINITY), (double)INFINITY);
    at_assert_same(at_plain_exp2(-(double)INFINITY), 0.0);
    at_assert_same(at_plain_exp2((double)NAN), (double)NAN);
}

static void test_log2(void **state) {
    (void)state;
    const long n = 2000 * at_test_effort(20);
    check("log2", plain_log2, mpfr_log2, n, 0.5, 2);
    check("log2", plain_log2, mpfr_log2, n, 1 - 1e-6, 1 + 1e-6);
    check("log2", plain_log2, mpfr_log2, n, 0x1p-1074, 0x1p-1020);
    check("log2", plain_log2, mpfr_log2, n, 1, 1e6);
    check("log2", plain_log2, mpfr_log2, n, 1e-12, 1);
    for (int i = -1074; i < 1024; i++)
        at_assert_same(at_plain_log2(ldexp(1.0, i)), i);
    at_assert_same(at_plain_log2(0.0), -(double)INFINITY);
    at_assert_same(at_plain_log2(-0.0), -(double)INFINITY);
    at_assert_same(at_plain_log2(-1), (double)NAN);
    at_assert_same(at_plain_log2((double)INFINITY), (double)INFINITY);
    at_assert_same(at_plain_log2(-(double)INFINITY), (double)NAN);
    at_assert_same(at_plain_log2((double)NAN), (double)NAN);
}

/* The loops of the fast tier, for any length, give what the functions give one by one. */
static void test_rows(void **state) {
    (void)state;
    enum { MAX = 70 };
    struct splitmix random = { 9 };
    double x[MAX] = { 0 }, y[MAX] = { 0 };
    for (int n = 0; n <= MAX; n++) {
        for (int i = 0; i < n; i++) {
            const uint64_t bits = splitmix_next(&random);
            memcpy(&x[i], &bits, sizeof bits); /* any double, NaNs among them */
            if (i % 3)
                x[i] = -(double)(bits >> 40) * 0x1p-18;
        }
        at_fast_exp_row(n, 0.75, x, y);
        for (int i = 0; i < n; i++)
            at_assert_same(y[i], at_plain_exp(x[i] - 0.75));
        for (int i = 0; i < n; i++)
            x[i] = x[i] == 0 ? 1 : fabs(x[i]);
        at_fast_entropy_row(n, x, y);
        for (int i = 0; i < n; i++)
            at_assert_same(y[i], x[i] * at_plain_log2(x[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_exp2),
        cmocka_unit_test(test_log2),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
