/* Data families: each shows what its description says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"
#include "tests/support/built_case.h"

struct facts {
    double least, most, mean, square, largest;
    int64_t n, nan, plus, minus, zero;
};

static struct facts facts_of(const struct at_tensor *x, int64_t first, int64_t n) {
    struct facts f = { .least = INFINITY, .most = -INFINITY, .n = n };
    for (int64_t i = first; i < first + n; i++) {
        double v = at_tensor_get(x, i);
        f.nan += isnan(v) != 0;
        f.plus += v == INFINITY;
        f.minus += v == -INFINITY;
        f.zero += v == 0;
        if (!isfinite(v))
            continue;
        f.least = v < f.least ? v : f.least;
        f.most = v > f.most ? v : f.most;
        f.largest = fabs(v) > f.largest ? fabs(v) : f.largest;
        f.mean += v / (double)n;
        f.square += v * v / (double)n;
    }
    return f;
}

static struct facts all(const struct at_tensor *x) { return facts_of(x, 0, at_tensor_count(x)); }

static void test_distributions(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("asynct_decode b=2 sk=500 d=64 dtype=f32 data=normal");
    struct facts f = all(at_built_tensor(&built, "k")), g = all(at_built_tensor(&built, "v"));
    at_assert_within(f.mean, 0, 0.01);
    at_assert_within(f.square, 1, 0.015);
    assert_true(f.largest > 4 && f.largest < 6.8 && fabs(f.mean - g.mean) > 0);
    at_drop_case(&built);
    built = at_build_line("asynct_decode b=2 sk=500 d=64 dtype=f32 data=uniform");
    f = all(at_built_tensor(&built, "v"));
    at_assert_within(f.square, 1, 0.01);
    assert_true(f.largest > 1.73 && f.largest <= 1.7321);
    at_drop_case(&built);
    built = at_build_line("asynct_decode b=2 sk=500 d=64 dtype=f32 data=same_sign");
    f = all(at_built_tensor(&built, "v"));
    assert_true(f.least >= 0.5 && f.most <= 1.5);
    at_assert_within(f.mean, 1, 0.01);
    at_drop_case(&built);
    built = at_build_line("asynct_decode b=2 sk=500 d=64 dtype=f32 data=heavy_tail");
    f = all(at_built_tensor(&built, "k"));
    assert_true(f.largest > 50 && f.largest <= 128 && f.nan == 0);
    at_drop_case(&built);
    built = at_build_line("asynct_decode b=2 sk=500 d=64 dtype=f16 data=subnormal");
    f = all(at_built_tensor(&built, "v"));
    assert_true(f.largest < 0x1p-14 && f.largest > 0x1p-17 && f.zero < f.n / 10);
    at_drop_case(&built);
    built = at_build_line("asynct_decode b=2 sk=500 d=64 dtype=bf16 data=subnormal");
    f = all(at_built_tensor(&built, "v"));
    assert_true(f.largest < 0x1p-126 && f.largest > 0x1p-130 && f.zero < f.n / 2);
    at_drop_case(&built);
}

static void test_outlier_channels(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("asynct_decode h=2 hk=1 sk=500 d=64 data=outlier_channel");
    int outliers = 0;
    for (int64_t c = 0; c < 64; c++) {
        double square = 0;
        for (int64_t t = 0; t < 500; t++)
            square += pow(at_tensor_get(at_built_tensor(&built, "k"), t * 64 + c), 2) / 500;
        outliers += square > 150;
        assert_true(square > 150 || square < 1.5);
    }
    assert_in_range(outliers, 1, 2);
    at_drop_case(&built);
}

/* Unscaled scores: the largest, and how many are beyond f16's rounding to infinity. Partial sums in f16 order too. */
static void scores(const struct at_built_case *built, double *largest, double *partial, int64_t *beyond, int64_t *n) {
    *largest = *partial = 0;
    *beyond = *n = 0;
    for (int64_t row = 0; row < at_attn_rows(&built->data.problem); row++) {
        struct at_attn_row at = at_attn_row(&built->data.problem, row);
        for (int64_t t = 0; t < at.visible; t++, ++*n) {
            double sum = 0;
            for (int64_t c = 0; c < built->data.problem.sizes.d; c++) {
                sum += at_built_q(built, row, c) * at_built_kv(built, AT_ATTN_K, at, t, c);
                *partial = fabs(sum) > *partial ? fabs(sum) : *partial;
            }
            *largest = fabs(sum) > *largest ? fabs(sum) : *largest;
            *beyond += fabs(sum) >= 65520;
        }
    }
}

