/* Distances between distributions, by hand and by a second way; the permutation test: its level on data where nothing
 * moved, its power where something did; limits from a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <unistd.h>

#include "datasets/fill/random.h"
#include "verify/drift/drift.h"
#include "verify/drift/drift_measure.h"
#include "verify/drift/drift_permute.h"

/* ---- distances ---- */

static void test_by_hand(void **state) {
    (void)state;
    static const double value[] = { -INFINITY, -1, 0, 2, INFINITY };
    static const uint64_t a[] = { 0, 1, 2, 1, 0 }, b[] = { 1, 0, 2, 0, 1 }, none[] = { 0, 0, 0, 0, 0 };
    int64_t at;
    at_assert_same(at_drift_ks(5, a, b, &at), 0.25);
    assert_int_equal(at, 0);
    at_assert_same(at_drift_ks(5, a, a, NULL), 0);
    at_assert_same(at_drift_ks(5, a, none, NULL), NAN);
    /* finite: a has 1/4, 2/4, 1/4 at -1, 0, 2; b is all at 0 */
    at_assert_within(at_drift_wasserstein(5, value, a, b), 0.25 * 1 + 0.25 * 2, 1e-15);
    at_assert_same(at_drift_wasserstein(5, value, a, none), NAN);
    at_assert_same(at_drift_infinite_share(5, value, b), 0.5);
    at_assert_same(at_drift_zero_share(5, value, a), 0.5);
    at_assert_within(at_drift_spread(5, value, a), sqrt((1.25 * 1.25 + 2 * 0.25 * 0.25 + 1.75 * 1.75) / 4), 1e-15);
    /* js: half of the mass is common, the other half is not */
    static const uint64_t left[] = { 1, 1, 0 }, right[] = { 0, 1, 1 };
    at_assert_within(at_drift_js(3, left, right), 0.5, 1e-15);
    at_assert_same(at_drift_js(3, left, left), 0);
}

/* The area between two cumulative shares of n values each is the mean distance of the sorted values. */
static void test_wasserstein_of_samples(void **state) {
    (void)state;
    enum { VALUES = 64, DRAWN = 500 };
    double value[VALUES], sorted_a[DRAWN], sorted_b[DRAWN], mean = 0;
    uint64_t a[VALUES] = { 0 }, b[VALUES] = { 0 };
    const struct at_random random = { 5, 1 };
    for (int i = 0; i < VALUES; i++)
        value[i] = i * i / 16.0 - 20;
    for (uint64_t i = 0; i < DRAWN; i++) {
        a[at_random_below(&random, 2 * i, VALUES)]++;
        b[at_random_below(&random, 2 * i + 1, VALUES / 2) + 7]++;
    }
    for (int i = 0, in_a = 0, in_b = 0; i < VALUES; i++) {
        for (uint64_t k = 0; k < a[i]; k++)
            sorted_a[in_a++] = value[i];
        for (uint64_t k = 0; k < b[i]; k++)
            sorted_b[in_b++] = value[i];
    }
    for (int i = 0; i < DRAWN; i++)
        mean += fabs(sorted_a[i] - sorted_b[i]) / DRAWN;
    at_assert_within(at_drift_wasserstein(VALUES, value, a, b), mean, 1e-12);
}

/* Values of 11 significant bits against the same rounded to 8, as bf16 has: 3 trailing bits are zero in all instead of
 * in an eighth. The cumulative shares hardly move. */
