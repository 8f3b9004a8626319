/* What the norms refuse: sizes, parameters, tensors and declarations that have no meaning.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/norm_problem.h"

static const struct at_test_norm_shape shape = { .tokens = 3, .channels = 8, .h = 2, .hk = 1, .dtype = AT_F32 };

/* A problem of one norm with `change` is refused for `part`, and is right without. */
#define REFUSED(op, change, part) \
    do { \
        struct at_test_problem made; \
        at_test_norm_problem(op, &shape, &made); \
        struct at_problem *p = &made.problem; \
        at_assert_ok((op)->check(p)); \
        change; \
        at_assert_fails((op)->check(p), AT_USAGE, part); \
        at_test_problem_release(&made); \
    } while (0)

static void test_sizes_and_parameters(void **state) {
    (void)state;
    for (int i = 0; i < AT_TEST_NORMS; i++) {
        const struct at_op *op = at_test_norm_op(i);
        REFUSED(op, p->sizes.tokens = -1, "tokens is -1, wanted 0 or more");
        if (at_op_tensor_index(op, "q") >= 0) {
            REFUSED(op, p->sizes.h = 0, "h, hk, d are 0, 1, 8, wanted 1 or more");
            REFUSED(op, p->sizes.hk = 0, "h, hk, d are 2, 0, 8, wanted 1 or more");
            REFUSED(op, p->sizes.d = -1, "h, hk, d are 2, 1, -1, wanted 1 or more");
            REFUSED(op, at_scalar_set(p, at_op_scalar(op, "gamma_per"), 2), "gamma_per is 2, wanted 0 or 1");
            REFUSED(op, at_scalar_set(p, at_op_scalar(op, "gamma_per"), 1), "gammas is 8, wanted 1");
        } else {
            REFUSED(op, p->sizes.channels = 0, "channels is 0, wanted 1 or more");
        }
        REFUSED(op, (p->params.lo = 2, p->params.hi = 1), "lo is 2 and hi is 1");
        REFUSED(op, p->params.hi = NAN, "wanted lo <= hi");
        REFUSED(op, p->params.eps = -1e-6f, "wanted a finite number of 0 or more");
        REFUSED(op, p->params.eps = INFINITY, "wanted a finite number of 0 or more");
        REFUSED(op, p->params.eps = NAN, "wanted a finite number of 0 or more");
    }
}

static void test_tensors(void **state) {
    (void)state;
    for (int i = 0; i < AT_TEST_NORMS; i++) {
        const struct at_op *op = at_test_norm_op(i);
        for (int t = 0; t < op->n_tensors; t++) {
            REFUSED(op, p->tensors[t].shape[0]--, op->tensors[t].name);
            REFUSED(op, p->tensors[t].rank = 0, "dimension 0 is -1, wanted");
            if (op->tensors[t].role != AT_OUT)
                REFUSED(op, p->tensors[t].data = NULL, "has no data");
        }
    }
}

/* Nothing is modelled where no order is declared, and nothing is computed in units that norms do not have. */
static void test_declarations(void **state) {
    (void)state;
    for (int i = 0; i < AT_TEST_NORMS; i++) {
        const struct at_op *op = at_test_norm_op(i);
        struct at_test_problem made;
        struct at_test_eval eval;
        struct at_numerics numerics = at_numerics_default();
        at_test_norm_problem(op, &shape, &made);
        at_assert_ok(at_test_eval_init(&made.problem, 0, &eval));
        numerics.qk_unit = AT_UNIT_F64;
        at_assert_ok(op->model(&made.problem, &numerics, 0, 3, &eval.eval));
        numerics.free_order = 1;
        at_assert_fails(op->model(&made.problem, &numerics, 0, 3, &eval.eval), AT_UNSUPPORTED, "no order is declared");
        at_assert_ok(op->evaluate(&made.problem, &numerics, 0, 3, &eval.eval));
        numerics.qk_unit = AT_UNIT_TC_F32;
        at_assert_fails(op->evaluate(&made.problem, &numerics, 0, 3, &eval.eval), AT_UNSUPPORTED,
                        "qk_unit declares another unit");
        at_test_eval_release(&eval);
        at_test_problem_release(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_and_parameters),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_declarations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
