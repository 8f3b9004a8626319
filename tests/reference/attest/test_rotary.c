/* Cosines and sines of rotary positions against MPFR: as near as their header says, exact where an angle is 0, whole quarters
 * of a turn in order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <mpfr.h>

#include "attest/rotary.h"
#include "tests/oracle/rope_mpfr.h"
#include "tests/support/splitmix.h"

static double off_by(double angle, int is_sine, double got) {
    mpfr_t x;
    mpfr_init2(x, 300);
    mpfr_set_d(x, angle, MPFR_RNDN);
    (is_sine ? mpfr_sin : mpfr_cos)(x, x, MPFR_RNDN);
    mpfr_sub_d(x, x, got, MPFR_RNDA);
    const double off = fabs(mpfr_get_d(x, MPFR_RNDA));
    mpfr_clear(x);
    return off;
}

static void check_angle(double angle, double *worst) {
    double cosine, sine;
    at_rotary_cos_sin(angle, &cosine, &sine);
    const double c = off_by(angle, 0, cosine), s = off_by(angle, 1, sine), off = c > s ? c : s;
    at_assert_true(off <= 3e-16, "cos and sin of %a are %g and %g off", angle, c, s);
    *worst = off > *worst ? off : *worst;
}

static void test_angles(void **state) {
    (void)state;
    struct splitmix random = { 3 };
    double worst = 0, cosine, sine;
    for (long i = 0; i < 5000 * at_test_effort(20); i++) {
        const double u = (double)(int64_t)(splitmix_next(&random) >> 11) * 0x1p-53;
        check_angle(u * ldexp(1, (int)(i % 40) - 13), &worst);        /* every size, up to 2^26 */
        check_angle(floor(u * 0x1p25) * 0x1.921fb54442d18p0, &worst); /* beside whole quarters of a turn */
        check_angle(floor(u * 0x1p26), &worst);
    }
    print_message("at most %.3g off\n", worst);
    at_rotary_cos_sin(0, &cosine, &sine);
    at_assert_same(cosine, 1.0);
    at_assert_same(sine, 0.0);
}

static void test_entries(void **state) {
    (void)state;
    static const double bases[] = { 1, 100, 10000, 500000, 1e12 };
    static const int64_t rots[] = { 2, 10, 64, 128, 256 };
    struct splitmix random = { 4 };
    double worst = 0;
    for (long i = 0; i < 2000 * at_test_effort(10); i++) {
        const double base = bases[i % 5];
        const int64_t rot = rots[i / 5 % 5], position = (int64_t)(splitmix_next(&random) >> (38 + i % 24));
        const int64_t column = (int64_t)(splitmix_next(&random) % (uint64_t)rot);
        /* an angle is off by 1e-14 of itself, and the cosine of it by no more */
        const double share = (double)(2 * (column % (rot / 2))) / (double)rot,
                     angle = (double)position * pow(base, -share);
        const double off =
            at_rope_mpfr_entry(base, rot, position, column, at_rotary_entry(base, rot, position, column));
        at_assert_true(off <= 3e-16 + 1e-14 * angle, "base %g rot %ld position %ld column %ld: %g off, the angle is %g",
                       base, (long)rot, (long)position, (long)column, off, angle);
        worst = off > worst ? off : worst;
    }
    print_message("at most %.3g off\n", worst);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_angles), cmocka_unit_test(test_entries) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
