/* The comparator: every class of value against every class of reference, percentiles, the worst element.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/splitmix.h"
#include "verify/judge/compare.h"

/* Compares one value with one reference; model NAN-free and absent unless has_model. */
static struct at_result one(double got, double want, double limit, int has_model, double model, double interval,
                            enum at_format format, struct at_comparison *kept) {
    unsigned char code[8];
    struct at_result r;
    memset(&r, 0, sizeof r);
    at_store(format, code, 0, got);
    struct at_tensor t = { code, format, 1, { 1 } };
    struct at_comparison c = { .got = &t,
                               .want = &want,
                               .limit = &limit,
                               .model = has_model ? &model : NULL,
                               .interval = has_model ? &interval : NULL,
                               .count = 1 };
    at_assert_ok(at_compare(&c, &r));
    c.got = NULL;
    if (kept)
        *kept = c;
    return r;
}

static void accepts_only_what_is_within(void **state) {
    (void)state;
    static const struct {
        double got, want, limit;
        int wrong;
    } rows[] = {
        { 1, 1, 0, 0 },
        { 1, 1.5, 0.5, 0 },
        { 1, 1.5, 0.25, 1 },
        { NAN, 1, 1e9, 1 },
        { 1, NAN, 1e9, 1 },
        { NAN, NAN, 0, 0 },
        { INFINITY, 1, 1e3, 1 },
        { INFINITY, INFINITY, 0, 0 },
        { -INFINITY, INFINITY, 0, 1 },
        { INFINITY, NAN, 1e9, 1 },
        { 1, INFINITY, 1e9, 1 },
        { 1, 2, NAN, 1 },
        { 1, 2, INFINITY, 0 },
        { 1, -1, 1.5, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct at_result r = one(rows[i].got, rows[i].want, rows[i].limit, 0, 0, 0, AT_F32, NULL);
        at_assert_true(r.wrong == rows[i].wrong, "row %zu: got %g want %g limit %g: wrong is %lld", i, rows[i].got,
                       rows[i].want, rows[i].limit, (long long)r.wrong);
        assert_int_equal(r.compared, 1);
    }
}

/* An operator that moves bits: equal as numbers is not enough. */
static void bits_decide_where_they_are_given(void **state) {
    (void)state;
    static const struct {
        enum at_format format;
        uint64_t got, due;
        int wrong;
    } rows[] = {
        { AT_F16, 0x7e01, 0x7e01, 0 },  { AT_F16, 0x7e00, 0x7e01, 1 },         { AT_BF16, 0x7f81, 0x7f81, 0 },
        { AT_BF16, 0x7fc1, 0x7f81, 1 }, { AT_F32, 0x7fc00000, 0xffc00000, 1 }, { AT_F32, 0x80000000, 0x80000000, 0 },
        { AT_F32, 0, 0x80000000, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char got[8], due[8];
        struct at_result r;
        const double want = at_decode(rows[i].format, rows[i].due), limit = 0;
        memset(&r, 0, sizeof r);
        at_store_code(rows[i].format, got, 0, rows[i].got);
        at_store_code(rows[i].format, due, 0, rows[i].due);
        const struct at_tensor t = { got, rows[i].format, 1, { 1 } };
        struct at_comparison c = { .got = &t, .want = &want, .limit = &limit, .bits = due, .count = 1 };
        at_assert_ok(at_compare(&c, &r));
        at_assert_true(r.wrong == rows[i].wrong && c.other_bits == rows[i].wrong, "row %zu: wrong is %lld", i,
                       (long long)r.wrong);
        memset(&r, 0, sizeof r);
        c.computed = (const unsigned char[]){ 1 }; /* values decide: here they are equal, or both NaN */
        at_assert_ok(at_compare(&c, &r));
        assert_true(c.other_bits == 0 && r.wrong == 0);
        c.computed = (const unsigned char[]){ 0 };
        at_assert_ok(at_compare(&c, &r));
        assert_int_equal(c.other_bits, rows[i].wrong);
        c.bits = NULL;
        at_assert_ok(at_compare(&c, &r));
        assert_int_equal(c.other_bits, 0);
    }
}

/* Where there is no limit: a NaN is right if the declared arithmetic makes one of finite inputs. */
static void nan_of_an_overflow(void **state) {
    (void)state;
    static const struct {
        double got, limit, overflow;
        int wrong;
    } rows[] = {
        { NAN, INFINITY, NAN, 0 }, { NAN, INFINITY, 1, 1 },        { NAN, INFINITY, INFINITY, 1 },
        { NAN, 1e30, NAN, 1 },     { INFINITY, INFINITY, NAN, 0 }, { 2, INFINITY, NAN, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float got = (float)rows[i].got;
        struct at_result r;
        const double want = 1;
        memset(&r, 0, sizeof r);
        const struct at_tensor t = { &got, AT_F32, 1, { 1 } };
        struct at_comparison c = {
            .got = &t, .want = &want, .limit = &rows[i].limit, .overflow = &rows[i].overflow, .count = 1
        };
        at_assert_ok(at_compare(&c, &r));
        at_assert_true(r.wrong == rows[i].wrong, "row %zu: wrong is %lld", i, (long long)r.wrong);
    }
}

static void infinity_is_right_when_rounding_gives_it(void **state) {
    (void)state;
    assert_int_equal(one(INFINITY, 65520, 0, 0, 0, 0, AT_F16, NULL).wrong, 0);
    assert_int_equal(one(INFINITY, 65519, 0, 0, 0, 0, AT_F16, NULL).wrong, 1);
    assert_int_equal(one(INFINITY, 65519, 1, 0, 0, 0, AT_F16, NULL).wrong, 0);
    assert_int_equal(one(-INFINITY, 65519, 1, 0, 0, 0, AT_F16, NULL).wrong, 1);
    assert_int_equal(one(65504, 65520, 16, 0, 0, 0, AT_F16, NULL).wrong, 0);
    assert_int_equal(one(65504, 70000, 16, 0, 0, 0, AT_F16, NULL).wrong, 1);
}

static void the_model_decides_to_the_bit(void **state) {
    (void)state;
    struct at_comparison c;
    assert_int_equal(one(1, 1, 1, 1, 1, 0, AT_F32, &c).wrong, 0);
    assert_int_equal(one(1, 1, 1, 1, 1 + 0x1p-23, 0, AT_F32, &c).wrong, 1);
    assert_int_equal(one(1, 1, 1, 1, 1 + 0x1p-23, 0x1p-23, AT_F32, &c).wrong, 0);
    assert_int_equal(one(0.0, 0, 1, 1, -0.0, 0, AT_F32, &c).wrong, 1);
    assert_int_equal(one(NAN, 1, 1, 1, NAN, 0, AT_F32, &c).wrong, 0);
    assert_int_equal(c.overflowed, 1);
    assert_int_equal(one(INFINITY, 1, 1, 1, -INFINITY, 0, AT_F32, &c).wrong, 1);
    assert_int_equal(one(3, NAN, 1, 1, 3, 0, AT_F32, &c).wrong, 0);
    assert_int_equal(c.laundered, 1);
    assert_int_equal(one(5, 1, 1, 1, 5, 0, AT_F32, &c).wrong, 0);
    assert_int_equal(c.beyond_limit, 1);
}

static void an_exact_model_is_exact_only_without_intervals(void **state) {
    (void)state;
    struct at_result r = one(1, 1, 1, 1, 1, 0, AT_F32, NULL);
    assert_int_equal(r.model_exact, 1);
    assert_int_equal(r.model_equal, 1);
    r = one(1, 1, 1, 1, 1, 0.5, AT_F32, NULL);
    assert_int_equal(r.model_exact, 0);
    r = one(1, 1, 1, 0, 0, 0, AT_F32, NULL);
    assert_int_equal(r.model_compared, 0);
}

static void percentiles_and_worst_element(void **state) {
    enum { N = 1000 };
    static float got[N];
    static double want[N], limit[N];
    struct at_result r;
    (void)state;
    memset(&r, 0, sizeof r);
    for (int i = 0; i < N; i++) {
        want[i] = 1;
        limit[i] = 1;
        got[i] = 1 + (float)i * 0x1p-23f; /* i units in the last place */
    }
    got[777] = 3;
    struct at_tensor t = { got, AT_F32, 3, { 10, 10, 10 } };
    struct at_comparison c = { .got = &t, .want = want, .limit = limit, .count = N };
    at_assert_ok(at_compare(&c, &r));
    assert_int_equal(r.wrong, 1);
    assert_int_equal(c.first_wrong, 777);
    assert_int_equal(r.worst_index, 777);
    assert_int_equal(r.worst_at[0], 7);
    assert_int_equal(r.worst_at[1], 7);
    assert_int_equal(r.worst_at[2], 7);
    at_assert_same(r.err_max, 2);
    at_assert_same(r.ratio_max, 2);
    /* inverted_cdf of 0..999 without 777 and with something large instead */
    assert_int_equal(r.ulp_p50, 499);
    assert_int_equal(r.ulp_p99, 990);
    assert_int_equal(r.ulp_p999, 999);
    at_assert_true(r.ulp_max > 1000000, "ulp_max is %llu", (unsigned long long)r.ulp_max);
    uint64_t binned = 0;
    for (int i = 0; i < AT_HIST_BINS; i++)
        binned += r.err_hist[i];
    assert_int_equal(binned, N);
    assert_int_equal(r.err_hist[0], 1);  /* the exact element */
    assert_int_equal(r.err_hist[57], 1); /* error/limit = 2 */
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest of n sorted values whose share of them is at least q thousandths. */
static double at_share(const double *sorted, int n, int thousandths) {
    return sorted[(n * thousandths + 999) / 1000 - 1];
}

/* Percentiles are those of the sorted values: of few and many, of many equal ones, in any order. */
static void percentiles_are_those_of_sorted_values(void **state) {
    enum { MAX = 1200 };
    static float got[MAX];
    static double want[MAX], limit[MAX], ulp[MAX];
    struct splitmix random = { 1 };
    (void)state;
    for (int trial = 0; trial < 3000; trial++) {
        const int n = trial % 3 ? 1 + trial % 40 : 1 + (int)(splitmix_next(&random) % MAX);
        const uint64_t values = trial % 5 ? 1 + splitmix_next(&random) % 5 : 1000000; /* different ones */
        for (int i = 0; i < n; i++) {
            const int order = trial % 7 == 0 ? i : trial % 7 == 1 ? n - i : (int)(splitmix_next(&random) % values);
            want[i] = 1;
            ulp[i] = order;
            got[i] = 1 + (float)order * 0x1p-23f;
            limit[i] = order % 3 ? (double)(splitmix_next(&random) % values) : order % 2 ? INFINITY : 0x1p-1060;
        }
        const struct at_tensor t = { got, AT_F32, 1, { n } };
        struct at_comparison c = { .got = &t, .want = want, .limit = limit, .count = n };
        struct at_result r;
        memset(&r, 0, sizeof r);
        at_assert_ok(at_compare(&c, &r));
        qsort(ulp, (size_t)n, sizeof *ulp, by_value);
        qsort(limit, (size_t)n, sizeof *limit, by_value);
        at_assert_same((double)r.ulp_p50, at_share(ulp, n, 500));
        at_assert_same((double)r.ulp_p99, at_share(ulp, n, 990));
        at_assert_same((double)r.ulp_p999, at_share(ulp, n, 999));
        at_assert_same((double)r.ulp_max, ulp[n - 1]);
        at_assert_same(r.limit_median, at_share(limit, n, 500));
        at_assert_same(r.limit_max, limit[n - 1]);
    }
}

static void nothing_to_compare(void **state) {
    struct at_result r;
    (void)state;
    memset(&r, 0, sizeof r);
    struct at_tensor t = { NULL, AT_F16, 0, { 0 } };
    struct at_comparison c = { .got = &t, .count = 0 };
    at_assert_ok(at_compare(&c, &r));
    assert_int_equal(r.compared, 0);
    assert_int_equal(r.worst_index, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_only_what_is_within),
        cmocka_unit_test(bits_decide_where_they_are_given),
        cmocka_unit_test(nan_of_an_overflow),
        cmocka_unit_test(infinity_is_right_when_rounding_gives_it),
        cmocka_unit_test(the_model_decides_to_the_bit),
        cmocka_unit_test(an_exact_model_is_exact_only_without_intervals),
        cmocka_unit_test(percentiles_and_worst_element),
        cmocka_unit_test(percentiles_are_those_of_sorted_values),
        cmocka_unit_test(nothing_to_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
