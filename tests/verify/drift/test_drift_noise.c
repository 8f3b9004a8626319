/* How often attest drift accuses what has not moved: recordings of one thing under noise, with what chance may leave and
 * with a floor measured on two more recordings; that a moved head is still seen; and how close the values of one request
 * are under noise, and of two requests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>

#include "datasets/fill/random.h"
#include "verify/drift/drift_rows.h"

/* A layer: heads of scores, and of one number a row of them. */
enum { HEADS = 8, SCORES = 3000, LINES = 150, ROWS = 2 * HEADS, BINS = 63490 };

static double values[SCORES];
static struct at_drift_bench bench;

static int open_bench(void **state) {
    (void)state;
    return at_drift_bench_init(AT_F16, &bench) != AT_OK;
}

static int close_bench(void **state) {
    (void)state;
    at_drift_bench_release(&bench);
    return 0;
}

/* What a recording of the layer looks like. */
struct thing {
    uint64_t trial, recording;
    double noise;   /* of a value, relative to it; half of the rows have as much again that does not depend on it */
    double uneven;  /* heads have other noises: their logarithms' deviation */
    int moved;      /* a head whose values are 1.3 times what they were; -1: none */
    double stretch; /* 1.3 */
};

static void record(const struct thing *t, int row, uint64_t *counts) {
    const int n = row < HEADS ? SCORES : LINES;
    double noise[SCORES + 2], own[2];
    const uint64_t name = t->trial * ROWS + (uint64_t)row;
    const struct at_random base = { 11, at_random_stream("values", name) },
                           more = { 12 + t->recording, at_random_stream("noise", name) },
                           heads = { 13, at_random_stream("heads", name) };
    at_random_normals(&base, 0, n, values);
    at_random_normals(&more, 0, n, noise);
    at_random_normals(&heads, 0, 2, own);
    const double size = t->noise * exp(t->uneven * own[0]);
    memset(counts, 0, BINS * sizeof *counts);
    for (int i = 0; i < n; i++) {
        double x = 3 * values[i] * (1 + size * noise[i]) + (row % 2 ? 3 * size * noise[n - 1 - i] : 0);
        x *= row % HEADS == t->moved ? t->stretch : 1;
        counts[at_dist_bin_of(AT_F16, (uint16_t)at_encode(AT_F16, x))]++;
    }
}

static void compare(const struct thing *a, const struct thing *b, int row, struct at_drift_row *out) {
    const struct at_dist_tally none = { 0 };
    struct at_dist_summary of_a, of_b;
    record(a, row, bench.a);
    record(b, row, bench.b);
    at_dist_summarize(AT_F16, bench.a, &none, &of_a);
    at_dist_summarize(AT_F16, bench.b, &none, &of_b);
    *out = (struct at_drift_row){ .what = row < HEADS ? AT_DIST_raw : AT_DIST_row_max, .head = row % HEADS };
    at_drift_measure_row(&bench, &of_a, &of_b, out);
}

static unsigned by_metric[AT_DRIFT_METRICS]; /* heads that were accused by it */

/* Which heads of B are accused against A; the floor, if it is asked for, is that of recordings 2 and 3. */
static unsigned accused_heads(struct thing thing, int floor, int moved, const struct at_drift_limits *limits) {
    struct thing a = thing, b = thing, c = thing, d = thing;
    unsigned accused = 0;
    a.recording = 0, b.recording = 1, c.recording = 2, d.recording = 3;
    b.moved = moved;
    for (int kind = 0; kind < 2; kind++) {
        double most[AT_DRIFT_METRICS] = { 0 };
        for (int h = 0; h < HEADS && floor; h++) {
            struct at_drift_row pair;
            compare(&c, &d, kind * HEADS + h, &pair);
            for (int m = 0; m < AT_DRIFT_METRICS; m++)
                most[m] = fmax(most[m], pair.metric[m]);
        }
        for (int h = 0; h < HEADS; h++) {
            struct at_drift_row row;
            compare(&a, &b, kind * HEADS + h, &row);
            memcpy(row.noise, most, sizeof most);
            at_drift_set_limits(limits, 1, &row);
            for (int m = 0; m < AT_DRIFT_METRICS; m++) {
                const unsigned is = !(row.metric[m] <= row.limit[m]);
                accused |= is << h;
                by_metric[m] += is;
            }
        }
    }
    return accused;
}

