/* What else a tensor core might do, and which strata of patterns would show it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Published vectors say nothing of subnormal operands and addends, wgmma's addend, negative addends, fp8 into f16, several
 * chunks, tf32's block, several specials. Each doubt below is another way to do one of these. The second implementation
 * does it so, and the share of a stratum's results that change is what the stratum has to say about it; where operands
 * cannot tell, none may change. Without a doubt it gives what the model gives, for every instruction and stratum. */
#include "tests/at_test.h"

#include "datasets/fill/tc_patterns.h"
#include "tests/oracle/fdpa_mpfr.h"

/* How the products of one instruction are taken, other than its own way. */
enum order {
    AS_IT_IS,
    BACKWARDS,  /* the last chunk first */
    FROM_ZERO,  /* every chunk from 0, their results added up, c first */
    EVEN_FIRST, /* two blocks in the place of one: even places, odd places */
    TWO_HALVES, /* two blocks in the place of one: the first half, the second */
    ASCENDING   /* products of fp8 by f16 in ascending order */
};

static struct oracle_format format_of(enum at_format format) {
    switch (format) {
    case AT_F16:
        return (struct oracle_format){ 5, 10, 0 };
    case AT_BF16:
        return (struct oracle_format){ 8, 7, 0 };
    case AT_TF32:
        return (struct oracle_format){ 8, 10, 0 };
    case AT_E4M3:
        return (struct oracle_format){ 4, 3, 1 };
    case AT_E5M2:
        return (struct oracle_format){ 5, 2, 0 };
    default:
        return (struct oracle_format){ 8, 23, 0 };
    }
}

/* The oracle's own view of a rule: F, rounding and floor are the model's, which test_fdpa.c has apart from it. */
static struct oracle_fdpa oracle_of(const struct at_tc_instruction *t, enum oracle_doubt doubt) {
    const struct at_tc_rule *r = at_tc_instruction_rule(t);
    const int by_f16 = t->order == AT_TC_FP8_BY_F16;
    return (struct oracle_fdpa){ .a = format_of(by_f16 ? AT_F16 : t->a),
                                 .b = format_of(by_f16 ? AT_F16 : t->b),
                                 .out = format_of(r->out),
                                 .kept = r->kept_bits,
                                 .to_nearest = r->rounding == AT_TC_RNE,
                                 .floor = r->zero_exponent,
                                 .dropped = at_format_info(r->out)->precision - r->out_bits,
                                 .doubt = doubt };
}

/* One pattern: codes as the oracle has them, tf32 without the 13 bits that are zero, fp8 as f16 where it is taken so. */
struct pattern {
    uint32_t a[AT_TC_BLOCK_MAX], b[AT_TC_BLOCK_MAX], c;
};

static uint32_t step(const struct oracle_fdpa *oracle, const struct pattern *p, const int *place, int n, uint32_t c) {
    uint32_t a[AT_TC_BLOCK_MAX], b[AT_TC_BLOCK_MAX];
    for (int i = 0; i < n; i++) {
        a[i] = p->a[place[i]];
        b[i] = p->b[place[i]];
    }
    return oracle_fdpa(oracle, n, a, b, c);
}

/* Places of the products in the order they are taken, and how many a step. */
static int places(const struct at_tc_instruction *t, enum order order, int *place) {
    const int block = at_tc_instruction_rule(t)->block, by_f16 = t->order == AT_TC_FP8_BY_F16;
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < t->k; i++) {
            const int second = by_f16 && order != ASCENDING ? i % 4 / 2 : order == EVEN_FIRST ? i % 2 : i >= t->k / 2;
            if (second == pass)
                place[n++] = i;
        }
    return by_f16 || order == EVEN_FIRST || order == TWO_HALVES ? t->k / 2 : block < t->k ? block : t->k;
}

static uint32_t multiply_add(const struct at_tc_instruction *t, enum oracle_doubt doubt, enum order order,
                             const struct pattern *p) {
    const struct oracle_fdpa oracle = oracle_of(t, doubt);
    int place[AT_TC_BLOCK_MAX];
    const int size = places(t, order, place), chunks = t->k / size, by_f16 = t->order == AT_TC_FP8_BY_F16;
    uint32_t sum = by_f16 ? 0 : p->c;
    for (int i = 0; i < chunks; i++) {
        const int *from = &place[size * (order == BACKWARDS ? chunks - 1 - i : i)];
        if (order == FROM_ZERO)
            sum = oracle_add(oracle.out, sum, step(&oracle, p, from, size, 0));
        else
            sum = step(&oracle, p, from, size, sum);
    }
    return by_f16 ? oracle_add(oracle.out, p->c, sum) : sum;
}

