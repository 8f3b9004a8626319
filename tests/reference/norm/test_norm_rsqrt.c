/* The declared 1 / sqrt of the RMS norms: the model has the bits of the special-function unit, subnormal mean squares
 * included, and no two ways to compute it are the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "rms_norm/rms_norm.h"
#include "special/parts.h"
#include "tests/support/norm_problem.h"

/* The model's y, as a code, of a row of one channel whose gamma is 1. */
static uint32_t modelled(const char *op, float x, float eps, int rsqrt) {
    const struct at_test_norm_shape shape = { .tokens = 1, .channels = 1, .dtype = AT_F32 };
    struct at_numerics numerics = at_numerics_default();
    struct at_test_problem made;
    struct at_test_eval model;
    at_test_norm_problem(at_op_find(op), &shape, &made);
    struct at_problem *p = &made.problem;
    at_test_set(p, "x", 0, (double)x);
    p->params.eps = eps;
    numerics.rsqrt = rsqrt;
    at_assert_ok(at_test_eval_init(p, 0, &model));
    at_assert_ok(p->op->model(p, &numerics, 0, 1, &model.eval));
    const uint32_t code = (uint32_t)at_encode(AT_F32, model.eval.value[at_op_tensor_index(p->op, "y")][0]);
    at_test_eval_release(&model);
    at_test_problem_release(&made);
    return code;
}

/* Codes of y: two correctly rounded operations, rsqrt.approx, rsqrt.approx.ftz. */
static void test_bits(void **state) {
    (void)state;
    static const struct {
        float x, eps;
        uint32_t y[3];
    } rows[] = {
        { 1,
          0x1.08p+0f,
          { 0x3f339f19, 0x3f339f18, 0x3f339f18 } }, /* a mean square of 0x1.04p+1, where the unit is farthest off */
        { 1, 3, { 0x3f000000, 0x3f000000, 0x3f000000 } },         /* of 4: exact */
        { 0x1p-70f, 0, { 0x3f800000, 0x3f800000, 0x7f800000 } },  /* of 2^-140: 0 with ftz */
        { 0x1p-100f, 0, { 0x7f800000, 0x7f800000, 0x7f800000 } }, /* of 0, which the square has become */
        { 0x1p-100f, 0x1p-140f, { 0x30800000, 0x30800000, 0x7f800000 } },
        { 0, 0x1p-140f, { 0, 0, 0x7fc00000 } },
        { 0, 0, { 0x7fc00000, 0x7fc00000, 0x7fc00000 } },
        { INFINITY, 1, { 0x7fc00000, 0x7fc00000, 0x7fc00000 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int rsqrt = AT_RSQRT_LIBM; rsqrt <= AT_RSQRT_APPROX_FTZ; rsqrt++)
            for (int add = 0; add < 2; add++) {
                const uint32_t got = modelled(add ? "add_rms_norm" : "rms_norm", rows[i].x, rows[i].eps, rsqrt);
                const int same = at_special_is_nan(rows[i].y[rsqrt]) ? at_special_is_nan(got) : got == rows[i].y[rsqrt];
                at_assert_true(same, "x %g, eps %g, rsqrt %d: %08x, wanted %08x", (double)rows[i].x,
                               (double)rows[i].eps, rsqrt, got, rows[i].y[rsqrt]);
            }
}

/* Over random mean squares the unit's results are its own, and a third of them are not those of two roundings. */
static void test_the_units_own_results(void **state) {
    (void)state;
    const long rows = 200 * at_test_effort(20);
    struct at_test_random random = { 7 };
    long other = 0;
    for (long i = 0; i < rows; i++) {
        const float m = (float)(1 + 3 * at_test_uniform(&random)), x = 1, eps = m - 1; /* 1 + eps is m to the bit */
        const float mean = x + eps;
        const uint32_t unit = at_special_rsqrt(at_special_code(mean), 0);
        assert_int_equal(modelled("rms_norm", x, eps, AT_RSQRT_APPROX), unit);
        assert_int_equal(modelled("rms_norm", x, eps, AT_RSQRT_LIBM), at_special_code(1 / sqrtf(mean)));
        other += unit != at_special_code(1 / sqrtf(mean));
    }
    print_message("%ld of %ld mean squares: the unit's 1 / sqrt is not that of two roundings\n", other, rows);
    assert_true(other > rows / 4 && other < rows / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_the_units_own_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
