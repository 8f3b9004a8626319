/* The matrix cores of CDNA3: examples worked out by hand, the second implementation, and what would be otherwise. A public
 * model is held to itself here, no hardware.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "datasets/fill/tc_patterns.h"
#include "tensor_core/cdna3.h"
#include "tests/oracle/mfma_mpfr.h"

#define K16 "cdna3_mfma_k16_f16_f32"
#define K16_BF16 "cdna3_mfma_k16_bf16_f32"
#define K8_XF32 "cdna3_mfma_k8_xf32_f32"

enum { PLACES = 16 };

/* Factors by their places; those not named are zero. */
struct factors {
    double a[PLACES], b[PLACES];
};

static double run(const char *name, const struct factors *f, double c) {
    const struct at_tc_instruction *t = at_tc_instruction_find(name);
    assert_non_null(t);
    return at_tc_multiply_add(t, NULL, f->a, f->b, c);
}

/* 1 - 2^-24 kept, 1 - 2^-25 not; -1.5 * 2^-24 is cut towards zero, so that one step is left of it, not two. */
static void test_products_are_cut(void **state) {
    (void)state;
    at_assert_same(run(K16, &(struct factors){ { 1, -0x1p-12 }, { 1, 0x1p-12 } }, 0), 1 - 0x1p-24);
    at_assert_same(run(K16, &(struct factors){ { 1, -0x1p-12 }, { 1, 0x1p-13 } }, 0), 1);
    at_assert_same(run(K16, &(struct factors){ { 1, -0x1.8p-12 }, { 1, 0x1p-12 } }, 0), 1 - 0x1p-24);
}

/* c = 1 and half its last bit, decided by the last bit that the sum of products keeps. */
static void test_sum_keeps_31_bits(void **state) {
    (void)state;
    at_assert_same(run(K16, &(struct factors){ { 0x1p-12, 0x1p-15 }, { 0x1p-12, 0x1p-16 } }, 1), 1 + 0x1p-23);
    at_assert_same(run(K16, &(struct factors){ { 0x1p-12, 0x1p-16 }, { 0x1p-12, 0x1p-16 } }, 1), 1);
}

/* c - 2^-24 is a tie, which goes up to the even 1 + 2^-22; -2^-40 more is rounded down to -2^-31, and it goes down. */
static void test_sum_is_rounded_down(void **state) {
    (void)state;
    struct factors f = { { -0x1p-12 }, { 0x1p-12 } };
    at_assert_same(run(K16, &f, 1 + 0x1p-22), 1 + 0x1p-22);
    f.a[1] = -0x1p-20;
    f.b[1] = 0x1p-20;
    at_assert_same(run(K16, &f, 1 + 0x1p-22), 1 + 0x1p-23);
    f.a[1] = 0x1p-20; /* above the tie by less than is kept */
    at_assert_same(run(K16, &f, 1 + 0x1p-23), 1);
}

/* The least negative c takes a whole 2^-24 from a product of 1, the least positive one adds nothing. */
static void test_addend_is_rounded_down(void **state) {
    (void)state;
    const struct factors one = { { 1 }, { 1 } };
    at_assert_same(run(K16, &one, -0x1p-30), 1 - 0x1p-24);
    at_assert_same(run(K16, &one, -0x1p-149), 1 - 0x1p-24);
    at_assert_same(run(K16, &one, 0x1p-30), 1);
    at_assert_same(run(K16, &one, -0x1.8p-24), 1 - 0x1p-23);
    at_assert_same(run(K16, &one, -0x1p-24), 1 - 0x1p-24);
}

/* Beside c = 1 five products of 2^-26 are 1.25 * 2^-24; cut beside it they would be nothing. */
static void test_addend_is_outside_the_alignment(void **state) {
    (void)state;
    struct factors f = { { 0 }, { 0 } };
    for (int i = 0; i < 5; i++) {
        f.a[i] = 0x1p-13;
        f.b[i] = 0x1p-13;
    }
    at_assert_same(run(K16, &f, 1), 1 + 0x1p-23);
}

/* 2^24 + 1 - 2^24 is 1 where the three meet in a group; else 2^24 + 1 is rounded to even in between. */
static double across(const char *name, int last) {
    struct factors f = { { 0x1p12, 1 }, { 0x1p12, 1 } };
    f.a[last] = -0x1p12;
    f.b[last] = 0x1p12;
    return run(name, &f, 0);
}