static uint32_t own_code(const struct at_tc_instruction *t, enum at_format format, uint32_t code) {
    if (t->order == AT_TC_FP8_BY_F16)
        return (uint32_t)at_encode(AT_F16, at_decode(format, code));
    return format == AT_TF32 ? code >> 13 : code;
}

static void draw(const struct at_tc_instruction *t, enum at_tc_stratum stratum, long index, struct pattern *p,
                 double *model) {
    const struct at_tc_target target = at_tc_target_of(t);
    double x[AT_TC_BLOCK_MAX], y[AT_TC_BLOCK_MAX], c;
    at_tc_pattern(&target, stratum, 5, index, t->k, p->a, p->b, &c);
    for (int i = 0; i < t->k; i++) {
        x[i] = at_decode(t->a, p->a[i]);
        y[i] = at_decode(t->b, p->b[i]);
        p->a[i] = own_code(t, t->a, p->a[i]);
        p->b[i] = own_code(t, t->b, p->b[i]);
    }
    p->c = (uint32_t)at_encode(target.out, c);
    *model = at_tc_multiply_add(t, NULL, x, y, c);
}

static int equal(enum at_format format, double x, uint32_t code) {
    const double y = at_decode(format, code);
    return (isnan(x) && isnan(y)) || (uint32_t)at_encode(format, x) == code;
}

/* CDNA3 has another arithmetic, and doubts of its own: test_cdna3.c. */
static int is_asked(const struct at_tc_instruction *t) { return t->order != AT_TC_CDNA3; }

static void test_no_doubt_is_the_model(void **state) {
    (void)state;
    for (int i = 0; i < at_tc_instruction_count(); i++) {
        const struct at_tc_instruction *t = at_tc_instruction_at(i);
        if (!is_asked(t))
            continue;
        for (int s = 0; s < AT_TC_STRATA; s++)
            for (long k = 0; k < 100 * at_test_effort(10); k++) {
                struct pattern p;
                double model;
                draw(t, (enum at_tc_stratum)s, k, &p, &model);
                const uint32_t code = multiply_add(t, ORACLE_NO_DOUBT, AS_IT_IS, &p);
                at_assert_true(equal(at_tc_instruction_rule(t)->out, model, code),
                               "%s, %s, pattern %ld: %a, second implementation %x", t->name,
                               at_tc_stratum_name((enum at_tc_stratum)s), k, model, code);
            }
    }
}

/* ---- what can be told ---- */

enum { NO, YES, NOT_ASKED };

static int in_chunks(const struct at_tc_instruction *t) { return t->order == AT_TC_CHUNKS ? YES : NOT_ASKED; }

/* By f16 c is added by itself, and within the rest it is the sum of the first half. */
static int exponent_of_c(const struct at_tc_instruction *t) {
    struct at_tc_rule changed;
    return t->order == AT_TC_CHUNKS ? at_tc_neighbour_of(t, AT_TC_ADDEND_LEADING, &changed) : NOT_ASKED;
}

/* Subnormals of e4m3 are normal in f16. */
static int subnormal_operands(const struct at_tc_instruction *t) {
    return !(t->order == AT_TC_FP8_BY_F16 && t->a == AT_E4M3 && t->b == AT_E4M3);
}

/* An f32 result is cut, and cutting twice is cutting once. */
static int rounding_twice(const struct at_tc_instruction *t) {
    return at_tc_instruction_rule(t)->out != AT_F16 ? NO : in_chunks(t);
}

/* e4m3 has no infinity, and c alone is not two. */
static int infinite_products(const struct at_tc_instruction *t) { return t->a != AT_E4M3 || t->b != AT_E4M3; }

static int infinity_and_nan(const struct at_tc_instruction *t) {
    return t->order == AT_TC_CHUNKS || infinite_products(t); /* by f16 an infinite c comes last */
}