/* Layers in which some head is accused, of `trials` in which nothing moved. */
static unsigned false_alarms(double noise, double uneven, int floor, unsigned trials,
                             const struct at_drift_limits *limits) {
    unsigned alarms = 0;
    memset(by_metric, 0, sizeof by_metric);
    for (unsigned t = 0; t < trials; t++)
        alarms += accused_heads((struct thing){ t, 0, noise, uneven, -1, 1.3 }, floor, -1, limits) != 0;
    print_message("noise %g, heads uneven by %g, %s: %u of %u layers accused, 95 %% at most %.2g\n", noise, uneven,
                  floor ? "with a floor" : "without one", alarms, trials,
                  gsl_cdf_beta_Pinv(0.95, alarms + 1, trials - alarms + (alarms == trials)));
    for (int m = 0; m < AT_DRIFT_METRICS; m++)
        if (by_metric[m])
            print_message("    %u heads by %s\n", by_metric[m], at_drift_metric_name((enum at_drift_metric)m));
    return alarms;
}

/* The layers are the same in every run: of those that are looked at without AT_DRIFT_TRIALS none is accused, of many no more
 * than the two in a thousand that the page has. */
static void assert_rare(unsigned alarms, unsigned trials) {
    at_assert_true(alarms <= trials / 500, "%u of %u layers accused, wanted at most %u", alarms, trials, trials / 500);
}

/* AT_DRIFT_TRIALS=1000 measures the rates that verify/drift/README.md has. */
static unsigned trials_of(void) {
    const char *asked = getenv("AT_DRIFT_TRIALS");
    return asked ? (unsigned)strtoul(asked, NULL, 10) : (unsigned)(4 * at_test_effort(5));
}

static void test_default_limits_under_small_noise(void **state) {
    (void)state;
    struct at_drift_limits limits;
    at_drift_limits_default(1, &limits);
    assert_rare(false_alarms(1e-6, 0.5, 0, trials_of(), &limits), trials_of());
    assert_rare(false_alarms(1e-4, 0.5, 0, trials_of(), &limits), trials_of());
    /* limits alone, without what chance may leave, accuse nearly every layer */
    limits.chance = 0;
    const unsigned alarms = false_alarms(1e-4, 0.5, 0, 20, &limits);
    at_assert_true(alarms >= 15, "%u of 20 layers accused where chance is left nothing", alarms);
}

/* Noise that is far beyond the default limits; in the end they are set to 0: the floor has to do it alone. */
static void test_floor_under_large_noise(void **state) {
    (void)state;
    struct at_drift_limits limits;
    at_drift_limits_default(1, &limits);
    const unsigned bare = false_alarms(0.05, 0.5, 0, 20, &limits);
    at_assert_true(bare >= 18, "%u of 20 layers accused without a floor", bare);
    assert_rare(false_alarms(0.05, 0.5, 1, trials_of(), &limits), trials_of());
    assert_rare(false_alarms(0.005, 0.5, 1, trials_of(), &limits), trials_of());
    for (int m = 0; m < AT_DRIFT_METRICS; m++)
        limits.rule[0].limit[m] = 0;
    limits.chance = 0;
    assert_rare(false_alarms(0.05, 0.5, 1, trials_of(), &limits), trials_of());
    limits.noise_factor = 1; /* the largest itself is passed as often as not */
    const unsigned ones = false_alarms(0.05, 0.5, 1, 20, &limits);
    at_assert_true(ones >= 10, "%u of 20 layers accused at once the floor", ones);
}

/* One head of B by 1.3, the others under noise: that one, and no other. */
static void test_moved_head_is_seen(void **state) {
    (void)state;
    struct at_drift_limits limits;
    at_drift_limits_default(1, &limits);
    unsigned seen = 0, others = 0, n = 0;
    for (int floor = 0; floor < 2; floor++)
        for (uint64_t t = 0; t < 5; t++, n++) {
            const struct thing thing = { 1000 + t, 0, floor ? 0.03 : 1e-6, 0.5, -1, 1.3 };
            const unsigned accused = accused_heads(thing, floor, 3, &limits);
            seen += accused >> 3 & 1;
            others += (accused & ~8u) != 0;
        }
    at_assert_true(seen == n && others == 0, "moved: seen in %u of %u layers, others accused in %u", seen, n, others);
}

