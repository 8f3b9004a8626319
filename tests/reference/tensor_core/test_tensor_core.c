/* The tensor-core rule on inputs whose result is derived by hand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tensor_core/instruction.h"

enum { LANES = 16 };

/* The products of one step; lanes not set are zero. */
struct step {
    double a[LANES], b[LANES];
};

static const struct at_tc_rule *rule(const char *name) {
    const struct at_tc_rule *found = at_tc_rule_find(name);
    at_assert_true(found != NULL, "no rule %s", name);
    return found;
}

static double run(const char *name, enum at_format in, const struct step *s, double c) {
    return at_fdpa(rule(name), in, s->a, 1, s->b, 1, LANES, c);
}

/* C = 0, products 1, 2^-11 and 2^-j: the tie 1 + 2^-11 goes up exactly when 2^-j is kept. */
static void test_kept_bits_f16_accumulator(void **state) {
    (void)state;
    for (int j = 23; j <= 27; j++) {
        struct step s = { { 1, 0x1p-5, ldexp(1, -(j / 2)) }, { 1, 0x1p-6, ldexp(1, j / 2 - j) } };
        double want = j <= 25 ? 1 + 0x1p-10 : 1.0;
        at_assert_same(run("hopper_mma_f16_f16", AT_F16, &s, 0), want);
        at_assert_same(run("hopper_wgmma_f16_f16", AT_F16, &s, 0), want);
    }
}

/* 1 + m * 2^-j with m 2^-j = 2^-23: seen when each 2^-j is kept, lost when each is cut. */
static void test_kept_bits_f32_accumulator(void **state) {
    (void)state;
    for (int j = 23; j <= 26; j++) {
        struct step s = { { 1 }, { 1 } };
        for (int m = 0; m < 1 << (j - 23); m++) {
            s.a[1 + m] = ldexp(1, -(j / 2));
            s.b[1 + m] = ldexp(1, j / 2 - j);
        }
        double want = j <= 25 ? 1 + 0x1p-23 : 1.0;
        at_assert_same(run("hopper_f16_f32", AT_F16, &s, 0), want);
        at_assert_same(run("hopper_bf16_f32", AT_BF16, &s, 0), want);
    }
}

/* 2^24 + 1 - 2^24 over positions 0, 1 and 8: exact inside one step of 16, lost in two steps of 8. */
static void test_block_is_sixteen(void **state) {
    (void)state;
    struct step s = { { 0x1p12, 1, 0, 0, 0, 0, 0, 0, 0x1p12 }, { 0x1p12, 1, 0, 0, 0, 0, 0, 0, -0x1p12 } };
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, 0), 1.0);
    const struct at_tc_rule *r = rule("hopper_f16_f32");
    double first = at_fdpa(r, AT_F16, s.a, 1, s.b, 1, 8, 0);
    at_assert_same(first, 0x1p24);
    at_assert_same(at_fdpa(r, AT_F16, s.a + 8, 1, s.b + 8, 1, 8, first), 0.0);
}

/* 1.5 * 1.5 keeps exponent 0, 1.125 * 2 has exponent 1: the same product, another alignment. */
static void test_products_are_not_renormalised(void **state) {
    (void)state;
    struct step s = { { 1.5 }, { 1.5 } };
    for (int i = 1; i <= 8; i++) {
        s.a[i] = 0x1p-12;
        s.b[i] = 0x1p-13;
    }
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, 0), 2.25 + 0x1p-22);
    s.a[0] = 1.125;
    s.b[0] = 2.0;
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, 0), 2.25);
}

/* A subnormal f16 operand aligns as 2^-14: beside 2^-24 * 2^15, whose exponent counts as 1, a product of
 * 2^-25 is cut although it is 2^-16 of the sum; the same values in bf16 are normal and keep it. */
static void test_subnormals_are_not_normalised(void **state) {
    (void)state;
    struct step s = { { 0x1p-24, 0x1p-12 }, { 0x1p15, 0x1p-13 } };
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, 0), 0x1p-9);
    at_assert_same(run("hopper_bf16_f32", AT_BF16, &s, 0), 0x1p-9 + 0x1p-25);
}

static void test_truncates_both_signs(void **state) {
    (void)state;
    struct step s = { { 1.5 * 0x1p-12 }, { -0x1p-12 } };
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, -1.0), -1.0);
    s.b[0] = 0x1p-12;
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, 1.0), 1.0);
    /* 1 - 1.5 * 2^-24 keeps 3 * 2^-25 of it and is cut towards zero */
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, -1.0), -1.0 + 0x1p-23);
}