static void test_ends_of_f16(void **state) {
    (void)state;
    static const char *const dtypes[] = { "f16", "bf16" };
    for (int i = 0; i < 4; i++) {
        char line[128];
        double largest, partial;
        int64_t beyond, n;
        snprintf(line, sizeof line, "asynct_decode b=2 h=4 hk=2 sk=200 d=%d dtype=%s data=near_65504", 32 << i,
                 dtypes[i % 2]);
        struct at_built_case built = at_build_line(line);
        scores(&built, &largest, &partial, &beyond, &n);
        at_assert_true(largest > 0.94 * 65504 && partial <= 65504 && beyond == 0, "%s: %g %g", line, largest, partial);
        at_drop_case(&built);
        snprintf(line, sizeof line, "softmax_decode b=2 h=4 hk=2 sk=200 d=%d dtype=%s data=overflow", 32 << i,
                 dtypes[i % 2]);
        built = at_build_line(line);
        scores(&built, &largest, &partial, &beyond, &n);
        at_assert_within((double)beyond / (double)n, 0.25, 0.01);
        assert_true(largest < 4.2 * 65504 && all(at_built_tensor(&built, "k")).largest < 65504);
        at_drop_case(&built);
    }
}

static void test_cancelling(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("asynct_decode h=2 hk=1 sk=100 d=128 data=cancel dtype=f32");
    double magnitude = 0, size = 0;
    for (int64_t t = 0; t < 100; t++) {
        struct at_attn_row at = at_attn_row(&built.data.problem, 0);
        size += fabs(at_built_dot(&built, 0, t, AT_TEST_FORWARD, AT_F64));
        for (int64_t c = 0; c < 128; c++)
            magnitude += fabs(at_built_q(&built, 0, c) * at_built_kv(&built, AT_ATTN_K, at, t, c));
    }
    at_assert_true(magnitude > 200 * size, "sum |q||k| is %g times |q.k|", magnitude / size);
    at_drop_case(&built);
}

/* Keys of a kv head are one and the same; in the even channels V is small or has its negative beside it, and is far larger;
 * every fourth channel is subnormal, with some of its values more than a few units. */
static void test_swamped(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("softmax_decode b=2 h=2 hk=1 sk=90/31 d=32 data=swamped dtype=f16");
    const struct at_attn_row at = at_attn_row(&built.data.problem, 0);
    double largest = 0, small = 0, subnormal = 0;
    for (int64_t t = 0; t < 90; t++)
        for (int64_t c = 0; c < 32; c++) {
            const double v = at_built_kv(&built, AT_ATTN_V, at, t, c);
            assert_true(at_built_kv(&built, AT_ATTN_K, at, t, c) == at_built_kv(&built, AT_ATTN_K, at, 0, c));
            assert_true(isfinite(v));
            if (t >= 6 && t % 3 == 2 && c % 2 == 0)
                assert_true(v == -at_built_kv(&built, AT_ATTN_V, at, t - 1, c));
            if (c % 4 == 3)
                subnormal = fmax(subnormal, fabs(v));
            else if (t % 3 == 0 || t < 6 || c % 2)
                small = fmax(small, fabs(v));
            else
                largest = fmax(largest, fabs(v));
        }
    at_assert_true(subnormal > 0x1p-18 && subnormal < 0x1p-14, "largest subnormal %g", subnormal);
    at_assert_true(small < 6 && largest > 1000 * small && largest < 65504, "%g beside %g", largest, small);
    at_drop_case(&built);
}

/* Share of p that the exact gate makes 0, over the problem. */
static double zero_share(const struct at_built_case *built) {
    int64_t zeros = 0, n = 0;
    for (int64_t row = 0; row < at_attn_rows(&built->data.problem); row++) {
        struct at_attn_row at = at_attn_row(&built->data.problem, row);
        double *dots = malloc((size_t)(2 * at.visible + 1) * sizeof *dots);
        assert_non_null(dots);
        for (int64_t t = 0; t < at.visible; t++)
            dots[t] = at_built_dot(built, row, t, AT_TEST_FORWARD, AT_F64);
        at_built_gate(built, at.head, at.visible, dots, 0, dots + at.visible);
        for (int64_t t = 0; t < at.visible; t++, n++)
            zeros += dots[at.visible + t] == 0;
        free(dots);
    }
    return (double)zeros / (double)n;
}

