/* Rounding errors of values that lie close together: as large as they can be together, and no larger where they lie apart.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <math.h>

#include "attest/format.h"
#include "verify/judge/alike.h"

static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* No shift of what is rounded makes more of the true errors, for places that are one, two, or many. */
static void no_shift_makes_more(void **state) {
    (void)state;
    static const double spreads[] = { 0, 1e-6, 1e-4, 1e-3, 1e-2, 1 };
    static const enum at_format formats[] = { AT_BF16, AT_F16, AT_E4M3, AT_E5M2 };
    uint64_t seed = 7;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (size_t s = 0; s < sizeof spreads / sizeof *spreads; s++) {
            enum { N = 500 };
            const double u = at_format_info(formats[f])->u;
            struct at_alike a = { 0 };
            double value[N], moved[N], most = 0, total = 0;
            for (int i = 0; i < N; i++) {
                value[i] = 0.7 * exp2(spreads[s] * uniform(&seed));
                moved[i] = u * value[i] * (i % 5 ? 1 : -0.5);
                total += fabs(moved[i]);
                at_alike_add(&a, value[i], u, moved[i]);
            }
            for (double shift = 0.25; shift < 1.01; shift += 1.0 / 4096) {
                double sum = 0;
                for (int i = 0; i < N; i++) {
                    const double x = shift * value[i];
                    sum += moved[i] / u * (at_round(formats[f], x) - x) / x;
                }
                most = fmax(most, fabs(sum));
            }
            const double worst = at_alike_worst(&a);
            at_assert_true(most <= 2 * worst, "%s, spread %g: %g of %g, bound %g", at_format_info(formats[f])->name,
                           spreads[s], most, total, worst);
            if (spreads[s] == 0)
                at_assert_within(worst, 0.7 * u * N * 0.7, 1e-5 * worst);
        }
}

/* Independent errors: about the root of their number, not their number. */
static void values_apart_average_out(void **state) {
    (void)state;
    enum { N = 10000 };
    struct at_alike a = { 0 }, first = { 0 }, second = { 0 };
    uint64_t seed = 3;
    for (int i = 0; i < N; i++) {
        const double x = exp2(-8 * uniform(&seed));
        at_alike_add(&a, x, 0x1p-9, 1);
        at_alike_add(i % 2 ? &first : &second, x, 0x1p-9, 1);
    }
    assert_true(at_alike_worst(&a) < 4 * sqrt(N) && at_alike_worst(&a) > 0.2 * sqrt(N));
    at_alike_merge(&first, &second);
    assert_true(at_alike_worst(&first) == at_alike_worst(&a));
}

static void nothing_is_nothing(void **state) {
    (void)state;
    struct at_alike a = { 0 };
    assert_true(at_alike_worst(&a) == 0);
    at_alike_add(&a, -0.3, 0x1p-9, 2); /* the sign of a value moves no place */
    at_alike_add(&a, 0.3, 0x1p-9, -2);
    assert_true(at_alike_worst(&a) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_shift_makes_more),
        cmocka_unit_test(values_apart_average_out),
        cmocka_unit_test(nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
