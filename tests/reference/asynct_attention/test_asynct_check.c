/* What is no problem of AsyncT attention is refused with one clear line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/asynct_parameters.h"

static struct at_test_problem made;

static int setup(void **state) {
    (void)state;
    static const int sq[] = { 2 }, sk[] = { 5 };
    struct at_test_shape shape = { .b = 1, .h = 2, .d = 2, .page = 4, .sq = sq, .sk = sk, .dtype = AT_BF16 };
    return at_test_attention_problem(&at_op_asynct_attention, &shape, 1, &made) != AT_OK;
}

static int teardown(void **state) {
    (void)state;
    at_test_problem_release(&made);
    return 0;
}

#define REFUSED(part) at_assert_fails(at_op_asynct_attention.check(&made.problem), AT_USAGE, part)

static void test_good_problem(void **state) {
    (void)state;
    at_assert_ok(at_op_asynct_attention.check(&made.problem));
}

static void test_flags_and_gate(void **state) {
    (void)state;
    struct at_params *params = &made.problem.params;
    params->relu_pre = 2;
    REFUSED("relu_pre is 2");
    params->relu_pre = 1;
    params->edge = -1;
    REFUSED("edge is -1");
    params->edge = AT_EDGE_SHRINK;
    params->fir_form = AT_FIR_TAPS;
    REFUSED("edge=shrink");
    params->edge = AT_EDGE_ZERO;
    params->fir_form = 7;
    REFUSED("fir_form is 7");
    params->fir_form = AT_FIR_POOLED;
    params->clip_min = 2;
    REFUSED("gate is [2, 1]");
    params->clip_min = NAN;
    REFUSED("gate is [nan");
    params->clip_min = -INFINITY;
    REFUSED("gate is [-inf");
    params->clip_min = 0;
    params->clip_max = NAN;
    REFUSED("gate is [0, nan");
    params->clip_max = INFINITY;
    at_assert_ok(at_op_asynct_attention.check(&made.problem));
    params->scale = NAN;
    REFUSED("scale is nan");
}

static void test_parameter_tensors(void **state) {
    (void)state;
    at_test_set(&made.problem, "sigma", 1, NAN);
    REFUSED("sigma[1] is nan");
    at_test_set(&made.problem, "sigma", 1, 1);
    at_test_set(&made.problem, "gamma", 0, INFINITY);
    REFUSED("gamma[0] is inf");
    at_test_set(&made.problem, "gamma", 0, 1);
    at_test_set(&made.problem, "taps", 4, 0.33);
    REFUSED("taps[1][1] is 0.33");
    made.problem.params.fir_form = AT_FIR_TAPS;
    at_assert_ok(at_op_asynct_attention.check(&made.problem));
    at_test_set(&made.problem, "taps", 4, NAN);
    REFUSED("taps[4] is nan");
    made.problem.tensors[AT_ASYNCT_TAPS].data = NULL;
    REFUSED("tensor taps has 0 elements");
}

static void test_sizes(void **state) {
    (void)state;
    made.problem.sizes.taps = 0;
    REFUSED("size taps is 0");
    made.problem.sizes.taps = AT_ASYNCT_MAX_TAPS + 1;
    REFUSED("size taps is 17");
    made.problem.sizes.taps = 2;
    REFUSED("tensor taps has 6 elements");
    made.problem.sizes.taps = 3;
    ((int32_t *)made.problem.tensors[AT_ATTN_BLOCK_TABLE].data)[1] = 4;
    REFUSED("block_table[0][1] is 4");
}

/* Taps within two roundings of the exact ones pass, three do not. */
static void test_pooled_taps_may_be_rounded_twice(void **state) {
    (void)state;
    at_test_asynct_sigma(&made.problem, 1.1);
    const double exact = 1 - at_test_get(&made.problem, "sigma", 0) / 3, allowed = (2 - exact) * 0x1p-23;
    at_test_set(&made.problem, "taps", 0, exact + allowed * 0.7);
    at_assert_ok(at_op_asynct_attention.check(&made.problem));
    at_test_set(&made.problem, "taps", 0, exact + allowed * 1.5);
    REFUSED("taps[0][0]");
}

static void test_descriptor(void **state) {
    (void)state;
    const struct at_op *op = &at_op_asynct_attention;
    int64_t first, count;
    assert_int_equal(at_op_tensor_index(op, "sigma"), AT_ASYNCT_SIGMA);
    assert_int_equal(at_op_tensor_index(op, "taps"), AT_ASYNCT_TAPS);
    assert_int_equal(at_op_tensor_index(op, "gamma"), AT_ASYNCT_GAMMA);
    assert_int_equal(at_op_tensor_index(op, "o"), AT_ASYNCT_O);
    assert_int_equal(op->rows(&made.problem), 4);
    op->row_span(&made.problem, AT_ASYNCT_O, 3, &first, &count);
    assert_true(first == 6 && count == 2);
    op->row_span(&made.problem, AT_ATTN_Q, 3, &first, &count);
    assert_true(count == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good_problem, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flags_and_gate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parameter_tensors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pooled_taps_may_be_rounded_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_descriptor, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