static void test_groups(void **state) {
    (void)state;
    at_assert_same(across(K16, 4), 1);
    at_assert_same(across(K16, 7), 1);
    at_assert_same(across(K16, 8), 0);
    at_assert_same(across("cdna3_mfma_k8_f16_f32", 7), 1);
    at_assert_same(across("cdna3_mfma_k4_f16_f32", 3), 1);
    at_assert_same(across(K8_XF32, 3), 1);
    at_assert_same(across(K8_XF32, 4), 0);
    at_assert_same(across("cdna3_mfma_k4_xf32_f32", 3), 1);
}

static void test_infinite_products(void **state) {
    (void)state;
    const double inf = INFINITY;
    at_assert_same(run(K16_BF16, &(struct factors){ { 0x1p127, -0x1p127 }, { 2, 1 } }, 0), inf);
    at_assert_same(run(K16_BF16, &(struct factors){ { -0x1p64, 0x1p127 }, { 0x1p64, 1 } }, 0), -inf);
    at_assert_same(run(K16_BF16, &(struct factors){ { 0x1p127, -0x1p127 }, { 2, 2 } }, 0), (double)NAN);
    at_assert_same(run(K16_BF16, &(struct factors){ { 0x1p127 }, { 2 } }, -inf), (double)NAN);
    /* below it sums may pass 2^128 on the way, and become infinite at the end alone */
    at_assert_same(run(K16_BF16, &(struct factors){ { 0x1p127, 0x1p127, -0x1p127 }, { 1, 1, 1 } }, 0), 0x1p127);
    at_assert_same(run(K16_BF16, &(struct factors){ { 0x1p127, 0x1p127 }, { 1, 1 } }, 0), inf);
    at_assert_same(run(K16, &(struct factors){ { inf }, { 0 } }, 0), (double)NAN);
    at_assert_same(run(K16, &(struct factors){ { inf, 1 }, { -1, 1 } }, 0), -inf);
    at_assert_same(run(K16, &(struct factors){ { 1 }, { 1 } }, (double)NAN), (double)NAN);
}

/* Without a zero 1.5 * 2^-150 is more than half the least result; a zero counts as 2^-126 and cuts it to the tie. */
static void test_zeros(void **state) {
    (void)state;
    struct factors f = { { 0x1p-75, 0x1p-76 }, { 0x1p-75, 0x1p-75 } };
    for (int i = 2; i < PLACES; i++) {
        f.a[i] = 0x1p-110;
        f.b[i] = 0x1p-110;
    }
    at_assert_same(run(K16_BF16, &f, 0), 0x1p-149);
    f.a[2] = 0;
    at_assert_same(run(K16_BF16, &f, 0), 0);
    struct factors few = { { -0x1p-100 },
                           { 0x1p-100 } }; /* rounded down to -2^-157, then to -0; the next group adds 0 */
    const struct at_tc_rule *rule = at_tc_rule_find("cdna3_f16_f32");
    at_assert_same(at_cdna3_multiply_add(rule, AT_BF16, few.a, few.b, 1, 0), -0.0);
    at_assert_same(run(K16_BF16, &few, 0), 0);
    at_assert_same(run(K16, &(struct factors){ { -1, 1 }, { 1, 1 } }, 0), 0);
    at_assert_same(run(K16, &(struct factors){ { -1 }, { 0 } }, -0.0), 0);
}

/* Subnormals count with their format's least exponent, products are not renormalised. */
static void test_exponents(void **state) {
    (void)state;
    const struct factors low = { { 0x1p-24, 0x1p-12 }, { 0x1p15, 0x1p-12 } }; /* 2^-9 with exponent 1: 2^-24 is cut */
    at_assert_same(run(K16, &low, 0), 0x1p-9);
    at_assert_same(run(K16_BF16, &low, 0), 0x1p-9 + 0x1p-24);
    struct factors f = { { 1.5, -0x1p-12 }, { 1.5, 0x1p-12 } };
    at_assert_same(run(K16, &f, -2), 0.25 - 0x1p-24);
    f.a[0] = 1.125;
    f.b[0] = 2;
    at_assert_same(run(K16, &f, -2), 0.25);
}

