/* The operator of one tensor-core instruction: its exact values against 1200-bit sums, its limits against the modelled
 * arithmetic of every instruction on every stratum of patterns, its decoys, what it refuses.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <mpfr.h>

#include "datasets/fill/tc_patterns.h"
#include "dot_product_add/dot_product_add.h"

/* PRECISION holds any sum of products of bf16 or tf32 without rounding: 2^-298 to 2^256 and the carries. */
enum { ROWS = 64, PRECISION = 1200 };

struct scene {
    struct at_problem problem;
    const struct at_tc_instruction *instruction;
    uint32_t a[ROWS * AT_TC_BLOCK_MAX], b[ROWS * AT_TC_BLOCK_MAX];
    float c[ROWS];
    double value[ROWS], limit[ROWS], model[ROWS];
};

static void set(struct scene *s, int instruction, enum at_tc_stratum stratum, uint64_t seed) {
    s->instruction = at_tc_instruction_at(instruction);
    at_problem_init(&s->problem, &at_op_dot_product_add, AT_F32);
    at_dpa_own_set(&s->problem, &(struct at_dpa_own){ instruction });
    s->problem.sizes.tokens = ROWS;
    s->problem.sizes.channels = s->instruction->k;
    at_problem_shape(&s->problem);
    s->problem.tensors[AT_DPA_A].data = s->a;
    s->problem.tensors[AT_DPA_B].data = s->b;
    s->problem.tensors[AT_DPA_C].data = s->c;
    at_tc_pattern_rows(s->instruction, stratum, seed, 0, ROWS, s->a, s->b, s->c);
    at_assert_ok(at_op_dot_product_add.check(&s->problem));
}

static void evaluate(struct scene *s) {
    struct at_eval eval = { 0 }, model = { 0 };
    eval.value[AT_DPA_D] = s->value;
    eval.limit[AT_DPA_D] = s->limit;
    model.value[AT_DPA_D] = s->model;
    at_assert_ok(at_op_dot_product_add.evaluate(&s->problem, NULL, 0, ROWS, &eval));
    at_assert_ok(at_op_dot_product_add.model(&s->problem, NULL, 0, ROWS, &model));
}

/* d = c * addend + the first n products of a row, without rounding, and the sum of its terms' magnitudes; 0: it has a
 * NaN or an infinity. */
static int exact(const struct scene *s, int row, int addend, int n, mpfr_t d, double *reach) {
    const struct at_tc_instruction *t = s->instruction;
    mpfr_t product;
    mpfr_init2(product, PRECISION);
    mpfr_set_d(d, addend ? (double)s->c[row] : 0, MPFR_RNDN);
    int finite = isfinite(s->c[row]);
    *reach = fabs((double)s->c[row]);
    for (int i = 0; i < t->k; i++) {
        const double a = at_decode(t->a, s->a[row * t->k + i]), b = at_decode(t->b, s->b[row * t->k + i]);
        finite &= isfinite(a) && isfinite(b);
        if (!finite || i >= n)
            continue;
        mpfr_set_d(product, a, MPFR_RNDN);
        mpfr_mul_d(product, product, b, MPFR_RNDN);
        mpfr_add(d, d, product, MPFR_RNDN);
        *reach += fabs(a * b);
    }
    mpfr_clear(product);
    return finite;
}

/* |x - d|, rounded up; d is not changed. */
static double distance(double x, const mpfr_t d) {
    mpfr_t off;
    mpfr_init2(off, PRECISION);
    mpfr_sub_d(off, d, x, MPFR_RNDN);
    const double result = fabs(mpfr_get_d(off, MPFR_RNDA));
    mpfr_clear(off);
    return result;
}

/* What sums in 64 bits and one rounding to double may be off by. */
static double own_error(const mpfr_t d, double reach, int k) {
    return ldexp(fabs(mpfr_get_d(d, MPFR_RNDA)), -53) + (k + 1) * ldexp(reach, -63) + 0x1p-1074;
}

static void test_values_and_limits(void **state) {
    (void)state;
    static struct scene s;
    mpfr_t d;
    mpfr_init2(d, PRECISION);
    for (int i = 0; i < at_tc_instruction_count(); i++) {
        double worst = 0;
        long limited = 0, unlimited = 0;
        for (int stratum = 0; stratum < AT_TC_STRATA; stratum++)
            for (long seed = 0; seed < at_test_effort(20); seed++) {
                set(&s, i, (enum at_tc_stratum)stratum, (uint64_t)seed);
                evaluate(&s);
                for (int row = 0; row < ROWS; row++) {
                    double reach;
                    if (!exact(&s, row, 1, s.instruction->k, d, &reach)) {
                        at_assert_same(s.limit[row], INFINITY);
                        at_assert_true(!isfinite(s.value[row]) && !isfinite(s.model[row]), "%s, %s: row %d is finite",
                                       s.instruction->name, at_tc_stratum_name((enum at_tc_stratum)stratum), row);
                        unlimited++;
                        continue;
                    }
                    at_assert_within(distance(s.value[row], d), 0, own_error(d, reach, s.instruction->k));
                    if (isinf(s.limit[row])) { /* a sum on the way may leave the accumulator's range */
                        unlimited++;
                        continue;
                    }
                    const double off = distance(s.model[row], d);
                    at_assert_true(off <= s.limit[row], "%s, %s, seed %ld, row %d: model %a is off by %g, limit %g",
                                   s.instruction->name, at_tc_stratum_name((enum at_tc_stratum)stratum), seed, row,
                                   s.model[row], off, s.limit[row]);
                    worst = fmax(worst, s.limit[row] > 0 ? off / s.limit[row] : 0);
                    limited++;
                }
            }
        at_assert_true(limited > ROWS && unlimited > 0, "%s: %ld with a limit, %ld without", s.instruction->name,
                       limited, unlimited);
        at_assert_true(worst > 0.05, "%s: no pattern comes nearer to its limit than %g of it", s.instruction->name,
                       worst);
    }
    mpfr_clear(d);
}