static int order_of_chunks(const struct at_tc_instruction *t) {
    return t->order != AT_TC_CHUNKS ? NOT_ASKED : t->k > at_tc_instruction_rule(t)->block;
}

static int chunks_from_zero(const struct at_tc_instruction *t) { return order_of_chunks(t) == YES ? YES : NOT_ASKED; }

static int one_block(const struct at_tc_instruction *t) { return order_of_chunks(t) == NO ? YES : NOT_ASKED; }

static int order_by_f16(const struct at_tc_instruction *t) { return t->order == AT_TC_FP8_BY_F16 ? YES : NOT_ASKED; }

static const struct doubt {
    const char *name;
    enum oracle_doubt what;
    enum order order;
    int (*told)(const struct at_tc_instruction *t);
    enum at_tc_stratum by; /* the stratum that is made for it */
} doubts[] = {
    { "a subnormal c has its leading bit's exponent", ORACLE_C_LEADS, AS_IT_IS, exponent_of_c, AT_TC_low_addend },
    { "a subnormal c is flushed", ORACLE_C_FLUSHED, AS_IT_IS, in_chunks, AT_TC_low_addend },
    { "a subnormal operand has its leading bit's", ORACLE_OPERANDS_LEAD, AS_IT_IS, subnormal_operands,
      AT_TC_low_operand },
    { "a subnormal operand is flushed", ORACLE_OPERANDS_FLUSHED, AS_IT_IS, subnormal_operands, AT_TC_low_operand },
    { "terms are cut downwards", ORACLE_CUT_DOWN, AS_IT_IS, in_chunks, AT_TC_cut_addend },
    { "a negative c is cut downwards", ORACLE_C_CUT_DOWN, AS_IT_IS, in_chunks, AT_TC_cut_addend },
    { "c is added last, to nearest", ORACLE_C_LAST, AS_IT_IS, in_chunks, AT_TC_cut_addend },
    { "an f16 result is rounded twice", ORACLE_ROUNDED_TWICE, AS_IT_IS, rounding_twice, AT_TC_carried },
    { "infinity times 0 is 0", ORACLE_NOTHING_OF_ZERO, AS_IT_IS, infinite_products, AT_TC_specials },
    { "the first infinity stays", ORACLE_FIRST_INFINITY, AS_IT_IS, infinite_products, AT_TC_specials },
    { "an infinity is stronger than a NaN", ORACLE_NAN_LOSES, AS_IT_IS, infinity_and_nan, AT_TC_specials },
    { "chunks backwards", ORACLE_NO_DOUBT, BACKWARDS, order_of_chunks, AT_TC_ordinary },
    { "chunks from zero, then added up", ORACLE_NO_DOUBT, FROM_ZERO, chunks_from_zero, AT_TC_ordinary },
    { "a block of even places, one of odd", ORACLE_NO_DOUBT, EVEN_FIRST, one_block, AT_TC_apart },
    { "two blocks, half as long", ORACLE_NO_DOUBT, TWO_HALVES, one_block, AT_TC_ordinary },
    { "fp8 by f16 in ascending order", ORACLE_NO_DOUBT, ASCENDING, order_by_f16, AT_TC_apart },
};

static double share_told(const struct at_tc_instruction *t, const struct doubt *d, enum at_tc_stratum stratum, long n) {
    long told = 0;
    for (long k = 0; k < n; k++) {
        struct pattern p;
        double model;
        draw(t, stratum, k, &p, &model);
        told += !equal(at_tc_instruction_rule(t)->out, model, multiply_add(t, d->what, d->order, &p));
    }
    return (double)told / (double)n;
}

/* Of each doubt, the instructions of which its stratum says least. */
static void test_doubts_are_told(void **state) {
    (void)state;
    for (size_t d = 0; d < sizeof doubts / sizeof doubts[0]; d++) {
        double least = 2;
        const char *of = "";
        int asked = 0;
        for (int i = 0; i < at_tc_instruction_count(); i++) {
            const struct at_tc_instruction *t = at_tc_instruction_at(i);
            if (!is_asked(t) || doubts[d].told(t) != YES)
                continue;
            const double share = share_told(t, &doubts[d], doubts[d].by, 400 * at_test_effort(5));
            at_assert_true(share >= 0.01, "%s: %s tells it in %.2f %% of %s", t->name, doubts[d].name, 100 * share,
                           at_tc_stratum_name(doubts[d].by));
            if (share < least)
                of = t->name;
            least = fmin(least, share);
            asked++;
        }
        print_message("%-46s %-12s %2d instructions, %.1f %% at least (%s)\n", doubts[d].name,
                      at_tc_stratum_name(doubts[d].by), asked, 100 * least, of);
        at_assert_true(asked > 0, "%s: asked of no instruction", doubts[d].name);
    }
}