/* 2^23 - 2^13 * 2^10 - 0.5 - 0.25 - 0.125: the last term lies below 2^(23 - 25). */
static void test_published_accuracy_case(void **state) {
    (void)state;
    struct step s = { { 0x1p13, 0.5, 0.5, 0.125 }, { -0x1p10, -1, -0.5, -1 } };
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, 0x1p23), -0.75);
}

/* Sum that c and three products make under the f16 accumulator. */
static double half_sum(double c, double x, double y, double z) {
    struct step s = { { x, y, z }, { 1, 1, 1 } };
    return run("hopper_mma_f16_f16", AT_F16, &s, c);
}

static void test_f16_overflow(void **state) {
    (void)state;
    at_assert_same(half_sum(0, 65504, 0, 0), 65504.0);
    at_assert_same(half_sum(0, 65504, 15, 0), 65504.0);
    at_assert_same(half_sum(0, 65504, 16, 0), (double)INFINITY);
    at_assert_same(half_sum(-65504, -16, 0, 0), -(double)INFINITY);
    at_assert_same(half_sum(0, 60000, 60000, -60000), 60000.0); /* inside one step nothing overflows */
    double first = half_sum(0, 60000, 60000, 0);
    at_assert_same(first, (double)INFINITY);
    at_assert_same(half_sum(first, -60000, 0, 0), (double)INFINITY);
}

static void test_f32_overflow_is_infinite(void **state) {
    (void)state;
    struct step s = { { 0x1p120, 0x1p120 }, { 0x1p7, 0x1p7 } };
    at_assert_same(run("hopper_bf16_f32", AT_BF16, &s, 0), (double)INFINITY);
    at_assert_same(run("hopper_bf16_f32", AT_BF16, &s, -0x1p127), 0x1p127);
    struct step most = { { 0x1p100 }, { 0x1p2 } }; /* FLT_MAX + 2^102: cut back, not infinite */
    at_assert_same(run("hopper_bf16_f32", AT_BF16, &most, 0x1.fffffep127), 0x1.fffffep127);
    s.a[1] = -0x1p120;
    s.a[2] = -0x1p120;
    s.b[2] = 0x1p8;
    at_assert_same(run("hopper_bf16_f32", AT_BF16, &s, 0), -(double)INFINITY);
}

static void test_specials(void **state) {
    (void)state;
    const double inf = INFINITY;
    at_assert_same(half_sum(inf, 1, -1, 0), inf);
    at_assert_same(half_sum(0, -inf, 1, 0), -inf);
    at_assert_same(half_sum(inf, -inf, 0, 0), (double)NAN);
    at_assert_same(half_sum(0, inf, -inf, 0), (double)NAN);
    at_assert_same(half_sum(NAN, 1, 0, 0), (double)NAN);
    struct step s = { { inf }, { 0 } };
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, 1), (double)NAN);
}

static void test_signed_zero(void **state) {
    (void)state;
    struct step s = { { -0.0 }, { 1 } };
    for (int i = 1; i < LANES; i++) {
        s.a[i] = -0.0;
        s.b[i] = 1;
    }
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, -0.0), 0.0);
    struct step cancel = { { 1, -1 }, { 1, 1 } };
    at_assert_same(run("hopper_f16_f32", AT_F16, &cancel, 0), 0.0);
    struct step tiny = { { -0x1p-80 }, { 0x1p-71 } };               /* -2^-151: kept at alignment, below 2^-149 */
    at_assert_same(run("hopper_bf16_f32", AT_BF16, &tiny, 0), 0.0); /* measured on an H200 */
    tiny.b[0] = 0x1.8p-69;                                          /* -1.5 * 2^-149 */
    at_assert_same(run("hopper_bf16_f32", AT_BF16, &tiny, 0), -0x1p-149);
}

/* C = 0: 2^-14 * 2^-11 = 2^-25 is the tie at half the smallest f16; 2^-k decides it when it is kept. With the
 * floor at -21 that is k <= 46: measured on an H200. */
static void test_zero_exponent(void **state) {
    (void)state;
    for (int k = 45; k <= 48; k++) {
        struct step s = { { 0x1p-14, 0x1p-24 }, { 0x1p-11, ldexp(1, 24 - k) } };
        at_assert_same(run("hopper_mma_f16_f16", AT_F16, &s, 0), k <= 46 ? 0x1p-24 : 0.0);
        at_assert_same(run("hopper_wgmma_f16_f16", AT_F16, &s, 0), k <= 46 ? 0x1p-24 : 0.0);
    }
}

