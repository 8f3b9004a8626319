/* Rows that a recording counts: exact products against MPFR, codes against at_encode(), ledgers, masks and masses
 * against plain loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpfr.h>

#include "fast/score_rows.h"
#include "tests/at_test.h"
#include "tests/support/splitmix.h"

static double uniform(struct splitmix *random) {
    return (double)(int64_t)(splitmix_next(random) >> 11) * 0x1p-53 - 0.5;
}

/* ---- products ---- */

enum { ROWS = 23, KEYS = 41, MAX_D = 130 };

struct operands {
    int64_t d;
    double q[ROWS * MAX_D], k[KEYS * MAX_D];
    int32_t q_span[ROWS], k_span[KEYS];
};

static void fill(struct operands *x, enum at_format format, int64_t d, int range, uint64_t seed) {
    struct splitmix random = { seed };
    x->d = d;
    for (int64_t i = 0; i < ROWS * d; i++)
        x->q[i] = at_round(format, ldexp(uniform(&random), (int)(splitmix_next(&random) % (uint64_t)range)));
    for (int64_t i = 0; i < KEYS * d; i++)
        x->k[i] = at_round(format, ldexp(uniform(&random), (int)(splitmix_next(&random) % (uint64_t)range)));
    at_fast_spans(ROWS, d, x->q, x->q_span);
    at_fast_spans(KEYS, d, x->k, x->k_span);
}

static void multiply(const struct operands *x, int narrow, int use_blas, double (*out)[ROWS * KEYS]) {
    static double scratch[48 * MAX_D];
    assert_true(at_fast_lanes(KEYS) <= 48);
    const struct at_fast_product product = { .rows = ROWS,
                                             .keys = KEYS,
                                             .d = x->d,
                                             .q = x->q,
                                             .k = x->k,
                                             .q_span = x->q_span,
                                             .k_span = x->k_span,
                                             .narrow = narrow,
                                             .scratch = scratch,
                                             .out = *out,
                                             .stride = KEYS,
                                             .use_blas = use_blas };
    at_fast_product(&product);
}

/* The exact dot product and the sum of its terms' magnitudes, each rounded once. */
static double exact(const double *q, const double *k, int64_t d, double *size) {
    mpfr_t sum, all, term;
    mpfr_inits2(2500, sum, all, term, (mpfr_ptr)NULL);
    mpfr_set_zero(sum, 1);
    mpfr_set_zero(all, 1);
    for (int64_t c = 0; c < d; c++) {
        mpfr_set_d(term, q[c], MPFR_RNDN);
        mpfr_mul_d(term, term, k[c], MPFR_RNDN);
        mpfr_add(sum, sum, term, MPFR_RNDN);
        mpfr_abs(term, term, MPFR_RNDN);
        mpfr_add(all, all, term, MPFR_RNDN);
    }
    const double value = mpfr_get_d(sum, MPFR_RNDN);
    *size = mpfr_get_d(all, MPFR_RNDN);
    mpfr_clears(sum, all, term, (mpfr_ptr)NULL);
    return value;
}

/* BLAS or not, the bits are the same; equal to the exact value where the spans say so, and elsewhere as good as a sum
 * in twice the precision that is rounded once. *by_blas counts the pairs the spans let pass. */
static void check_products(enum at_format format, int64_t d, int range, uint64_t seed, long *by_blas, long *others) {
    static struct operands x;
    static double blas[ROWS * KEYS], plain[ROWS * KEYS];
    fill(&x, format, d, range, seed);
    multiply(&x, format != AT_F64, 1, &blas);
    multiply(&x, format != AT_F64, 0, &plain);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t t = 0; t < KEYS; t++) {
            double size;
            const double want = exact(x.q + i * d, x.k + t * d, d, &size), got = blas[i * KEYS + t];
            const int passes = x.q_span[i] + x.k_span[t] <= at_fast_exact_span(d);
            at_assert_same(got, plain[i * KEYS + t]);
            if (passes)
                at_assert_true(got == want, "%a is not the exact %a", got, want);
            else
                at_assert_within(got, want, 0x1p-53 * fabs(want) + (double)(d * d) * 0x1p-104 * size);
            *by_blas += passes;
            *others += !passes;
        }
}

