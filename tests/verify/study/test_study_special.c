/* Results of a device beside the unit's model: what differs, NaNs, what was not written, any cut and any number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "verify/study/special/study_special.h"

enum { N = 70000, STEP = 61357 };

static uint32_t y[N];

static const struct at_special_instruction *named(const char *name) {
    const struct at_special_instruction *t = at_special_instruction_find(name);
    assert_non_null(t);
    return t;
}

static void fill(const struct at_special_instruction *t) {
    for (int64_t i = 0; i < N; i++) {
        const uint32_t x = (uint32_t)(i * STEP);
        at_special_results(t, 1, &x, &y[i]);
    }
}

static struct at_special_measured measured(const struct at_special_instruction *t, int64_t piece, int threads) {
    struct at_special_measured found = { 0 };
    for (int64_t first = 0; first < N; first += piece) {
        const struct at_special_codes codes = { first, STEP, N - first < piece ? N - first : piece };
        at_assert_ok(at_special_compare(t, &codes, &y[first], threads, &found));
    }
    return found;
}

static void test_equal(void **state) {
    (void)state;
    const struct at_special_instruction *t = named("lg2.approx.f32"); /* NaN of half of its arguments */
    uint64_t hash = 0;
    fill(t);
    for (int64_t i = 0; i < N; i++)
        hash += at_special_mixed((uint32_t)(i * STEP), y[i]);
    const struct at_special_measured found = measured(t, N, 1);
    assert_true(found.arguments == N && found.different == 0 && found.other_nans == 0 && found.hash == hash);
}

static void test_what_differs(void **state) {
    (void)state;
    const struct at_special_instruction *t = named("lg2.approx.f32");
    fill(t);
    const uint64_t hash = measured(t, N, 1).hash;
    int64_t nan = N - 1;
    assert_true(y[nan] == 0x7fffffff);
    y[nan] = 0xffc00001; /* another NaN is the same result */
    struct at_special_measured found = measured(t, N, 1);
    assert_true(found.different == 0 && found.other_nans == 1 && found.hash == hash);
    y[nan] = UINT32_MAX; /* but not what stood there before */
    found = measured(t, N, 1);
    assert_true(found.different == 1 && found.x == (uint32_t)(nan * STEP) && found.hash == hash);
    y[20000] ^= 1;
    y[30000] ^= 1;
    y[40] = 0x7fffffff; /* a NaN where there is a number */
    const struct at_special_measured first = measured(t, N, 1);
    assert_true(first.different == 4 && first.x == 40 * STEP && first.y == 0x7fffffff && first.hash != hash);
    assert_true(first.model == at_special_lg2(40 * STEP, 0));
    for (int threads = 1; threads <= 5; threads += 2)
        for (int64_t piece = 16384; piece < N; piece = 2 * piece + 777) {
            found = measured(t, piece, threads);
            assert_memory_equal(&found, &first, sizeof found);
        }
    const struct at_special_codes later = { 10000, STEP, N - 10000 }, earlier = { 0, STEP, 10000 };
    found = (struct at_special_measured){ 0 };
    at_assert_ok(at_special_compare(t, &later, &y[10000], 2, &found));
    at_assert_ok(at_special_compare(t, &earlier, y, 2, &found));
    assert_memory_equal(&found, &first, sizeof found);
}

/* Zeros of another sign differ; so does a number where a NaN is due. */
static void test_bits(void **state) {
    (void)state;
    const struct at_special_instruction *t = named("sin.approx.f32");
    fill(t);
    assert_true(y[0] == 0);
    y[0] = 0x80000000;
    struct at_special_measured found = measured(t, N, 2);
    assert_true(found.different == 1 && found.y == 0x80000000 && found.model == 0);
    t = named("lg2.approx.f32");
    fill(t);
    y[N - 1] = 0;
    found = measured(t, N, 2);
    assert_true(found.different == 1 && found.y == 0 && found.model == 0x7fffffff);
}

/* All codes of 16 bits, whose results lie in halves of words. */
static void test_narrow(void **state) {
    (void)state;
    const struct at_special_instruction *t = named("ex2.approx.f16x2");
    static uint16_t z[1 << 16];
    const struct at_special_codes codes = { 0, 1, 1 << 16 };
    struct at_special_measured found = { 0 };
    for (uint32_t x = 0; x < 1 << 16; x++)
        z[x] = at_special_ex2_f16((uint16_t)x);
    at_assert_ok(at_special_compare(t, &codes, z, 3, &found));
    assert_true(found.arguments == 1 << 16 && found.different == 0 && found.other_nans == 0);
    assert_true(found.hash == 0x244fc835afdc5fba); /* that of an H200 */
    z[0x7c01] = 0xfe00;
    z[0x7c02] = 0xffff;
    z[0x3c00] ^= 1;
    found = (struct at_special_measured){ 0 };
    at_assert_ok(at_special_compare(t, &codes, z, 3, &found));
    assert_true(found.different == 2 && found.other_nans == 2 && found.x == 0x3c00 && found.model == 0x4000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_what_differs),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_narrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