/* bf16, 73 * 7 = 511: a sum of 2^-149, the smallest f32, or just below it. The floor at -133 keeps 2^-158 and no less.
 */
static void test_zero_exponent_f32(void **state) {
    (void)state;
    struct step s = { { 73 * 0x1p-60, 0x1p-60 }, { 7 * 0x1p-98, 0x1p-98 } };
    at_assert_same(run("hopper_bf16_f32", AT_BF16, &s, 0), 0x1p-149);
    struct step finer = { { 93 * 0x1p-60, 0x1p-60 }, { 11 * 0x1p-99, 0x1p-99 } };
    at_assert_same(run("hopper_bf16_f32", AT_BF16, &finer, 0), 0.0);
}

/* 1 + 4 * 2^-25, beside zero times 2^15: a zero product moves no alignment, whatever its other factor. */
static void test_zero_product_has_no_exponent(void **state) {
    (void)state;
    struct step s = { { 1, 0 }, { 1, 0x1p15 } };
    for (int i = 2; i < 6; i++) {
        s.a[i] = 0x1p-12;
        s.b[i] = 0x1p-13;
    }
    at_assert_same(run("hopper_f16_f32", AT_F16, &s, 0), 1 + 0x1p-23);
}

static void test_table(void **state) {
    (void)state;
    at_assert_true(at_tc_rule_find("no such rule") == NULL, "found a rule that is not there");
    for (int i = 0; i < at_tc_rule_count(); i++) {
        const struct at_tc_rule *r = at_tc_rule_at(i);
        at_assert_true(at_tc_rule_find(r->name) == r, "%s is there twice", r->name);
        at_assert_true(r->block <= AT_TC_BLOCK_MAX, "%s: block %d", r->name, r->block);
        at_assert_true(r->out_bits <= at_format_info(r->out)->precision, "%s: out_bits", r->name);
    }
}

/* Factors of every kind, and sums that run on: what rows know beforehand changes no bit. */
static void test_rows(void **state) {
    (void)state;
    uint64_t z = 7;
    for (int i = 0; i < at_tc_instruction_count(); i++) {
        const struct at_tc_instruction *t = at_tc_instruction_at(i);
        const struct at_tc_rule *r = at_tc_instruction_rule(t);
        const enum at_format of[] = { t->a, t->b };
        if (t->k > AT_TC_ROW_MAX)
            continue;
        double c = 0;
        for (long n = 0; n < 40 * at_test_effort(10); n++) {
            struct at_tc_row row[2];
            for (int k = 0; k < 2 * t->k; k++) {
                z = z * 6364136223846793005u + 1442695040888963407u;
                const uint64_t codes = 1ull << (of[k % 2] == AT_TF32 ? 32 : 8 * at_format_info(of[k % 2])->bytes);
                const uint64_t code = (z >> 20) % codes & (of[k % 2] == AT_TF32 ? 0xffffe000u : codes - 1);
                double x = at_decode(of[k % 2], code);
                if (!isfinite(x) && n % 8) /* rows without one are the usual */
                    x = 1;
                row[k % 2].x[k / 2] = z >> 61 == 0 ? 0 : n % 3 ? at_round(of[k % 2], ldexp(x, n % 3 - ilogb(x))) : x;
            }
            at_tc_row_know(t->a, &row[0], t->k);
            at_tc_row_know(t->b, &row[1], t->k);
            const double want = at_tc_multiply_add(t, r, row[0].x, row[1].x, c);
            at_assert_same(at_tc_multiply_add_rows(t, r, &row[0], &row[1], c), want);
            c = n % 5 ? want : 0;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_bits_f16_accumulator),
        cmocka_unit_test(test_kept_bits_f32_accumulator),
        cmocka_unit_test(test_block_is_sixteen),
        cmocka_unit_test(test_products_are_not_renormalised),
        cmocka_unit_test(test_subnormals_are_not_normalised),
        cmocka_unit_test(test_truncates_both_signs),
        cmocka_unit_test(test_published_accuracy_case),
        cmocka_unit_test(test_f16_overflow),
        cmocka_unit_test(test_f32_overflow_is_infinite),
        cmocka_unit_test(test_specials),
        cmocka_unit_test(test_signed_zero),
        cmocka_unit_test(test_zero_exponent),
        cmocka_unit_test(test_zero_exponent_f32),
        cmocka_unit_test(test_zero_product_has_no_exponent),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