static void test_products(void **state) {
    (void)state;
    const enum at_format formats[] = { AT_F16, AT_BF16, AT_F32, AT_F64 };
    const int64_t sizes[] = { 1, 3, 16, 64, 128 };
    for (int f = 0; f < 4; f++) {
        long by_blas = 0, others = 0;
        for (int s = 0; s < 5; s++)
            for (int range = 1; range <= 17; range += 8)
                for (long seed = 0; seed < at_test_effort(3); seed++)
                    check_products(formats[f], sizes[s], range, (uint64_t)(100 * s + range) + (uint64_t)seed, &by_blas,
                                   &others);
        print_message("%s: %ld pairs exact by their spans, %ld compensated\n", at_format_info(formats[f])->name,
                      by_blas, others);
        assert_true(others > 0);
        assert_true(by_blas > 0 || f >= 2); /* long significands seldom fit */
    }
}

/* The largest spans that pass: terms of the highest and of the lowest bit, whose sum needs all 53. One more bit, and
 * the row is refused. */
static void test_span_edge(void **state) {
    (void)state;
    for (int64_t d = 1; d <= 128; d *= 2) {
        const int limit = at_fast_exact_span(d);
        static struct operands x;
        static double out[ROWS * KEYS];
        for (int64_t i = 0; i < ROWS * d; i++)
            x.q[i] = ldexp(1, limit / 2 + 1) - 1; /* span limit / 2: all bits set */
        for (int64_t i = 0; i < KEYS * d; i++)
            x.k[i] = ldexp(1, limit - limit / 2 + 1) - 1;
        x.d = d;
        at_fast_spans(ROWS, d, x.q, x.q_span);
        at_fast_spans(KEYS, d, x.k, x.k_span);
        assert_int_equal(x.q_span[0] + x.k_span[0], limit);
        multiply(&x, 0, 1, &out);
        double size;
        const double want = exact(x.q, x.k, d, &size);
        assert_true(want < 0x1p53 && want >= 0x1p51);
        for (int i = 0; i < ROWS * KEYS; i++)
            assert_true(out[i] == want);
    }
}

static void test_spans(void **state) {
    (void)state;
    const struct {
        double x[3];
        int32_t span;
    } rows[] = {
        { { 0, 0, -0.0 }, 0 },
        { { 1, 0, 0 }, 0 },
        { { -8, 1, 0 }, 3 },
        { { 3, 0, 0 }, 1 },
        { { 1 + 0x1p-52, 0, 0 }, 52 },
        { { 0x1p-1074, 0x1p-1070, 0 }, AT_FAST_FAR },
        { { 1, (double)INFINITY, 0 }, AT_FAST_NOT_FINITE },
        { { (double)NAN, 0, 0 }, AT_FAST_NOT_FINITE },
        { { 0x1p100, 0x1p-100, 0 }, 200 },
        { { 0x1p400, 0, 0 }, 0 },
        { { 0x1p401, 0, 0 }, AT_FAST_FAR },
        { { 0x1p-500, 0, 0 }, 0 },
        { { 0x1p-501, 1, 0 }, AT_FAST_FAR },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int32_t span;
        at_fast_spans(1, 3, rows[i].x, &span);
        assert_int_equal(span, rows[i].span);
    }
}

/* Sums that leave the range of double in one order and not in another: the order is always the same. */
static void test_far(void **state) {
    (void)state;
    static struct operands x;
    static double blas[ROWS * KEYS], plain[ROWS * KEYS];
    for (int round = 0; round < 2; round++) {
        fill(&x, AT_BF16, 20, 2, 5);
        for (int i = 0; i < ROWS * 20; i++)
            x.q[i] = ldexp(x.q[i], round ? 512 : -530);
        for (int i = 0; i < KEYS * 20; i++)
            x.k[i] = ldexp(x.k[i], round ? 512 : -530);
        at_fast_spans(ROWS, 20, x.q, x.q_span);
        at_fast_spans(KEYS, 20, x.k, x.k_span);
        multiply(&x, 0, 1, &blas);
        multiply(&x, 0, 0, &plain);
        for (int i = 0; i < ROWS * KEYS; i++)
            at_assert_same(blas[i], plain[i]);
    }
}

/* Rows that are not finite meet each other plainly, and no other pair. */
static void test_not_finite(void **state) {
    (void)state;
    static struct operands x;
    static double clean[ROWS * KEYS], out[ROWS * KEYS];
    for (int narrow = 0; narrow < 2; narrow++) {
        fill(&x, AT_F16, 20, 3, 5);
        multiply(&x, narrow, 1, &clean);
        x.q[3 * 20 + 7] = (double)INFINITY;
        x.k[5 * 20 + 9] = (double)NAN;
        x.k[6 * 20 + 7] = 0;
        at_fast_spans(ROWS, 20, x.q, x.q_span);
        at_fast_spans(KEYS, 20, x.k, x.k_span);
        multiply(&x, narrow, 1, &out);
        for (int i = 0; i < ROWS; i++)
            for (int t = 0; t < KEYS; t++) {
                double sum = 0;
                for (int c = 0; c < 20; c++)
                    sum += x.q[i * 20 + c] * x.k[t * 20 + c];
                if (i == 3 || t == 5)
                    at_assert_same(out[i * KEYS + t], sum);
                else if (t != 6)
                    at_assert_same(out[i * KEYS + t], clean[i * KEYS + t]);
            }
        assert_true(isnan(out[3 * KEYS + 6])); /* inf * 0 */
    }
}