static void test_grain_of_bf16(void **state) {
    (void)state;
    enum { DRAWN = 20000, CODES = 0x7c00 };
    double *value = calloc(CODES, sizeof *value);
    uint64_t *a = calloc(CODES, sizeof *a), *b = calloc(CODES, sizeof *b);
    const struct at_random random = { 7, 1 };
    int bits;
    for (int i = 0; i < CODES; i++)
        value[i] = at_decode(AT_F16, (uint64_t)i);
    for (uint64_t i = 0; i < DRAWN; i++) {
        const double x = at_random_exponential(&random, i);
        a[at_encode(AT_F16, x)]++;
        b[at_encode(AT_F16, at_round(AT_BF16, x))]++;
    }
    at_assert_within(at_drift_grain(AT_F16, CODES, value, a, b, &bits), 1 - 1.0 / 8, 0.01);
    assert_int_equal(bits, 3);
    at_assert_true(at_drift_ks(CODES, a, b, NULL) < 0.005, "%g", at_drift_ks(CODES, a, b, NULL));
    at_assert_same(at_drift_grain(AT_F16, CODES, value, a, a, NULL), 0);
    free(value);
    free(a);
    free(b);
}

/* ---- the permutation test ---- */

enum { GROUPS = 24, CLASSES = 64, SERIES = 12, VALUES = 400 };

static double middles[CLASSES];
static uint64_t counts[SERIES * GROUPS * CLASSES];

static at_status load(void *context, int64_t series, uint64_t *to) {
    (void)context;
    memcpy(to, counts + series * GROUPS * CLASSES, sizeof counts / SERIES);
    return AT_OK;
}

static const struct at_drift_deal halves = { GROUPS / 2, GROUPS / 2, CLASSES, middles, 199, 1, load, NULL };

/* Series whose groups differ as requests do: each has its own middle. `moved`: what series 3 of side A is stretched by.
 */
static void make_groups(uint64_t seed, double moved) {
    memset(counts, 0, sizeof counts);
    for (int k = 0; k < CLASSES; k++)
        middles[k] = k - 31.5;
    for (uint64_t s = 0; s < SERIES; s++)
        for (uint64_t g = 0; g < GROUPS; g++) {
            const struct at_random random = { seed, at_random_stream("groups", s * GROUPS + g) };
            double x[VALUES + 2];
            at_random_normals(&random, 0, VALUES + 2, x);
            for (int i = 2; i < VALUES + 2; i++) {
                double at = x[i] + 0.3 * x[0];
                if (s == 3 && g < GROUPS / 2)
                    at *= moved;
                const int class = (int)floor(32 + 10 * at);
                counts[(s * GROUPS + g) * CLASSES + (uint64_t)(class < 0 ? 0 : class > 63 ? 63 : class)]++;
            }
        }
}

/* Over many data sets where nothing moved, some series is accused as often as the level says, no more and no less: an
 * exact test of a binomial share at 1e-4 each way, so that it fails by chance once in five thousand. High levels show a
 * test that is too silent soonest, low ones are those that are used. */
static void test_level_of(const struct at_drift_deal *like, long trials, int n, const double *level) {
    struct at_drift_series series[SERIES];
    unsigned accused[4] = { 0 };
    for (long t = 0; t < trials; t++) {
        make_groups(100 + (uint64_t)t, 1);
        struct at_drift_deal deal = *like;
        deal.seed = (uint64_t)t;
        at_assert_ok(at_drift_permute(&deal, series, SERIES));
        double least = 1;
        for (int s = 0; s < SERIES; s++)
            least = fmin(least, fmin(series[s].p, series[s].p_spread));
        for (int i = 0; i < n; i++)
            accused[i] += least <= level[i];
    }
    for (int i = 0; i < n; i++) {
        const double few = gsl_cdf_binomial_P(accused[i], level[i], (unsigned)trials),
                     same = gsl_ran_binomial_pdf(accused[i], level[i], (unsigned)trials),
                     many = gsl_cdf_binomial_Q(accused[i], level[i], (unsigned)trials) + same;
        print_message("%u of %ld data sets accused at level %.3g\n", accused[i], trials, level[i]);
        at_assert_true(few > 1e-4 && many > 1e-4, "%u of %ld accused at %g: chance of as few %g, as many %g",
                       accused[i], trials, level[i], few, many);
    }
}

static void test_level(void **state) {
    (void)state;
    static const double level[] = { 0.05, 0.25, 0.5 };
    test_level_of(&halves, 80 * at_test_effort(5), 3, level);
}

