/* Exact data: every order of operations, in every accumulator, gives the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"
#include "tests/support/built_case.h"

/* Output of one row in one way: accumulators of `format`, P rounded to bf16, halves joined at the end. */
static void asynct_row(const struct at_built_case *built, int64_t row, enum at_test_order order, int form,
                       enum at_format format, double *out) {
    struct at_attn_row at = at_attn_row(&built->data.problem, row);
    int64_t n = at.visible, d = built->data.problem.sizes.d;
    double *dots = malloc((size_t)(2 * n + 1) * sizeof *dots), *p = dots + n;
    assert_non_null(dots);
    for (int64_t t = 0; t < n; t++)
        dots[t] = at_built_dot(built, row, t, order, format);
    at_built_gate(built, at.head, n, dots, form, p);
    double gamma = at_built_value(built, "gamma", at.head);
    for (int64_t c = 0; c < d; c++) {
        double half[2] = { 0, 0 };
        for (int64_t i = 0; i < n; i++) {
            int64_t t = at_test_place(order, i, n);
            double *sum = &half[order == AT_TEST_STRIDED && t >= n / 2];
            *sum = at_round(format, *sum + at_round(AT_BF16, p[t]) * at_built_kv(built, AT_ATTN_V, at, t, c));
        }
        out[c] = at_round(built->data.problem.dtype, gamma * at_round(format, half[0] + half[1]));
    }
    free(dots);
}

static void test_exact_asynct_in_every_order(void **state) {
    (void)state;
    static const char *const lines[] = {
        "asynct_decode b=3 h=2 hk=1 sk=1/90/17 d=64 dtype=f16 data=exact hot=last_key,halo,clip",
        "asynct_decode b=1 h=2 hk=2 sk=400 d=128 dtype=bf16 data=exact page=16 sigma=0.1875",
        "asynct_decode b=1 h=2 hk=1 sk=70 d=32 dtype=bf16 data=exact window=5 sigma=0:5 gamma=0.5:-2",
        "asynct_decode b=1 h=2 hk=1 sk=70 d=32 dtype=bf16 data=exact edge=shrink",
        "asynct_decode b=1 h=1 hk=1 sk=70 d=32 dtype=bf16 data=exact window=5 edge=shrink",
        "asynct_decode b=1 h=1 hk=1 sk=70 d=64 dtype=f32 data=exact taps=0.5:-0.25:-0.25 clip=-0.5:2 relu_pre=0",
        "asynct_prefill b=1 h=2 hk=1 sq=20 prefix=9 d=64 dtype=f16 causal=1 data=exact hot=last_key,hidden_key",
    };
    static const enum at_format formats[] = { AT_F64, AT_F32, AT_F16 };
    for (size_t line = 0; line < sizeof lines / sizeof *lines; line++) {
        struct at_built_case built = at_build_line(lines[line]);
        double want[256], got[256], sum = 0;
        for (int64_t row = 0; row < at_attn_rows(&built.data.problem); row++) {
            asynct_row(&built, row, AT_TEST_FORWARD, 0, AT_F64, want);
            for (int way = 1; way < 9; way++) {
                asynct_row(&built, row, (enum at_test_order)(way % 3), way / 3, formats[(way + way / 3) % 3], got);
                for (int64_t c = 0; c < built.data.problem.sizes.d; c++)
                    at_assert_true(got[c] == want[c], "%s: row %lld channel %lld way %d: %a, wanted %a", lines[line],
                                   (long long)row, (long long)c, way, got[c], want[c]);
            }
            for (int64_t c = 0; c < built.data.problem.sizes.d; c++)
                sum += fabs(want[c]);
        }
        at_assert_true(sum > 0, "%s: every output is 0", lines[line]);
        at_drop_case(&built);
    }
}

/* Highest scores in a number that is a power of two, all others 746 or more below. */
static void test_exact_softmax_has_weights_of_0_and_1(void **state) {
    (void)state;
    static const char *const lines[] = {
        "softmax_prefill b=3 h=4 hk=2 sq=50/1/3 prefix=0/200/7 d=64 causal=1 dtype=f16 data=exact",
        "softmax_decode b=2 h=2 hk=1 sk=1/3000 d=32 dtype=bf16 data=exact hot=last_key",
    };
    int ties[5] = { 0 }, last = 0, rows = 0;
    for (int line = 0; line < 2; line++) {
        struct at_built_case built = at_build_line(lines[line]);
        for (int64_t row = 0; row < at_attn_rows(&built.data.problem); row++, rows++) {
            struct at_attn_row at = at_attn_row(&built.data.problem, row);
            double highest = -INFINITY, second = -INFINITY;
            int n = 0, last_counts = 0;
            for (int64_t t = 0; t < at.visible; t++) {
                double s =
                    at_built_dot(&built, row, t, AT_TEST_FORWARD, AT_F16) * (double)built.data.problem.params.scale;
                at_assert_same(s, at_built_dot(&built, row, t, AT_TEST_BACKWARD, AT_F64) *
                                      (double)built.data.problem.params.scale);
                assert_true(fabs(s) <= 65504);
                if (s > highest) {
                    second = highest;
                    highest = s;
                    n = 0;
                }
                second = s < highest && s > second ? s : second;
                n += s == highest;
                last_counts = s == highest;
            }
            at_assert_true(n == 1 || n == 2 || n == 4, "%d highest scores", n);
            assert_true(highest - second >= 746);
            ties[n]++;
            last += last_counts;
        }
        at_drop_case(&built);
    }
    assert_true(ties[1] > 0 && ties[2] > 0 && ties[4] > 0);
    at_assert_true(3 * last > rows, "the last key counts in %d of %d rows", last, rows);
}

static int is_power_of_two(double x) {
    int exponent;
    return frexp(x, &exponent) == 0.5;
}

static void test_exact_norms(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("add_rms_norm tokens=9 channels=64 data=exact dtype=bf16");
    const struct at_tensor *x = at_built_tensor(&built, "x"), *res = at_built_tensor(&built, "res");
    int differing = 0;
    for (int64_t row = 0; row < 9; row++) {
        double squares = 0;
        for (int64_t c = 0; c < 64; c++) {
            double sum = at_tensor_get(x, row * 64 + c) + at_tensor_get(res, row * 64 + c);
            at_assert_same(at_round(AT_BF16, sum), sum);
            squares += sum * sum;
            differing += sum != at_tensor_get(x, row * 64 + c);
        }
        assert_true(is_power_of_two(sqrt(squares / 64)));
    }
    assert_true(differing > 300);
    at_drop_case(&built);
    built = at_build_line("add_uclip_norm tokens=9 channels=64 data=exact dtype=bf16");
    x = at_built_tensor(&built, "x"), res = at_built_tensor(&built, "res");
    for (int64_t i = 0; i < 9 * 64; i++) {
        double sum = at_tensor_get(x, i) + at_tensor_get(res, i), alpha = at_built_value(&built, "alpha", i % 64);
        double gate = fmax(-1, fmin(1, alpha * sum)), gamma = at_built_value(&built, "gamma", i % 64);
        at_assert_same(at_round(AT_BF16, sum), sum);
        assert_true(is_power_of_two(alpha) && is_power_of_two(fabs(gamma)));
        double y = gamma * gate + at_built_value(&built, "beta", i % 64);
        at_assert_same(at_round(AT_BF16, y), y);
    }
    at_drop_case(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_asynct_in_every_order),
        cmocka_unit_test(test_exact_softmax_has_weights_of_0_and_1),
        cmocka_unit_test(test_exact_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