/* ---- codes ---- */

static void check_slots(enum at_format format, int n, const double *x) {
    struct at_fast_codes codes;
    uint32_t slots[512];
    const int top = format == AT_F16 ? 0x7c00 : 0x7f80;
    at_fast_codes_init(format, &codes);
    at_fast_slots(&codes, n, x, slots);
    for (int i = 0; i < n; i++) {
        const int code = (int)at_encode(format, x[i]);
        uint32_t want = (uint32_t)(code & 0x8000 ? top - (code & 0x7fff) : top + 1 + code);
        if (isnan(x[i]))
            want = (uint32_t)(2 * top + 2);
        else if (isfinite(x[i]) && (code & 0x7fff) == top)
            want = (uint32_t)(2 * top + (x[i] < 0 ? 4 : 3));
        at_assert_true(slots[i] == want, "%s: %a has slot %u, wanted %u", at_format_info(format)->name, x[i], slots[i],
                       want);
    }
}

/* Every code, its neighbours in double, and the middle to the next with its neighbours; then any bits at all. */
static void test_slots(void **state) {
    (void)state;
    const enum at_format formats[] = { AT_F16, AT_BF16 };
    struct splitmix random = { 3 };
    for (int f = 0; f < 2; f++) {
        for (int code = 0; code < 65536; code++) {
            const double here = at_decode(formats[f], (uint64_t)code);
            const double next = at_decode(formats[f], (uint64_t)(code & 0x8000) | (uint64_t)((code + 1) & 0x7fff));
            const double middle = here / 2 + next / 2;
            const double x[] = { here,   nextafter(here, 1e300),   nextafter(here, -1e300),
                                 middle, nextafter(middle, 1e300), nextafter(middle, -1e300) };
            check_slots(formats[f], 6, x);
        }
        const double ends[] = {
            65504,       65519.999999999, 65520,     -65520,  1e300,    -1e300, (double)INFINITY, -(double)INFINITY,
            (double)NAN, -(double)NAN,    0x1p-1074, 0x1p-25, 0x1.8p-25
        };
        check_slots(formats[f], 13, ends);
        for (long i = 0; i < 200 * at_test_effort(50); i++) {
            double x[301];
            for (int j = 0; j < 301; j++) {
                const uint64_t bits = splitmix_next(&random);
                memcpy(&x[j], &bits, sizeof bits);
                if (j % 2)
                    x[j] = ldexp(uniform(&random), (int)(bits % 60) - 40);
            }
            check_slots(formats[f], (int)(i % 302), x);
        }
    }
}

static void test_count(void **state) {
    (void)state;
    uint32_t slots[103], counts[8] = { 0 };
    for (uint32_t i = 0; i < 103; i++)
        slots[i] = i % 3 ? 5 : i % 8;
    at_fast_count(103, slots, counts);
    for (uint32_t s = 0; s < 8; s++) {
        uint32_t want = 0;
        for (int i = 0; i < 103; i++)
            want += slots[i] == s;
        assert_int_equal(counts[s], want);
    }
}

/* ---- ledger, masks, masses ---- */

static void test_ledger(void **state) {
    (void)state;
    const double special[] = { 65504, 65505,   65520,   -65520,  1e9,       (double)INFINITY, (double)NAN, 0,
                               -0.0,  0x1p-14, 0x1p-15, 0x1p-25, 0x1.1p-25, 0x1p-30,          -0x1p-1074 };
    struct splitmix random = { 4 };
    for (int round = 0; round < 400; round++) {
        const int n = (int)(splitmix_next(&random) % 50), step_k = round % 2;
        struct at_ledger want;
        struct at_ledger_row got = { 0 };
        double x[50];
        at_ledger_init(&want);
        const struct at_place first = { 1, 2, 3, step_k ? 0 : -1, -1 };
        for (int part = 0; part < 2; part++) {
            for (int i = 0; i < n; i++) {
                struct at_place place = first;
                place.k += step_k ? i : 0;
                x[i] = uniform(&random) * 100;
                if (round % 4 && splitmix_next(&random) % 8 == 0)
                    x[i] = special[splitmix_next(&random) % (round % 4 == 1 ? 15 : 1)];
                if (round % 4 == 2 && i % 3 == 0)
                    x[i] = special[7 + splitmix_next(&random) % 8];
                at_ledger_note(&want, AT_STAGE_p, x[i], &place);
            }
            at_fast_ledger_row(n, x, &first, step_k, &got);
        }
        const struct at_ledger_row *w = &want.stage[AT_STAGE_p];
        assert_int_equal(got.count, w->count);
        assert_int_equal(got.zero, w->zero);
        assert_int_equal(got.nan, w->nan);
        assert_int_equal(got.inf, w->inf);
        assert_int_equal(got.above_65504, w->above_65504);
        assert_int_equal(got.to_inf, w->to_inf);
        assert_int_equal(got.subnormal, w->subnormal);
        assert_int_equal(got.flushed, w->flushed);
        at_assert_same(got.max_abs, w->max_abs);
        assert_int_equal(got.has_first, w->has_first);
        if (w->has_first)
            assert_int_equal(at_place_compare(&got.first, &w->first), 0);
    }
}