/* A range of rows gives what all of them give, limits where they are asked for. */
static void test_some_rows(void **state) {
    (void)state;
    static struct scene s;
    double value[ROWS];
    struct at_eval eval = { 0 };
    eval.value[AT_DPA_D] = value;
    set(&s, 0, AT_TC_ordinary, 3);
    evaluate(&s);
    memset(value, 0, sizeof value);
    at_assert_ok(at_op_dot_product_add.evaluate(&s.problem, NULL, 5, 9, &eval));
    for (int row = 0; row < ROWS; row++)
        at_assert_same(value[row], row >= 5 && row < 9 ? s.value[row] : 0);
    int64_t first, count;
    assert_int_equal(at_op_dot_product_add.rows(&s.problem), ROWS);
    at_op_dot_product_add.row_span(&s.problem, AT_DPA_D, 7, &first, &count);
    assert_int_equal(first, 7);
    assert_int_equal(count, 1);
    at_assert_same(at_op_dot_product_add.row_work(&s.problem, 7), s.instruction->k);
}

static void test_decoys(void **state) {
    (void)state;
    static struct scene s;
    mpfr_t d;
    mpfr_init2(d, PRECISION);
    assert_int_equal(at_op_dot_product_add.n_decoys, 2);
    for (int i = 0; i < at_tc_instruction_count(); i++)
        for (int which = 0; which < 2; which++) {
            double wrong[ROWS], reach;
            int beyond = 0;
            struct at_eval eval = { 0 };
            eval.value[AT_DPA_D] = wrong;
            set(&s, i, AT_TC_ordinary, 11);
            evaluate(&s);
            at_assert_ok(at_op_dot_product_add.decoy(&s.problem, NULL, which, 0, ROWS, &eval));
            for (int row = 0; row < ROWS; row++) {
                assert_true(exact(&s, row, which != 0, s.instruction->k - (which == 1), d, &reach));
                at_assert_within(distance(wrong[row], d), 0, own_error(d, reach, s.instruction->k));
                beyond += !(fabs(wrong[row] - s.value[row]) <= s.limit[row]);
            }
            at_assert_true(beyond > ROWS / 8, "%s: decoy %d is beyond its limit in %d of %d rows", s.instruction->name,
                           which, beyond, ROWS);
        }
    mpfr_clear(d);
}

static void test_check(void **state) {
    (void)state;
    static struct scene s;
    at_status (*const check)(const struct at_problem *) = at_op_dot_product_add.check;
    for (int i = -1; i <= at_tc_instruction_count(); i += at_tc_instruction_count() + 1) {
        set(&s, 0, AT_TC_ordinary, 0);
        at_dpa_own_set(&s.problem, &(struct at_dpa_own){ i });
        at_assert_true(at_dpa_instruction(&s.problem) == NULL, "instruction %d", i);
        at_assert_fails(check(&s.problem), AT_USAGE, "instruction is");
    }
    set(&s, 0, AT_TC_ordinary, 0);
    s.problem.sizes.channels++;
    at_assert_fails(check(&s.problem), AT_USAGE, "tokens, channels are");
    set(&s, 0, AT_TC_ordinary, 0);
    s.problem.sizes.tokens = -1;
    at_assert_fails(check(&s.problem), AT_USAGE, "tokens, channels are -1");
    for (int tensor = 0; tensor < AT_DPA_D; tensor++) {
        set(&s, 0, AT_TC_ordinary, 0);
        s.problem.tensors[tensor].shape[0]--;
        at_assert_fails(check(&s.problem), AT_USAGE, at_op_dot_product_add.tensors[tensor].name);
        set(&s, 0, AT_TC_ordinary, 0);
        s.problem.tensors[tensor].data = NULL;
        at_assert_fails(check(&s.problem), AT_USAGE, "with data");
        s.problem.sizes.tokens = 0; /* nothing is wanted of nothing */
        at_problem_shape(&s.problem);
        at_assert_ok(check(&s.problem));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_and_limits),
        cmocka_unit_test(test_some_rows),
        cmocka_unit_test(test_decoys),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
