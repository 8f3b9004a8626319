/* The fast tier's vector loops against the plain code they repeat: the same bits, whatever the length and the values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "fast/vector.h"
#include "tests/support/attention_problem.h"

enum { LONGEST = 300, GUARD = 8 };
static const double guard = -12345.6789;

/* Lengths around every vector length, and some longer rows. */
static int64_t length(struct at_test_random *random) {
    return at_test_below(random, at_test_below(random, 4) ? 40 : LONGEST);
}

/* A score: mostly near the gate's range, now and then what is treated apart. */
static double any_score(struct at_test_random *random, int rarity) {
    static const double special[] = { 0.0, -0.0, 0x1p-1074, -0x1p-1060, 1e308, -1.7e308, INFINITY, -INFINITY, NAN };
    if (at_test_below(random, rarity) == 0)
        return special[at_test_below(random, sizeof special / sizeof special[0])];
    return at_test_normal(random) * 3;
}

static double any_of(struct at_test_random *random, int n, const double *values) {
    return values[at_test_below(random, n)];
}

static struct at_asynct_head any_head(struct at_test_random *random) {
    static const double sigma[] = { 0, 1, -0.5, 3, 0.7, 1e300 },
                        scale[] = { 1, 0.125, -0.25, 0.0883883461356163, 1e10 };
    static const double low[] = { 0, 0, -1, 0.25, 2 }, high[] = { 1, 1, 0.5, INFINITY, 1e-3 };
    struct at_asynct_head head = { .scale = any_of(random, 5, scale),
                                   .sigma = any_of(random, 6, sigma),
                                   .gamma = 1,
                                   .clip_min = any_of(random, 5, low),
                                   .clip_max = any_of(random, 5, high),
                                   .taps = 1 + at_test_below(random, at_test_below(random, 2) ? 4 : AT_ASYNCT_MAX_TAPS),
                                   .relu_pre = at_test_below(random, 2),
                                   .pooled = at_test_below(random, 2),
                                   .shrink = at_test_below(random, 2) };
    for (int j = 0; j < head.taps; j++)
        head.tap[j] = at_test_below(random, 4) ? at_test_normal(random) : 0.0;
    return head;
}

/* n values and a guard behind them. */
static double *room(int64_t n) {
    double *values = malloc((size_t)(n + GUARD) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n + GUARD; i++)
        values[i] = guard;
    return values;
}

static void assert_row(const char *what, int64_t n, const double *got, const double *want) {
    for (int64_t t = 0; t < n; t++)
        if (!(isnan(got[t]) && isnan(want[t])) && !(got[t] == want[t] && signbit(got[t]) == signbit(want[t])))
            fail_msg("%s[%lld] of %lld is %a, plain %a", what, (long long)t, (long long)n, got[t], want[t]);
    for (int64_t t = n; t < n + GUARD; t++)
        at_assert_true(got[t] == guard, "%s: wrote beyond its %lld elements", what, (long long)n);
}

/* Arrays of the plain and of the fast row. */
struct rows {
    double *dot, *s[2], *z[2], *p[2];
};

static struct rows rows_init(struct at_test_random *random, int64_t n, int rarity) {
    struct rows r = { .dot = room(n) };
    for (int i = 0; i < 2; i++) {
        r.s[i] = room(n);
        r.z[i] = room(n);
        r.p[i] = room(n);
    }
    for (int64_t t = 0; t < n; t++)
        r.dot[t] = any_score(random, rarity);
    return r;
}

static void rows_release(struct rows *r) {
    free(r->dot);
    for (int i = 0; i < 2; i++) {
        free(r->s[i]);
        free(r->z[i]);
        free(r->p[i]);
    }
}

static void test_gate(void **state) {
    (void)state;
    struct at_test_random random = { 11 };
    for (long i = 0; i < at_test_effort(10) * 4000; i++) {
        const struct at_asynct_head head = any_head(&random);
        const int64_t n = length(&random);
        struct rows r = rows_init(&random, n, i % 2 ? 12 : 1000);
        at_asynct_gate_row(&head, n, r.dot, r.s[0], r.z[0], r.p[0]);
        at_fast_gate_row(&head, n, r.dot, r.s[1], r.z[1], r.p[1]);
        assert_row("s", n, r.s[1], r.s[0]);
        assert_row("z", n, r.z[1], r.z[0]);
        assert_row("p", n, r.p[1], r.p[0]);
        at_fast_gate_row(&head, n, r.dot, r.s[1], r.z[1], r.dot);
        assert_row("z beside p in place", n, r.z[1], r.z[0]);
        assert_row("p in place of dot", n, r.dot, r.p[0]);
        rows_release(&r);
    }
}