static void test_masks(void **state) {
    (void)state;
    struct splitmix random = { 6 };
    static double p[2100];
    static uint16_t mask[140];
    for (int64_t n = 0; n <= 2100; n += n < 70 ? 1 : 203) {
        for (int64_t t = 0; t < n; t++)
            p[t] = splitmix_next(&random) % 3 ? 0 : t % 11 == 0 ? (double)NAN : 0.5;
        at_fast_mask_row(n, p, mask);
        for (int64_t t = 0; t < (n + 15) / 16 * 16; t++)
            assert_int_equal(mask[t / 16] >> t % 16 & 1, t < n && p[t] != 0);
    }
}

static void test_mass(void **state) {
    (void)state;
    struct splitmix random = { 8 };
    double p[100];
    for (int n = 0; n <= 100; n++) {
        uint64_t want = 0;
        for (int t = 0; t < n; t++) {
            p[t] = t % 5 == 0 ? 0x1p26 * uniform(&random) : t % 5 == 1 ? 1.5 * 0x1p-24 : uniform(&random);
            want += (uint64_t)nearbyintl(fabsl((long double)p[t]) * 16777216);
        }
        assert_true(at_fast_mass_fits(n, p));
        assert_true(at_fast_mass(n, p) == want);
    }
    p[17] = (double)NAN;
    assert_false(at_fast_mass_fits(100, p));
    p[17] = -0x1.1p26;
    assert_false(at_fast_mass_fits(100, p));
}

/* Ascending sums by fma, over the keys of the mask alone. */
static void test_weigh(void **state) {
    (void)state;
    enum { N = 50, D = 77 };
    struct splitmix random = { 10 };
    static double w[N], v[N * D], o[D], want[D];
    uint16_t mask[4];
    for (int d = 1; d <= D; d++) {
        for (int t = 0; t < N; t++)
            w[t] = uniform(&random);
        for (int i = 0; i < N * d; i++)
            v[i] = uniform(&random);
        for (int i = 0; i < 4; i++)
            mask[i] = (uint16_t)splitmix_next(&random);
        mask[3] &= 3;
        for (int c = 0; c < d; c++)
            o[c] = want[c] = uniform(&random);
        for (int t = 0; t < N; t++)
            for (int c = 0; c < d && mask[t / 16] >> t % 16 & 1; c++)
                want[c] = fma(w[t], v[t * d + c], want[c]);
        at_fast_weigh_values(N, d, w, mask, v, o);
        for (int c = 0; c < d; c++)
            at_assert_same(o[c], want[c]);
    }
}

static void test_scale(void **state) {
    (void)state;
    struct splitmix random = { 12 };
    double dot[60], s[60];
    int has_nan;
    for (int n = 0; n <= 60; n++) {
        double most = -(double)INFINITY;
        for (int t = 0; t < n; t++) {
            dot[t] = n % 4 == 3 && t % 7 == 2 ? (double)NAN : uniform(&random) - 1;
            most = 0.3 * dot[t] > most ? 0.3 * dot[t] : most;
        }
        at_assert_same(at_fast_scale_row(n, 0.3, dot, s, &has_nan), most);
        assert_int_equal(has_nan, n % 4 == 3 && n > 2);
        for (int t = 0; t < n; t++)
            at_assert_same(s[t], 0.3 * dot[t]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_span_edge),  cmocka_unit_test(test_spans),
        cmocka_unit_test(test_far),      cmocka_unit_test(test_not_finite), cmocka_unit_test(test_slots),
        cmocka_unit_test(test_count),    cmocka_unit_test(test_ledger),     cmocka_unit_test(test_masks),
        cmocka_unit_test(test_mass),     cmocka_unit_test(test_weigh),      cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
