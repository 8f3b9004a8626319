/* Counter-based numbers: the generator's published answers, order independence, and the distributions' shape.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/fill/random.h"

#include "tests/at_test.h"

enum { SAMPLE = 200000 };

/* Known answers of Philox4x32-10 from its authors for counter and key 0. */
static void test_bits_are_philox(void **state) {
    (void)state;
    static const uint32_t zeros[] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 };
    struct at_random zero = { 0, 0 };
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(at_random_bits(&zero, i), zeros[i]);
    /* every half of seed, stream and block number reaches the generator */
    const struct at_random others[] = { { 1, 0 }, { (uint64_t)1 << 32, 0 }, { 0, 1 }, { 0, (uint64_t)1 << 32 } };
    for (int i = 0; i < 4; i++)
        assert_int_not_equal(at_random_bits(&others[i], 0), zeros[0]);
    assert_int_not_equal(at_random_bits(&zero, 4), zeros[0]);
    assert_int_not_equal(at_random_bits(&zero, (uint64_t)1 << 34), zeros[0]);
}

/* The values themselves, to the last bit: what a stored case means must not change with compiler or machine. */
static void test_values_are_pinned(void **state) {
    (void)state;
    static const double normals[] = { 0x1.f8844414008a7p-5, 0x1.3dc094414217ap+1, 0x1.0a64280fc4f22p+0,
                                      0x1.7431d0f544e4ap-1 };
    struct at_random random = { 7, at_random_stream("q", 0) };
    double got[4];
    at_random_normals(&random, 0, 4, got);
    for (int i = 0; i < 4; i++)
        at_assert_same(got[i], normals[i]);
    at_assert_same(at_random_uniform(&random, 1000003), 0x1.d4a04a22p-2);
    at_assert_same(at_random_exponential(&random, 5), 0x1.c05736698206ep-3);
    assert_int_equal(at_random_stream("q", 0), 0x08d24207b5732474u);
}

/* Any piece of a sequence equals that piece of the whole. */
static void test_pieces_equal_the_whole(void **state) {
    (void)state;
    struct at_random random = { 3, 4 };
    double normal[64], uniform[64], piece[64];
    at_random_normals(&random, 0, 64, normal);
    at_random_uniforms(&random, 0, 64, uniform);
    for (int first = 0; first < 64; first++)
        for (int n = 0; first + n <= 64; n++) {
            at_random_normals(&random, (uint64_t)first, n, piece);
            assert_memory_equal(piece, normal + first, (size_t)n * sizeof *piece);
            at_random_uniforms(&random, (uint64_t)first, n, piece);
            assert_memory_equal(piece, uniform + first, (size_t)n * sizeof *piece);
        }
    for (uint64_t i = 0; i < 64; i++)
        at_assert_same(at_random_uniform(&random, i), uniform[i]);
}

static void test_seeds_and_streams_differ(void **state) {
    (void)state;
    struct at_random random = { 1, 1 }, seed = { 2, 1 }, stream = { 1, 2 };
    int same = 0;
    for (uint64_t i = 0; i < 1000; i++)
        same += (at_random_bits(&random, i) == at_random_bits(&seed, i)) +
                (at_random_bits(&random, i) == at_random_bits(&stream, i));
    assert_int_equal(same, 0);
    assert_true(at_random_stream("q", 0) != at_random_stream("k", 0));
    assert_true(at_random_stream("q", 0) != at_random_stream("q", 1));
}

/* The written-out functions against libm's. */
static void test_log_and_normals_against_libm(void **state) {
    (void)state;
    struct at_random random = { 11, 12 };
    for (int e = -1022; e < 1023; e++) {
        double x = ldexp(1.0 + at_random_uniform(&random, (uint64_t)e + 2000), e);
        at_assert_within(at_portable_log(x), log(x), 1e-14 * fabs(log(x)) + 1e-15);
    }
    at_assert_same(at_portable_log(1.0), 0.0);
    for (uint64_t i = 0; i < 20000; i += 2) {
        double got[2];
        at_random_normals(&random, i, 2, got);
        double radius = sqrt(-2 * log((at_random_bits(&random, i) + 0.5) * 0x1p-32));
        double angle = 6.283185307179586476925 * ((at_random_bits(&random, i + 1) + 0.5) * 0x1p-32);
        at_assert_within(got[0], radius * cos(angle), 1e-13);
        at_assert_within(got[1], radius * sin(angle), 1e-13);
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov's distance from the normal distribution: above 1.95 / sqrt(n) once in a thousand samples. */
static void test_normals_are_normal(void **state) {
    (void)state;
    double *x = malloc(SAMPLE * sizeof *x), mean = 0, square = 0, cube = 0, fourth = 0, neighbours = 0;
    assert_non_null(x);
    at_random_normals(&(struct at_random){ 5, 6 }, 0, SAMPLE, x);
    for (int i = 0; i < SAMPLE; i++) {
        mean += x[i] / SAMPLE;
        square += x[i] * x[i] / SAMPLE;
        cube += x[i] * x[i] * x[i] / SAMPLE;
        fourth += x[i] * x[i] * x[i] * x[i] / SAMPLE;
        neighbours += i ? x[i] * x[i - 1] / SAMPLE : 0;
    }
    /* four standard deviations each: 1, sqrt 2, sqrt 15, sqrt 96 and 1, over sqrt n */
    const double sigma = 1 / sqrt(SAMPLE);
    at_assert_within(mean, 0, 4 * sigma);
    at_assert_within(square, 1, 4 * 1.4143 * sigma);
    at_assert_within(cube, 0, 4 * 3.873 * sigma);
    at_assert_within(fourth, 3, 4 * 9.798 * sigma);
    at_assert_within(neighbours, 0, 4 * sigma);
    qsort(x, SAMPLE, sizeof *x, ascending);
    double distance = 0;
    for (int i = 0; i < SAMPLE; i++) {
        double below = 0.5 * erfc(-x[i] / sqrt(2.0)), here = fabs(below - (i + 0.5) / SAMPLE);
        distance = here > distance ? here : distance;
    }
    at_assert_true(distance <= 1.95 * sigma, "distance %g, wanted at most %g", distance, 1.95 * sigma);
    at_assert_true(x[0] < -4 && x[SAMPLE - 1] > 4, "tails end at %g and %g", x[0], x[SAMPLE - 1]);
    free(x);
}

static void test_below_and_exponential(void **state) {
    (void)state;
    struct at_random random = { 8, 9 };
    int counts[7] = { 0 };
    double mean = 0;
    for (uint64_t i = 0; i < 70000; i++) {
        int64_t drawn = at_random_below(&random, i, 7);
        assert_in_range(drawn, 0, 6);
        counts[drawn]++;
        mean += at_random_exponential(&random, i) / 70000;
    }
    for (int i = 0; i < 7; i++)
        at_assert_within(counts[i], 10000, 400);
    at_assert_within(mean, 1, 0.016);
    assert_int_equal(at_random_below(&random, 0, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_are_philox),
        cmocka_unit_test(test_values_are_pinned),
        cmocka_unit_test(test_pieces_equal_the_whole),
        cmocka_unit_test(test_seeds_and_streams_differ),
        cmocka_unit_test(test_log_and_normals_against_libm),
        cmocka_unit_test(test_normals_are_normal),
        cmocka_unit_test(test_below_and_exponential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