static void test_masks(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("asynct_decode b=2 h=4 hk=2 sk=500 d=64 data=sparse70");
    at_assert_within(zero_share(&built), 0.70, 0.01);
    at_drop_case(&built);
    built = at_build_line("asynct_decode b=2 h=4 hk=2 sk=500 d=128 data=sparse70 dtype=f16");
    at_assert_within(zero_share(&built), 0.70, 0.01);
    at_drop_case(&built);
    built = at_build_line("asynct_prefill b=2 h=4 hk=2 sq=20 d=64 data=all_masked");
    at_assert_same(zero_share(&built), 1.0);
    at_drop_case(&built);
    static const char *const lines[] = { "softmax_decode h=4 hk=2 sk=200 d=64 data=all_masked",
                                         "softmax_decode h=4 hk=2 sk=200 d=64 data=sparse70" };
    for (int line = 0; line < 2; line++) {
        built = at_build_line(lines[line]);
        int64_t low = 0;
        for (int64_t t = 0; t < 200; t++)
            low += at_built_dot(&built, 3, t, AT_TEST_FORWARD, AT_F64) * (double)built.data.problem.params.scale <
                   (line ? -746 : -500);
        assert_int_equal(low, line ? 140 : 200);
        at_drop_case(&built);
    }
}

static void test_sink(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("softmax_prefill b=2 h=4 hk=2 sq=30 d=64 data=sink");
    for (int64_t row = 0; row < at_attn_rows(&built.data.problem); row++) {
        double first = at_built_dot(&built, row, 0, AT_TEST_FORWARD, AT_F64) * (double)built.data.problem.params.scale;
        at_assert_true(first > 4 && first < 20, "row %lld: key 0 scores %g", (long long)row, first);
    }
    at_drop_case(&built);
}

/* Many p half-way between neighbours of the narrow format. */
static void test_ties(void **state) {
    (void)state;
    static const char *const dtypes[] = { "bf16", "f16" };
    static const enum at_format formats[] = { AT_BF16, AT_F16 };
    for (int i = 0; i < 2; i++) {
        char line[128];
        snprintf(line, sizeof line, "asynct_decode b=2 h=4 hk=2 sk=300 d=64 data=ties dtype=%s", dtypes[i]);
        struct at_built_case built = at_build_line(line);
        int64_t ties = 0, inside = 0;
        double dots[300], p[300];
        for (int64_t row = 0; row < at_attn_rows(&built.data.problem); row++) {
            for (int64_t t = 0; t < 300; t++)
                dots[t] = at_built_dot(&built, row, t, AT_TEST_FORWARD, AT_F64);
            at_built_gate(&built, row % 4, 300, dots, 0, p);
            for (int64_t t = 0; t < 300; t++) {
                double ulp = at_ulp(formats[i], p[t]);
                inside += p[t] > 0 && p[t] < 1;
                ties += p[t] > 0 && fabs(fmod(p[t], ulp)) == ulp / 2;
            }
        }
        at_assert_true(inside > 200 && ties * 20 > inside, "%s: %lld ties of %lld", line, (long long)ties,
                       (long long)inside);
        at_drop_case(&built);
    }
}

static void test_nonfinite(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("asynct_decode b=3 h=4 hk=2 sk=600 d=64 data=nonfinite");
    for (int which = AT_ATTN_K; which <= AT_ATTN_V; which++) {
        const struct at_tensor *x = &built.data.problem.tensors[which];
        struct facts clean = facts_of(x, 0, 600 * 2 * 64), rest = facts_of(x, 600 * 2 * 64, 1200 * 2 * 64);
        assert_true(clean.nan == 0 && clean.plus == 0 && clean.minus == 0);
        assert_true(rest.nan > 0 && rest.plus > 0 && rest.minus > 0);
        at_assert_within((double)(rest.nan + rest.plus + rest.minus), 2400 / 32.0, 30);
    }
    at_drop_case(&built);
    built = at_build_line("rms_norm tokens=40 channels=32 data=nonfinite");
    struct facts f = all(at_built_tensor(&built, "x"));
    assert_int_equal(f.nan + f.plus + f.minus, 5);
    at_drop_case(&built);
}