/* Where no operands can tell, none do. */
static void test_what_cannot_be_told(void **state) {
    (void)state;
    int cannot = 0;
    for (size_t d = 0; d < sizeof doubts / sizeof doubts[0]; d++)
        for (int i = 0; i < at_tc_instruction_count(); i++) {
            const struct at_tc_instruction *t = at_tc_instruction_at(i);
            if (!is_asked(t) || doubts[d].told(t) != NO)
                continue;
            cannot++;
            for (int s = 0; s < AT_TC_STRATA; s++)
                at_assert_same(share_told(t, &doubts[d], (enum at_tc_stratum)s, 20 * at_test_effort(10)), 0);
        }
    at_assert_true(cannot > 0, "everything can be told");
}

/* The neighbour of the model that the study counts is the oracle's doubt. */
static void test_leading_c_is_a_neighbour(void **state) {
    (void)state;
    for (int i = 0; i < at_tc_instruction_count(); i++) {
        const struct at_tc_instruction *t = at_tc_instruction_at(i);
        const struct at_tc_target target = at_tc_target_of(t);
        struct at_tc_rule changed;
        if (!at_tc_neighbour_of(t, AT_TC_ADDEND_LEADING, &changed))
            continue;
        for (long k = 0; k < 200 * at_test_effort(10); k++) {
            struct pattern p;
            uint32_t a[AT_TC_BLOCK_MAX], b[AT_TC_BLOCK_MAX];
            double x[AT_TC_BLOCK_MAX], y[AT_TC_BLOCK_MAX], c, model;
            draw(t, AT_TC_low_addend, k, &p, &model);
            at_tc_pattern(&target, AT_TC_low_addend, 5, k, t->k, a, b, &c);
            for (int n = 0; n < t->k; n++) {
                x[n] = at_decode(t->a, a[n]);
                y[n] = at_decode(t->b, b[n]);
            }
            at_assert_true(equal(target.out, at_tc_multiply_add(t, &changed, x, y, c),
                                 multiply_add(t, ORACLE_C_LEADS, AS_IT_IS, &p)),
                           "%s: pattern %ld", t->name, k);
        }
    }
}

/* c = 2^-23, 2^-25 and 2^-j, on the f16 accumulator of Hopper: half a last bit, and what decides it. Where c has emin's
 * exponent 2^-39 is the last that is seen; where it has that of its leading bit, 2^-46, by the floor. */
static void test_half_a_bit_of_a_subnormal_c(void **state) {
    (void)state;
    const struct at_tc_instruction *t = at_tc_instruction_find("hopper_mma_k16_f16_f16");
    for (int j = 38; j <= 48; j++) {
        const double x[16] = { 0x1p-13, ldexp(1, -(j / 2)) }, y[16] = { 0x1p-12, ldexp(1, j / 2 - j) };
        struct pattern p = { .c = 2 };
        for (int i = 0; i < 16; i++) {
            p.a[i] = (uint32_t)at_encode(AT_F16, x[i]);
            p.b[i] = (uint32_t)at_encode(AT_F16, y[i]);
        }
        const uint32_t here = multiply_add(t, ORACLE_NO_DOUBT, AS_IT_IS, &p);
        assert_int_equal(here, j <= 39 ? 3 : 2);
        assert_int_equal(multiply_add(t, ORACLE_C_LEADS, AS_IT_IS, &p), j <= 46 ? 3 : 2);
        at_assert_same(at_tc_multiply_add(t, NULL, x, y, 0x1p-23), at_decode(AT_F16, here));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_doubt_is_the_model),       cmocka_unit_test(test_doubts_are_told),
        cmocka_unit_test(test_what_cannot_be_told),         cmocka_unit_test(test_leading_c_is_a_neighbour),
        cmocka_unit_test(test_half_a_bit_of_a_subnormal_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
