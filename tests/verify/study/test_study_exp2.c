/* The study of exponentials: what is nearest, told by 200 bits; every count, maximum and place from results altered on
 * purpose; the same for any threads and any cut into chunks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/oracle/exp2_mpfr.h"
#include "tests/support/splitmix.h"
#include "verify/study/special/study_exp2.h"

static float of_code(uint32_t code) {
    float x;
    memcpy(&x, &code, sizeof x);
    return x;
}

static void check_nearest(float x, int64_t *undecided) {
    float want;
    at_exp2_mpfr(x, 0, &want, NULL);
    at_assert_same((double)at_exp2_nearest(x, exp2((double)x), undecided), (double)want);
}

/* Any code; and x whose power lies so near the middle of two numbers of f32 that double does not tell: found by trying. */
static void test_nearest(void **state) {
    (void)state;
    struct splitmix random = { 1 };
    int64_t undecided = 0;
    long near = 0;
    const long n = 40000 * at_test_effort(10);
    for (long i = 0; i < n; i++)
        check_nearest(of_code((uint32_t)splitmix_next(&random)), &undecided);
    for (uint32_t code = 0x3f800000u; near < 3 * at_test_effort(4) && code < 0x40000000u; code++) {
        const double value = exp2((double)of_code(code)), rest = fabs(remainder(value, 0x1p-22));
        if (fabs(rest - 0x1p-23) > 0x1p-44) /* 2 to 4: units of 2^-22, the middle 2^-23 away */
            continue;
        check_nearest(of_code(code), &undecided);
        near++;
    }
    check_nearest(-150, &undecided); /* 2^-150, the middle between 0 and the least number */
    check_nearest(nextafterf(-150, 0), &undecided);
    check_nearest(nextafterf(-150, -INFINITY), &undecided);
    print_message("%ld near a middle\n", near);
    assert_true(near > 0 && undecided == 0);
}

/* All x of f32 whose 2^x lies within two units of double's last place of the middle between two numbers of f32, found by
 * trying each. Of some, double has the middle itself. Any of the doubles near by gives the same. */
static void test_nearest_does_not_trust_double(void **state) {
    (void)state;
    static const uint32_t codes[] = {
        0x3a07857c, 0x3b429d37, 0x3c02a9ad, 0xb52d1f9a, 0xb8d3d026, 0xbaec2b40, 0xbcf3a937
    };
    int64_t undecided = 0;
    int differ = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const float x = of_code(codes[i]);
        double value = exp2((double)x);
        float want;
        at_exp2_mpfr(x, 0, &want, NULL);
        for (int step = 0; step < 3; step++)
            value = nextafter(value, 0);
        for (int step = 0; step < 7; step++, value = nextafter(value, 8)) {
            at_assert_same((double)at_exp2_nearest(x, value, &undecided), (double)want);
            differ += (float)value != want;
        }
    }
    print_message("%d of %d doubles round to another f32\n", differ, 7 * 7);
    assert_true(undecided == 0 && differ >= 7);
}

/* ---- counting ---- */

enum { N = 200000 };

struct scene {
    int64_t first, step;
    float got[N];
    double value[N], limit[N];
    struct at_exp2_row rows[AT_EXP2_CLASSES];
};

static uint32_t code_at(const struct scene *s, int64_t i) { return (uint32_t)((s->first + i) * s->step); }

/* Nearest results, limits of one unit. */
static void fill(struct scene *s, int64_t first, int64_t step) {
    int64_t undecided = 0;
    s->first = first;
    s->step = step;
    for (int64_t i = 0; i < N; i++) {
        const float x = of_code(code_at(s, i));
        s->value[i] = exp2((double)x);
        s->got[i] = at_exp2_nearest(x, s->value[i], &undecided);
        s->limit[i] = isfinite(s->value[i]) ? at_ulp(AT_F32, s->value[i]) : 0;
    }
}

/* In chunks of `length`. */
static void compare(struct scene *s, int64_t length, int threads) {
    struct at_exp2_chunk chunk = { .step = s->step };
    at_exp2_rows_init("exp2/any", s->step, s->rows);
    for (int64_t at = 0; at < N; at += length) {
        chunk.first = s->first + at;
        chunk.n = N - at < length ? N - at : length;
        chunk.got = s->got + at;
        chunk.value = s->value + at;
        chunk.limit = s->limit + at;
        chunk.has_before = at > 0;
        chunk.before = at > 0 ? s->got[at - 1] : 0;
        at_assert_ok(at_exp2_compare(&chunk, threads, s->rows));
    }
}

static struct at_exp2_row sum_of(const struct scene *s) {
    struct at_exp2_row all = s->rows[0];
    for (int c = 1; c < AT_EXP2_CLASSES; c++) {
        all.inputs += s->rows[c].inputs;
        all.not_nearest += s->rows[c].not_nearest;
        all.flushed += s->rows[c].flushed;
        all.wrong_class += s->rows[c].wrong_class;
        all.beyond_limit += s->rows[c].beyond_limit;
        all.descents += s->rows[c].descents;
        all.undecided += s->rows[c].undecided;
    }
    return all;
}

static struct scene s;