/* Swapping the sides leaves every metric as it is. */
static void test_mirrored(void **state) {
    (void)state;
    struct thing a = { 7, 0, 0.03, 0.5, -1, 1.3 }, b = a;
    b.recording = 1, b.moved = 2;
    for (int row = 0; row < ROWS; row++) {
        struct at_drift_row there, back;
        compare(&a, &b, row, &there);
        compare(&b, &a, row, &back);
        for (int m = 0; m < AT_DRIFT_METRICS; m++)
            at_assert_same(there.metric[m], back.metric[m]);
        assert_int_equal(there.grain_bits, -back.grain_bits);
        at_assert_same(there.headroom_a, back.headroom_b);
        at_assert_same(there.zero_a, back.zero_b);
    }
}

/* NaNs alone against numbers, against zeros, and against NaNs: a class of its own. */
static void test_headroom_of_nan(void **state) {
    (void)state;
    const struct at_dist_tally none = { 0 }, nan = { .nan = 40 };
    struct at_dist_summary numbers, only_nan;
    struct at_drift_row row = { .what = AT_DIST_raw };
    memset(bench.a, 0, BINS * sizeof *bench.a);
    memset(bench.b, 0, BINS * sizeof *bench.b);
    bench.a[at_dist_bin_of(AT_F16, 0)] = 40; /* zeros: all of the headroom there is */
    at_dist_summarize(AT_F16, bench.a, &none, &numbers);
    at_dist_summarize(AT_F16, bench.b, &nan, &only_nan);
    at_assert_same(numbers.headroom, INFINITY);
    at_assert_same(only_nan.headroom, NAN);
    at_drift_measure_row(&bench, &numbers, &only_nan, &row);
    at_assert_same(row.metric[AT_DRIFT_headroom], NAN); /* within no limit */
    at_assert_same(row.metric[AT_DRIFT_infinite_share], 1);
    memset(bench.a, 0, BINS * sizeof *bench.a);
    at_drift_measure_row(&bench, &only_nan, &only_nan, &row);
    at_assert_same(row.metric[AT_DRIFT_headroom], 0);
}

/* ---- one request, or two ---- */

enum { CLASSES = 250 };

static void coarse_of(const struct thing *t, int row, uint64_t *coarse) {
    record(t, row, bench.a);
    memset(coarse, 0, CLASSES * sizeof *coarse);
    for (int64_t i = 0; i < BINS; i++)
        coarse[at_dist_class_of(AT_F16, i)] += bench.a[i];
}

static void test_dispersion(void **state) {
    (void)state;
    uint64_t of_a[CLASSES], of_b[CLASSES];
    double sum[3] = { 0 }, least = INFINITY, most = 0;
    enum { DRAWS = 40 };
    for (uint64_t t = 0; t < DRAWS; t++) {
        const struct thing a = { 2000 + t, 0, 1e-6, 0, -1, 1 }, noisy = { 2000 + t, 1, 0.01, 0, -1, 1 },
                           other = { 3000 + t, 1, 1e-6, 0, -1, 1 };
        const int row = t % 2 ? 0 : HEADS; /* 3000 values, or 150 */
        coarse_of(&a, row, of_a);
        coarse_of(&other, row, of_b);
        const double of_other = at_drift_dispersion(CLASSES, of_a, of_b);
        coarse_of(&noisy, row, of_b);
        const double of_same = at_drift_dispersion(CLASSES, of_a, of_b);
        sum[0] += of_other / DRAWS;
        sum[1] += of_same / DRAWS;
        least = fmin(least, of_other);
        most = fmax(most, of_same);
    }
    print_message(
        "dispersion of two requests: mean %.2f, least %.2f; of one under noise of 1 %%: mean %.2f, most %.2f\n", sum[0],
        least, sum[1], most);
    at_assert_true(sum[0] > 0.9 && least > 0.5 && most < 0.5, "two: mean %g, least %g; one: most %g", sum[0], least,
                   most);
    /* by hand: 10 and 10 against 12 and 8, one degree of freedom */
    static const uint64_t x[] = { 10, 10, 0 }, y[] = { 12, 8, 0 }, twice[] = { 20, 20, 0 }, none[3] = { 0 };
    at_assert_within(at_drift_dispersion(3, x, y), 4.0 / 22 + 4.0 / 18, 1e-15);
    at_assert_within(at_drift_dispersion(3, x, twice), 0, 1e-15);
    at_assert_same(at_drift_dispersion(3, x, none), NAN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_limits_under_small_noise),
        cmocka_unit_test(test_floor_under_large_noise),
        cmocka_unit_test(test_moved_head_is_seen),
        cmocka_unit_test(test_mirrored),
        cmocka_unit_test(test_headroom_of_nan),
        cmocka_unit_test(test_dispersion),
    };
    return cmocka_run_group_tests(tests, open_bench, close_bench);
}