/* Few groups have few deals, 70 of them here, of which the swapped ones are alike: all are taken, and the levels that
 * they can give are reached. */
static at_status load_eight(void *context, int64_t series, uint64_t *to) {
    (void)context;
    memcpy(to, counts + series * GROUPS * CLASSES, 8 * CLASSES * sizeof *to);
    return AT_OK;
}

static const struct at_drift_deal eight = { 4, 4, CLASSES, middles, 69, 1, load_eight, NULL };

static void test_level_of_few_groups(void **state) {
    (void)state;
    static const double level[] = { 4.0 / 70, 18.0 / 70, 36.0 / 70 };
    test_level_of(&eight, 160 * at_test_effort(5), 3, level);
}

/* Side A far away from side B in every group: no deal but the swapped one is as far apart, whatever the seed. */
static void test_all_deals_once(void **state) {
    (void)state;
    struct at_drift_series series[SERIES];
    make_groups(1, 1);
    for (int g = 0; g < 4; g++)
        for (int k = 0; k < 12; k++)
            counts[g * CLASSES + k] = VALUES;
    for (int64_t deals = 69; deals <= 5000; deals += 4931)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct at_drift_deal deal = eight;
            deal.deals = deals;
            deal.seed = seed;
            at_assert_ok(at_drift_permute(&deal, series, 1));
            at_assert_same(series[0].p, 2.0 / 70);
            at_assert_same(at_drift_least_p(&deal), 2.0 / 70);
            assert_int_equal(at_drift_deals(&deal), 70);
        }
    struct at_drift_deal uneven = eight;
    uneven.groups_a = 3, uneven.groups_b = 5;
    at_assert_ok(at_drift_permute(&uneven, series, 1));
    assert_int_equal(at_drift_deals(&uneven), 56);
    assert_int_equal(at_drift_deals(&halves), 200);
}

static void test_power_and_place(void **state) {
    (void)state;
    struct at_drift_series series[SERIES];
    make_groups(9, 1.25);
    at_assert_ok(at_drift_permute(&halves, series, SERIES));
    at_assert_true(series[3].p_spread <= 0.01, "p = %g", series[3].p_spread);
    at_assert_within(series[3].spread, -log2(1.25), 0.03);
    for (int s = 0; s < SERIES; s++)
        if (s != 3)
            at_assert_true(series[s].p > 0.05 && series[s].p_spread > 0.05, "series %d: p = %g, %g", s, series[s].p,
                           series[s].p_spread);
    /* a shape that has moved at equal spread: two humps instead of one */
    for (int g = 0; g < GROUPS / 2; g++) {
        uint64_t *of = counts + (5 * GROUPS + g) * CLASSES;
        memset(of, 0, CLASSES * sizeof *of);
        of[24] = of[40] = VALUES / 2;
    }
    at_assert_ok(at_drift_permute(&halves, series, SERIES));
    at_assert_true(series[5].p <= 0.01, "p = %g", series[5].p);
    /* the distance is that of the two halves */
    uint64_t a[CLASSES] = { 0 }, b[CLASSES] = { 0 };
    for (int g = 0; g < GROUPS; g++)
        for (int k = 0; k < CLASSES; k++)
            (g < GROUPS / 2 ? a : b)[k] += counts[(3 * GROUPS + g) * CLASSES + k];
    at_assert_within(series[3].distance, at_drift_ks(CLASSES, a, b, NULL), 1e-15);
}

static at_status load_few(void *context, int64_t series, uint64_t *to) {
    static const uint64_t few[2][6] = { { 1, 0, 0, 1, 2, 0 }, { 0 } };
    memcpy(to, few[series], sizeof few[series]);
    return context ? AT_FAIL(AT_IO, "no counts") : AT_OK;
}