/* All of f32 in large steps: every class but zero's -0 comes up, nothing is amiss. */
static void test_right_results(void **state) {
    (void)state;
    fill(&s, 0, 21475); /* 200,000 of them are 2^32 */
    compare(&s, N, 2);
    const struct at_exp2_row all = sum_of(&s);
    assert_true(all.inputs == N && all.not_nearest == 0 && all.flushed == 0 && all.wrong_class == 0);
    assert_true(all.beyond_limit == 0 && all.descents == 0 && all.undecided == 0);
    for (int c = 0; c < AT_EXP2_CLASSES; c++) {
        const struct at_exp2_row *r = &s.rows[c];
        at_assert_true(r->inputs > 0 || c == AT_EXP2_infinite, "%s has no input", r->name);
        assert_true(isnan(r->first_bad_x) && r->hash == s.rows[0].hash);
    }
    assert_true(s.rows[AT_EXP2_normal].max_ulp > 0.49 && s.rows[AT_EXP2_normal].max_ulp <= 0.5);
    assert_true(s.rows[AT_EXP2_subnormal].max_ulp > 0.49 && s.rows[AT_EXP2_subnormal].max_ulp <= 0.5);
    assert_true(s.rows[AT_EXP2_normal].max_relative > 0x1p-25 && s.rows[AT_EXP2_normal].max_relative <= 0x1p-24);
    assert_true(isnan(s.rows[AT_EXP2_nan].max_ulp) && isnan(s.rows[AT_EXP2_overflow].max_ulp));
}

/* Inputs from 1.0 on, one after the other: one fault at a time, each in its own count. */
static void test_faults(void **state) {
    (void)state;
    const struct at_exp2_row *r = &s.rows[AT_EXP2_normal];
    fill(&s, 0x3f800000, 1);
    compare(&s, N, 1);
    const uint64_t hash = r->hash;
    assert_true(r->inputs == N && r->descents == 0 && r->not_nearest == 0);

    const float good = s.got[1000];
    const double x = (double)of_code(code_at(&s, 1000));
    s.got[1000] = nextafterf(good, 8); /* within the limit or not, that is the input's luck: take two units */
    s.got[1000] = nextafterf(s.got[1000], 8);
    compare(&s, N, 1);
    assert_true(r->not_nearest == 1 && r->beyond_limit == 1 && r->wrong_class == 0 && r->descents == 1);
    assert_true(r->max_ulp > 1.5 && r->max_ulp < 2.5 && r->max_ulp_x == x && r->max_relative_x == x);
    assert_true(r->first_bad_x == x && r->hash != hash);
    s.got[1000] = (float)NAN;
    compare(&s, N, 1);
    assert_true(r->not_nearest == 0 && r->beyond_limit == 0 && r->wrong_class == 1 && r->first_bad_x == x);
    s.got[1000] = INFINITY;
    compare(&s, N, 1);
    assert_true(r->wrong_class == 1 && r->descents == 1);
    s.got[1000] = 0;
    compare(&s, N, 1);
    assert_true(r->flushed == 1 && r->not_nearest == 1 && r->beyond_limit == 1 && r->max_ulp <= 0.5 &&
                r->descents == 1);
    s.got[1000] = good;
    s.got[N - 1] = s.got[0];
    compare(&s, N, 1);
    assert_true(r->descents == 1 && r->first_bad_x == (double)of_code(code_at(&s, N - 1)));
    s.got[N - 1] = s.got[N - 2];
    compare(&s, N, 1);
    assert_true(r->descents == 0);
    /* two results change places: the hash knows which input they belong to */
    const uint64_t before = r->hash;
    const float moved = s.got[77];
    assert_true(moved != s.got[99]);
    s.got[77] = s.got[99];
    s.got[99] = moved;
    compare(&s, N, 1);
    assert_true(r->hash != before);
}

/* Negative codes ascend as their numbers descend. */
static void test_descents_of_negative_numbers(void **state) {
    (void)state;
    fill(&s, 0xbf800000, 1);
    compare(&s, N, 1);
    assert_true(s.rows[AT_EXP2_normal].descents == 0);
    s.got[500] = nextafterf(s.got[499], 1); /* a smaller x, a larger result */
    compare(&s, N, 1);
    assert_true(s.rows[AT_EXP2_normal].descents == 1);
}

static void test_threads_and_chunks_do_not_matter(void **state) {
    (void)state;
    struct at_exp2_row want[AT_EXP2_CLASSES];
    fill(&s, 0, 21475);
    for (int64_t i = 0; i < N; i += 1009) /* equal errors in many places, so that the first of them must be chosen */
        s.got[i] = s.value[i] > 0x1p-100 && s.value[i] < 0x1p100 ? (float)(s.value[i] * (1 + 0x1p-20)) : s.got[i];
    s.got[200] = s.got[300] = s.got[100200] = 1.5f; /* equal errors again, in pieces of different threads */
    s.got[45000] = 3;                               /* the next chunk begins with a descent */
    compare(&s, N, 1);
    memcpy(want, s.rows, sizeof want);
    for (int threads = 1; threads <= 4; threads += 3)
        for (int64_t length = 45001; length < 2 * N; length += 150000) {
            compare(&s, length, threads);
            assert_memory_equal(want, s.rows, sizeof want);
        }
    const struct at_exp2_row *tiny = &s.rows[AT_EXP2_tiny];
    const double first = (double)of_code(code_at(&s, 200));
    assert_true(tiny->beyond_limit == 3 && tiny->first_bad_x == first && tiny->max_ulp_x == first);
    assert_true(sum_of(&s).descents > 50 && sum_of(&s).beyond_limit > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_nearest_does_not_trust_double),
        cmocka_unit_test(test_right_results),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_descents_of_negative_numbers),
        cmocka_unit_test(test_threads_and_chunks_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