static void assert_same_row(const struct at_softmax_row *got, const struct at_softmax_row *want) {
    at_assert_true(got->n == want->n && got->max == want->max, "n %lld max %a, plain %lld and %a", (long long)got->n,
                   got->max, (long long)want->n, want->max);
    at_assert_same(got->sum, want->sum);
    at_assert_same(got->lse, want->lse);
}

static void test_weights(void **state) {
    (void)state;
    static const double scales[] = { 1, 0.125, -0.25, 0.0883883461356163, 40 };
    struct at_test_random random = { 12 };
    for (long i = 0; i < at_test_effort(10) * 2000; i++) {
        const int64_t n = length(&random);
        const struct at_softmax_form form = { .scale = any_of(&random, 5, scales),
                                              .cap = i % 3 == 0 ? 7.5 : 0,
                                              .slope = i % 7 == 0 ? 0.25 : 0,
                                              .place = (double)(n - 1) };
        struct rows r = rows_init(&random, n, i % 2 ? 12 : 1000);
        struct at_softmax_row plain, fast;
        for (int64_t t = 0; i % 5 == 0 && t < n; t++) /* zeros of both signs are the maximum; or nothing but -inf */
            r.dot[t] = i % 10 ? -INFINITY : t % 3 ? -0.0 : 0.0;
        at_softmax_weights(n, &form, r.dot, r.s[0], r.p[0], &plain);
        at_fast_weight_row(n, &form, r.dot, r.s[1], r.p[1], &fast);
        assert_same_row(&fast, &plain);
        assert_row("s", n, r.s[1], r.s[0]);
        assert_row("p", n, r.p[1], r.p[0]);
        at_fast_weight_row(n, &form, r.dot, r.s[1], r.dot, &fast);
        assert_same_row(&fast, &plain);
        assert_row("p in place of dot", n, r.dot, r.p[0]);
        rows_release(&r);
    }
}

/* Every code of the 16-bit formats; of the others every combination of the topmost and of the lowest bits. */
static void test_decode(void **state) {
    (void)state;
    static const enum at_format formats[] = { AT_BF16, AT_F16, AT_F32, AT_F64, AT_E4M3 };
    enum { CODES = 1 << 16 };
    char *codes = malloc(8 * (size_t)CODES); /* of the widest format */
    double *want = room(CODES), *got = room(CODES);
    assert_non_null(codes);
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        const int bits = 8 * (int)at_format_info(formats[f])->bytes;
        for (uint64_t i = 0; i < CODES; i++)
            at_store_code(formats[f], codes, i, bits <= 16 ? i : i >> 4 << (bits - 12) | (i & 15));
        at_decode_array(formats[f], CODES, codes, want);
        at_fast_decode(formats[f], CODES, codes, got);
        assert_row(at_format_info(formats[f])->name, CODES, got, want);
        for (int64_t n = 0; n < 40; n++) { /* short rows, from any element */
            double *row = room(n);
            const int64_t first = n * 1009;
            at_fast_decode(formats[f], n, codes + first * at_format_info(formats[f])->bytes, row);
            assert_row("short row", n, row, want + first);
            free(row);
        }
    }
    free(codes);
    free(want);
    free(got);
}

static void test_all_finite(void **state) {
    (void)state;
    static const double bad[] = { NAN, INFINITY, -INFINITY };
    double values[40];
    for (int64_t n = 0; n <= 40; n++) {
        for (int i = 0; i < 40; i++)
            values[i] = i % 2 ? 1.7e308 : -0x1p-1074;
        at_assert_true(at_fast_all_finite(n, values), "%lld finite values", (long long)n);
        for (int i = 0; i < 3 * 40; i++) {
            const double good = values[i / 3];
            values[i / 3] = bad[i % 3];
            at_assert_true(at_fast_all_finite(n, values) == (i / 3 >= n), "%g at %d of %lld", bad[i % 3], i / 3,
                           (long long)n);
            values[i / 3] = good;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_all_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