/* xf32 reads the upper 19 bits of an f32, subnormals and infinities too. */
static void test_xf32_operands(void **state) {
    (void)state;
    struct factors f = { { 1 + 0x1p-11 }, { 1 + 0x1p-10 + 0x1p-23 } };
    at_assert_same(run(K8_XF32, &f, 0), 1 + 0x1p-10);
    f.a[0] = -f.a[0];
    at_assert_same(run(K8_XF32, &f, 0), -1 - 0x1p-10);
    f.a[0] = 0x1p-149;
    f.b[0] = 0x1p100;
    at_assert_same(run(K8_XF32, &f, 0), 0);
    f.a[0] = 3 * 0x1p-137;
    at_assert_same(run(K8_XF32, &f, 0), 0x1p-36);
    f.a[0] = INFINITY;
    at_assert_same(run(K8_XF32, &f, 0), INFINITY);
}

/* ---- the second implementation ---- */

static struct oracle_format format_of(enum at_format in) {
    return (struct oracle_format){ in == AT_F16 ? 5 : 8, in == AT_BF16 ? 7 : 10, 0 };
}

static int is_cdna3(const struct at_tc_instruction *t) { return t->order == AT_TC_CDNA3; }

struct pattern {
    uint32_t a[AT_TC_BLOCK_MAX], b[AT_TC_BLOCK_MAX], c;
};

/* A stratum of this arithmetic alone: c of 24 bits, half of its last one, and a product around the last bit that the sum of
 * products keeps beside it. */
enum { LAST_BIT_OF_SUM = AT_TC_STRATA, STRATA };

static double last_bit_of_sum(const struct at_tc_instruction *t, long index, struct pattern *p) {
    uint64_t z = ((uint64_t)index + 1) * 6364136223846793005u;
    z = (z ^ z >> 29) * 1442695040888963407u;
    const int down = 28 + (int)(z >> 40) % 8, up = down / 2;
    for (int i = 0; i < t->k; i++)
        p->a[i] = p->b[i] = 0;
    p->a[0] = (uint32_t)at_encode(t->a, z >> 50 & 1 ? 0x1p-12 : -0x1p-12);
    p->b[0] = (uint32_t)at_encode(t->b, 0x1p-12);
    p->a[1] = (uint32_t)at_encode(t->a, ldexp(z >> 51 & 1 ? 1 : -1, -up));
    p->b[1] = (uint32_t)at_encode(t->b, ldexp(1, up - down));
    return 1 + (double)(z >> 8 & 0x7fffff) * 0x1p-23;
}

static void draw(const struct at_tc_instruction *t, int stratum, long index, struct pattern *p, double *model) {
    const struct at_tc_target target = at_tc_target_of(t);
    const int unread = t->a == AT_TF32 ? 13 : 0;
    double x[AT_TC_BLOCK_MAX], y[AT_TC_BLOCK_MAX], c;
    if (stratum == LAST_BIT_OF_SUM)
        c = last_bit_of_sum(t, index, p);
    else
        at_tc_pattern(&target, (enum at_tc_stratum)stratum, 17, index, t->k, p->a, p->b, &c);
    for (int i = 0; i < t->k; i++) {
        x[i] = at_decode(t->a, p->a[i]);
        y[i] = at_decode(t->b, p->b[i]);
        p->a[i] >>= unread;
        p->b[i] >>= unread;
    }
    p->c = (uint32_t)at_encode(AT_F32, c);
    *model = at_tc_multiply_add(t, NULL, x, y, c);
}

static uint32_t oracle(const struct at_tc_instruction *t, enum mfma_doubt doubt, int group, const struct pattern *p) {
    uint32_t c = p->c;
    for (int i = 0; i < t->k; i += group)
        c = oracle_mfma(format_of(t->a), doubt, group, p->a + i, p->b + i, c);
    return c;
}

/* By hand, not from the table. */
static int group_of(const struct at_tc_instruction *t) {
    const int most = t->a == AT_TF32 ? 4 : 8;
    return t->k < most ? t->k : most;
}

static int equal(double x, uint32_t code) {
    const double y = at_decode(AT_F32, code);
    return (isnan(x) && isnan(y)) || (uint32_t)at_encode(AT_F32, x) == code;
}