static void test_edges(void **state) {
    (void)state;
    struct at_drift_series series[2];
    static const double value[] = { -INFINITY, 0, 1 };
    struct at_drift_deal deal = { 1, 1, 3, value, 9, 1, load_few, NULL };
    at_assert_ok(at_drift_permute(&deal, series, 2));
    at_assert_within(series[0].distance, 2.0 / 3, 1e-15);
    at_assert_same(series[0].spread, NAN); /* one class each */
    at_assert_same(series[0].p, 1);        /* two groups can be dealt in one way */
    at_assert_same(at_drift_least_p(&deal), 1);
    at_assert_same(series[1].distance, NAN);
    at_assert_same(series[1].p, NAN);
    deal.context = &deal;
    at_assert_fails(at_drift_permute(&deal, series, 2), AT_IO, "no counts");
    deal.groups_b = 0;
    at_assert_fails(at_drift_permute(&deal, series, 2), AT_USAGE, "found 1 and 0 groups");
    const struct at_drift_deal seven = { 3, 4, 3, value, 999, 1, load_few, NULL };
    at_assert_within(at_drift_least_p(&seven), 1.0 / 35, 1e-12);
    at_assert_within(at_drift_least_p(&halves), 1.0 / 200, 1e-12);
}

/* ---- limits ---- */

static at_status read_text(const char *text, int paired, struct at_drift_limits *limits) {
    char path[] = "/tmp/attest_limits_XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    at_drift_limits_default(paired, limits);
    const at_status status = at_drift_limits_read(path, paired, limits);
    unlink(path);
    return status;
}

static void test_limits(void **state) {
    (void)state;
    struct at_drift_limits limits;
    at_assert_ok(
        read_text("{\"paired\": {\"p\": {\"ks\": 0.5}, \"js\": null, \"ks\": 0.25}, \"unpaired\": {\"level\": 0.05}}",
                  1, &limits));
    at_assert_same(at_drift_rule_of(&limits, "raw")->limit[AT_DRIFT_ks], 0.25);
    at_assert_same(at_drift_rule_of(&limits, "p")->limit[AT_DRIFT_ks], 0.5);
    at_assert_same(at_drift_rule_of(&limits, "p")->limit[AT_DRIFT_js], INFINITY);
    at_assert_same(limits.level, 0);
    at_assert_ok(read_text("{\"unpaired\": {\"level\": 0.05, \"permutations\": 99}}", 0, &limits));
    at_assert_same(limits.level, 0.05);
    assert_int_equal(limits.deals, 99);
    at_assert_fails(read_text("{\"paird\": {}}", 1, &limits), AT_USAGE, "did you mean 'paired'");
    at_assert_fails(read_text("{\"paired\": {\"kss\": 1}}", 1, &limits), AT_USAGE, "did you mean 'ks'");
    at_assert_fails(read_text("{\"paired\": {\"ks\": -1}}", 1, &limits), AT_USAGE, "found -1, wanted a number of 0 or");
    at_assert_fails(read_text("{\"paired\": {\"ks\": \"x\"}}", 1, &limits), AT_USAGE, "found \"x\"");
    at_assert_fails(read_text("{\"unpaired\": {\"level\": 1}}", 1, &limits), AT_USAGE, "between 0 and 1");
    at_assert_fails(read_text("{\"unpaired\": {\"permutations\": 0}}", 0, &limits), AT_USAGE, "1 to 1000000");
    at_assert_fails(read_text("{\"paired\": 3}", 1, &limits), AT_USAGE, "wanted an object");
    at_assert_fails(read_text("{\"paired\": ", 1, &limits), AT_USAGE, "line 1");
    at_assert_fails(at_drift_limits_read("/nonexistent", 1, &limits), AT_USAGE, "/nonexistent");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_wasserstein_of_samples),
        cmocka_unit_test(test_grain_of_bf16),
        cmocka_unit_test(test_level),
        cmocka_unit_test(test_level_of_few_groups),
        cmocka_unit_test(test_all_deals_once),
        cmocka_unit_test(test_power_and_place),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