static void test_random_bits(void **state) {
    (void)state;
    static const char *const dtypes[] = { "f16", "bf16", "f32" };
    for (int i = 0; i < 3; i++) {
        char line[128];
        int seen[80] = { 0 }, exponents = 0;
        snprintf(line, sizeof line, "asynct_decode b=2 h=4 hk=2 sk=300 d=64 data=random_bits dtype=%s", dtypes[i]);
        struct at_built_case built = at_build_line(line);
        const struct at_tensor *x = at_built_tensor(&built, "v");
        struct facts f = all(x);
        assert_true(f.nan == 0 && f.plus == 0 && f.minus == 0 && f.largest <= 65536);
        for (int64_t k = 0; k < at_tensor_count(x); k++)
            if (at_tensor_get(x, k) != 0)
                seen[40 + ilogb(at_tensor_get(x, k))] = 1;
        for (int e = 0; e < 80; e++)
            exponents += seen[e];
        at_assert_true(exponents >= 30 && exponents <= 40, "%s: %d exponents", line, exponents);
        at_drop_case(&built);
    }
}

/* A chain of f32 additions over V of the open keys loses nearly n u, which random values never do. */
static void test_adversarial(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("asynct_decode h=2 hk=1 sk=600 d=64 data=adversarial dtype=bf16");
    struct at_attn_row at = at_attn_row(&built.data.problem, 0);
    float sum = 0;
    double exact = 0, p[600], dots[600];
    int64_t n = 0;
    for (int64_t t = 0; t < 600; t++)
        dots[t] = at_built_dot(&built, 0, t, AT_TEST_FORWARD, AT_F64);
    at_built_gate(&built, 0, 600, dots, 0, p);
    for (int64_t t = 0; t < 600; t++) {
        sum += (float)(p[t] * at_built_kv(&built, AT_ATTN_V, at, t, 0));
        exact += p[t] * at_built_kv(&built, AT_ATTN_V, at, t, 0);
        n += p[t] != 0;
    }
    assert_int_equal(n, 200);
    at_assert_true((double)sum - exact > 0.6 * (double)n * 0x1p-24, "%g of n u",
                   ((double)sum - exact) / (double)n * 0x1p24);
    at_drop_case(&built);
}

static void test_norm_families(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("add_uclip_norm tokens=20 channels=64 data=ties dtype=bf16");
    for (int64_t i = 0; i < 20 * 64; i++) {
        double sum = at_tensor_get(at_built_tensor(&built, "x"), i) + at_tensor_get(at_built_tensor(&built, "res"), i);
        /* below 1 the steps are half as long, and the sum is one of them */
        at_assert_same(fabs(sum - at_round(AT_BF16, sum)), sum < 1 ? 0 : at_ulp(AT_BF16, sum) / 2);
    }
    at_drop_case(&built);
    built = at_build_line("add_rms_norm tokens=20 channels=64 data=near_65504 dtype=f16");
    for (int64_t i = 0; i < 20 * 64; i++) {
        double sum = at_tensor_get(at_built_tensor(&built, "x"), i) + at_tensor_get(at_built_tensor(&built, "res"), i);
        assert_true(fabs(sum) > 0.9 * 65504 && fabs(sum) <= 65504);
    }
    at_drop_case(&built);
    built = at_build_line("add_uclip_norm tokens=20 channels=64 data=overflow dtype=f16");
    int64_t beyond = 0;
    for (int64_t i = 0; i < 20 * 64; i++)
        beyond += fabs(at_tensor_get(at_built_tensor(&built, "x"), i) +
                       at_tensor_get(at_built_tensor(&built, "res"), i)) >= 65520;
    assert_int_equal(beyond, 20 * 16);
    at_drop_case(&built);
    built = at_build_line("add_uclip_norm tokens=20 channels=64 data=cancel dtype=f32");
    double left = 0;
    for (int64_t i = 0; i < 20 * 64; i++)
        left +=
            pow(at_tensor_get(at_built_tensor(&built, "x"), i) + at_tensor_get(at_built_tensor(&built, "res"), i), 2) /
            (20 * 64);
    at_assert_within(left, 0.25, 0.05);
    at_assert_within(all(at_built_tensor(&built, "x")).square, 256, 40);
    at_drop_case(&built);
}

