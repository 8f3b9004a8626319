/* Rotations against MPFR, and tables as cases fill them; the model lies within the limit of exact values, to all formats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "rope/rope.h"
#include "tests/oracle/rope_mpfr.h"
#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"

static const char *const lines[] = {
    "rope b=3 sq=3/9/0 prefix=14/300/1 h=3 hk=1 d=10 dtype=bf16 seed=2",
    "rope b=2 sq=3/9 prefix=14/0 h=4 hk=2 d=64 rot=24 style=interleaved dtype=f16 padding=2",
    "rope b=1 sq=7 prefix=5000 h=2 hk=1 d=33 table=input base=100 dtype=f32 data=heavy_tail",
    "rope b=2 sq=3/9 h=2 hk=2 d=16 rot=2 table=input style=interleaved dtype=bf16 data=random_bits",
    "rope b=2 sq=3/9 h=2 hk=2 d=16 data=subnormal dtype=f32",
    "rope b=2 sq=3/9 prefix=7 h=2 hk=2 d=16 data=nonfinite dtype=f32",
    "rope b=2 sq=3/9 prefix=7 h=2 hk=2 d=16 data=exact dtype=f16",
};

/* The one rounding in double, and MPFR's own of the difference. */
static void assert_near(const struct at_problem *p, int t, const struct at_test_eval *eval) {
    for (int64_t i = 0; i < at_test_count(p, t); i++) {
        const double value = eval->eval.value[t][i];
        double off;
        const double want = at_rope_mpfr(p, p->op->tensors[t].name, i, value, &off);
        at_assert_same(value, want);
        if (isfinite(want))
            at_assert_within(off, 0, 0x1.001p-53 * fabs(want));
    }
}

/* The reference's own bound holds; rounded as declared, fused or not, values stay within their limit. */
static void assert_model(const struct at_problem *p, int fused, const struct at_test_eval *exact) {
    struct at_numerics numerics = at_numerics_default();
    struct at_test_eval limits, model;
    numerics.fir_fma = fused;
    at_assert_ok(at_test_eval_init(p, 1, &limits));
    at_assert_ok(at_test_eval_init(p, 1, &model));
    at_assert_ok(p->op->evaluate(p, &numerics, 0, p->op->rows(p), &limits.eval));
    at_assert_ok(p->op->model(p, &numerics, 0, p->op->rows(p), &model.eval));
    for (int t = AT_ROPE_Q_OUT; t <= AT_ROPE_K_OUT; t++)
        for (int64_t i = 0; i < at_test_count(p, t); i++) {
            const double want = exact->eval.value[t][i], got = model.eval.value[t][i];
            at_assert_same(limits.eval.value[t][i], want);
            at_assert_same(model.eval.limit[t][i], 0.0);
            at_assert_same(got, at_round(p->dtype, got));
            if (isfinite(want) && limits.eval.limit[t][i] < (double)INFINITY)
                at_assert_within(got, want, limits.eval.limit[t][i]);
            else if (!isfinite(want))
                at_assert_same(got, want);
        }
    at_test_eval_release(&limits);
    at_test_eval_release(&model);
}

static void test_values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct at_built_case built = at_build_line(lines[i]);
        const struct at_problem *p = &built.data.problem;
        struct at_test_eval exact;
        at_assert_ok(at_test_eval_init(p, 1, &exact));
        for (int64_t row = 0; row < p->op->rows(p); row++)
            at_assert_ok(p->op->evaluate(p, NULL, row, row + 1, &exact.eval));
        for (int t = AT_ROPE_Q_OUT; t <= AT_ROPE_K_OUT; t++)
            assert_near(p, t, &exact);
        assert_model(p, 0, &exact);
        assert_model(p, 1, &exact);
        at_test_eval_release(&exact);
        at_drop_case(&built);
    }
}

/* Rounded once to the table's format; quarters for exact data. */
static void test_table(void **state) {
    (void)state;
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        struct at_built_case built = at_build_line(lines[l]);
        const struct at_problem *p = &built.data.problem;
        const struct at_rope_own own = at_rope_own_of(p);
        const struct at_tensor *table = &p->tensors[AT_ROPE_COS_SIN];
        const struct at_format_info *f = at_format_info(table->format);
        assert_int_equal(table->format, own.table == AT_ROPE_TABLE_F32 ? AT_F32 : p->dtype);
        for (int64_t i = 0; i < at_tensor_count(table); i++) {
            const int64_t position = i / own.rot, column = i % own.rot;
            const double value = at_tensor_get(table, i);
            if (strstr(lines[l], "exact")) {
                assert_true(fabs(value) <= 1 && value != 0 && value * 4 == rint(value * 4));
                continue;
            }
            /* half a step of the format, and the angle */
            const double bound = f->u * fabs(value) * 1.01 + f->eta + 3e-16 + 1e-14 * (double)position;
            at_assert_within(at_rope_mpfr_entry((double)own.base, own.rot, position, column, value), 0, bound);
        }
        at_drop_case(&built);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_values), cmocka_unit_test(test_table) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