static void test_equal_to_second_implementation(void **state) {
    (void)state;
    long compared = 0, zero = 0, subnormal = 0, infinite = 0, nan = 0, instructions = 0;
    for (int i = 0; i < at_tc_instruction_count(); i++) {
        const struct at_tc_instruction *t = at_tc_instruction_at(i);
        if (!is_cdna3(t))
            continue;
        instructions++;
        for (int s = 0; s < STRATA; s++)
            for (long k = 0; k < 1000 * at_test_effort(10); k++) {
                struct pattern p;
                double model;
                draw(t, s, k, &p, &model);
                const uint32_t code = oracle(t, MFMA_NO_DOUBT, group_of(t), &p);
                if (!equal(model, code))
                    fail_msg("%s, stratum %d, pattern %ld: %a, second implementation %08x", t->name, s, k, model, code);
                compared++;
                zero += model == 0;
                subnormal += model != 0 && fabs(model) < 0x1p-126;
                infinite += isinf(model) != 0;
                nan += isnan(model) != 0;
            }
    }
    print_message("%ld instructions, %ld compared: %ld zero, %ld subnormal, %ld infinite, %ld NaN\n", instructions,
                  compared, zero, subnormal, infinite, nan);
    at_assert_true(instructions == 8 && compared >= 100000, "%ld instructions, %ld patterns", instructions, compared);
    at_assert_true(zero > 100 && subnormal > compared / 100 && infinite > compared / 100 && nan > compared / 100,
                   "a kind of result is rare");
}

/* ---- what would be otherwise ---- */

enum { WIDE_ONLY = 1 }; /* bf16 and xf32 */
static const struct {
    const char *name;
    enum mfma_doubt doubt;
    int operands; /* whose can tell; 0: all */
} doubts[] = {
    { "a bit less is kept", MFMA_KEPT_LESS, 0 },
    { "a bit more is kept", MFMA_KEPT_MORE, 0 },
    { "30 bits of the sum", MFMA_SUM_LESS, 0 },
    { "32 bits of the sum", MFMA_SUM_MORE, 0 },
    { "24 bits of the sum", MFMA_SUM_AS_PRODUCTS, 0 },
    { "products rounded down", MFMA_PRODUCTS_DOWN, 0 },
    { "the sum cut", MFMA_SUM_CUT, 0 },
    { "c cut", MFMA_C_CUT, 0 },
    { "c in the alignment", MFMA_C_IN_ALIGNMENT, 0 },
    { "the result cut", MFMA_RESULT_CUT, 0 },
    { "a product of zero without exponent", MFMA_ZERO_IGNORED, WIDE_ONLY },
    { "a product of 2^128 finite", MFMA_FINITE_PRODUCTS, WIDE_ONLY },
    { "products renormalised", MFMA_RENORMALISED, 0 },
};

/* Of PATTERNS of that stratum which says most, how many change with a doubt, or with groups of another length. */
enum { PATTERNS = 1500 };
static long told(const struct at_tc_instruction *t, enum mfma_doubt doubt, int group) {
    long most = 0;
    for (int s = 0; s < STRATA; s++) {
        long changed = 0;
        for (long k = 0; k < PATTERNS; k++) {
            struct pattern p;
            double model;
            draw(t, s, k, &p, &model);
            changed += !equal(model, oracle(t, doubt, group, &p));
        }
        most = changed > most ? changed : most;
    }
    return most;
}

static void test_neighbours_are_refuted(void **state) {
    (void)state;
    static const char *const names[] = { K16, K16_BF16, K8_XF32 };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct at_tc_instruction *t = at_tc_instruction_find(names[i]);
        const int wide = t->a != AT_F16, group = group_of(t);
        for (size_t d = 0; d < sizeof doubts / sizeof *doubts; d++) {
            const long changed = told(t, doubts[d].doubt, group);
            print_message("%-26s %-36s %ld\n", t->name, doubts[d].name, changed);
            if (doubts[d].operands == WIDE_ONLY && !wide)
                at_assert_true(changed == 0, "%s: %s changes %ld", t->name, doubts[d].name, changed);
            else
                at_assert_true(changed >= PATTERNS / 100, "%s: %s changes %ld", t->name, doubts[d].name, changed);
        }
        at_assert_true(told(t, MFMA_NO_DOUBT, group / 2) >= PATTERNS / 100, "%s: half a group", t->name);
        at_assert_true(told(t, MFMA_NO_DOUBT, group * 2) >= PATTERNS / 100, "%s: two groups in one", t->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_are_cut),
        cmocka_unit_test(test_sum_keeps_31_bits),
        cmocka_unit_test(test_sum_is_rounded_down),
        cmocka_unit_test(test_addend_is_rounded_down),
        cmocka_unit_test(test_addend_is_outside_the_alignment),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_infinite_products),
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_exponents),
        cmocka_unit_test(test_xf32_operands),
        cmocka_unit_test(test_equal_to_second_implementation),
        cmocka_unit_test(test_neighbours_are_refuted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