/* Arguments of 2^x: each family where results change their nature. */
static void test_elements(void **state) {
    (void)state;
    static const struct {
        const char *data;
        double least, most;
        long long flushed, finite, infinite; /* at least so many thousandths of the results are 0, neither, infinite */
    } all[] = {
        { "whole_range", -150, 128, 0, 980, 0 },
        { "near_integer", -126.01, 127.01, 0, 1000, 0 },
        { "subnormal", -151, -125, 30, 900, 0 },
        { "overflow", 127, 0x1p127, 0, 400, 500 },
        { "random_bits", -INFINITY, INFINITY, 200, 400, 200 },
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        char line[96];
        snprintf(line, sizeof line, "exp2 n=8000 data=%s", all[k].data);
        struct at_built_case built = at_build_line(line);
        const struct at_tensor *x = at_built_tensor(&built, "x");
        long long flushed = 0, finite = 0, infinite = 0;
        for (int64_t i = 0; i < at_tensor_count(x); i++) {
            const double v = at_tensor_get(x, i);
            at_assert_true(isfinite(v), "%s: element %lld is %g", all[k].data, (long long)i, v);
            /* every eighth subnormal argument is beside the range that results are made for */
            at_assert_true((v >= all[k].least && v <= all[k].most) || fabs(v) < 0x1p-126, "%s: element %lld is %g",
                           all[k].data, (long long)i, v);
            flushed += v < -150;
            infinite += v >= 128;
            finite += v >= -150 && v < 128;
        }
        at_assert_true(flushed >= 8 * all[k].flushed && finite >= 8 * all[k].finite && infinite >= 8 * all[k].infinite,
                       "%s: %lld, %lld and %lld of 8000 results are 0, neither, infinite", all[k].data, flushed, finite,
                       infinite);
        at_drop_case(&built);
    }
}

/* Random codes are of the argument's format: all of its binades are met, subnormal numbers too. */
static void test_elements_of_16_bits(void **state) {
    (void)state;
    static const char *const lines[] = { "special_function n=8000 instruction=tanh.approx.f16 data=random_bits",
                                         "special_function n=8000 instruction=tanh.approx.bf16 data=random_bits" };
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        struct at_built_case built = at_build_line(lines[k]);
        const struct at_tensor *x = at_built_tensor(&built, "x");
        const struct at_format_info *format = at_format_info(x->format);
        int seen[512] = { 0 }, binades = 0;
        assert_true(x->format == (k ? AT_BF16 : AT_F16) && at_tensor_finite(x, 0, 8000));
        for (int64_t i = 0; i < 8000; i++) {
            const double v = fabs(at_tensor_get(x, i));
            binades += !seen[v < ldexp(1, format->emin) ? 0 : ilogb(v) - format->emin + 1]++;
        }
        assert_true(binades == (k ? 255 : 31));
        at_drop_case(&built);
    }
}

/* A gate whose end no score of the format reaches: the hot key is as long as the format allows, and finite. */
static void test_hot_stays_finite(void **state) {
    (void)state;
    static const char *const lines[] = {
        "asynct_decode b=1 h=2 hk=1 sk=40 d=64 dtype=f16 clip=0:1e6 hot=clip",
        "asynct_decode b=1 h=2 hk=1 sk=40 d=64 dtype=bf16 clip=0:3e38 hot=clip,last_key",
        "asynct_prefill b=1 h=4 hk=1 sq=9 d=64 dtype=f16 clip=0:1e30 hot=halo,clip"
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct at_built_case built = at_build_line(lines[i]);
        const struct at_tensor *k = &built.data.problem.tensors[AT_ATTN_K];
        at_assert_true(at_tensor_finite(k, 0, at_tensor_count(k)), "%s: k holds what is not finite", lines[i]);
        at_drop_case(&built);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_outlier_channels),
        cmocka_unit_test(test_ends_of_f16),
        cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_swamped),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_sink),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_nonfinite),
        cmocka_unit_test(test_random_bits),
        cmocka_unit_test(test_adversarial),
        cmocka_unit_test(test_norm_families),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_elements_of_16_bits),
        cmocka_unit_test(test_hot_stays_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
