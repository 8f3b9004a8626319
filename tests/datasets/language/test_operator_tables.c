/* The tables by which operators say what they are: complete, without contradiction, and what the wire and cases read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_keys.h"
#include "tests/at_test.h"
#include "tests/support/built_case.h"

/* Every key of an operator is one of the language or of its own table, and no key of that table is left out. */
static void test_keys(void **state) {
    (void)state;
    for (int o = 0; o < at_op_count(); o++) {
        const struct at_op *op = at_op_at(o);
        int n = 0, own = 0;
        for (; op->keys[n]; n++) {
            at_assert_true((at_key_find(op->keys[n]) != NULL) != (at_key_own(op, op->keys[n]) != NULL), "%s: key %s",
                           op->name, op->keys[n]);
            assert_int_equal(at_key_index(op, op->keys[n]), n);
            own += at_key_own(op, op->keys[n]) != NULL;
        }
        at_assert_true(n < 64, "%s: %d keys do not fit the bits of `given`", op->name, n);
        for (int i = 0; i < op->n_own; i++)
            own -= op->own[i].key != NULL;
        at_assert_true(own == 0, "%s: a key of its own table stands in its keys twice or not at all", op->name);
    }
}

/* What the wire carries: each scalar once, by a name of its own, at a place that holds what is put there. */
static void test_scalars(void **state) {
    (void)state;
    for (int o = 0; o < at_op_count(); o++) {
        const struct at_op *op = at_op_at(o);
        struct at_problem p;
        int n = 0;
        at_problem_init(&p, op, AT_BF16);
        for (; at_op_scalar_at(op, n); n++) {
            const struct at_scalar *scalar = at_op_scalar_at(op, n);
            assert_ptr_equal(at_op_scalar(op, scalar->name), scalar);
            at_assert_same(at_scalar_get(&p, scalar), (double)(float)scalar->value);
            at_scalar_set(&p, scalar, n + 1);
        }
        for (int i = 0; i < n; i++)
            at_assert_same(at_scalar_get(&p, at_op_scalar_at(op, i)), i + 1);
        assert_null(at_op_scalar_at(op, n));
        at_assert_true(op->n_own <= 32, "%s: its own table does not fit the bits of `given`", op->name);
        assert_null(at_op_scalar_at(op, -1));
        at_assert_true(n > 0 && n + 16 + 12 <= 96, "%s: %d scalars do not fit a job line", op->name, n);
    }
}

/* Dimensions are sizes that the operator has, each with a word; batches are cut along one of them. */
static void test_dimensions(void **state) {
    (void)state;
    for (int o = 0; o < at_op_count(); o++) {
        const struct at_op *op = at_op_at(o);
        struct at_problem p;
        at_problem_init(&p, op, AT_BF16);
        for (int t = 0; t < op->n_tensors; t++)
            for (int r = 0; r < AT_MAX_RANK && op->tensors[t].dims[r] != AT_DIM_NONE; r++) {
                const enum at_dim dim = op->tensors[t].dims[r];
                at_assert_true(dim < AT_DIM_OWN_FIRST || (int)dim - (int)AT_DIM_OWN_FIRST < op->n_own, "%s: %s",
                               op->name, op->tensors[t].name);
                at_assert_true(dim >= AT_DIM_b_plus_1 || op->uses >> ((int)dim - 1) & 1,
                               "%s: %s has a size it does not use", op->name, op->tensors[t].name);
                at_assert_true(strcmp(at_dim_word(op, dim), "index") != 0, "%s: %s", op->name, op->tensors[t].name);
            }
        if (op->batch != AT_DIM_NONE) {
            at_dim_set(&p, op->batch, 7);
            assert_int_equal(at_dim_size(&p, op->batch), 7);
        }
        assert_int_equal(op->part_sizes != NULL, op->part_fill != NULL);
        assert_int_equal(op->kind == AT_KIND_ATTENTION, op->weights != AT_WEIGHTS_NONE);
    }
}

/* Every input is filled by some case: none holds what memory happened to hold. */
static void test_fills(void **state) {
    (void)state;
    for (int o = 0; o < at_op_count(); o++) {
        const struct at_op *op = at_op_at(o);
        for (int t = 0; t < op->n_tensors; t++)
            assert_int_equal(op->tensors[t].fill == AT_FILL_NONE, op->tensors[t].role == AT_OUT);
    }
}

/* Keys of an operator's own table: words, sets in any order, formats, what follows from others. */
static void test_own_keys(void **state) {
    (void)state;
    static const struct {
        const char *line, *part;
    } rows[] = {
        { "gemm m=5 dtype=e4m3", "m=5 n=64 k=128 layout=nk dtype=e4m3 out=bf16 data=" },
        { "gemm dtype=f16", " out=f16 " },
        { "gemm scale_b=0.5 amax=1 bias=f32", " scale=auto scale_b=0.5 bias=f32 amax=1" },
        { "gemm dtype=f16 out=f32", " out=f32 " },
        { "score_counts sq=2 sk=3 attention=softmax dtype=f32",
          "attention=softmax bins=f16 what=q:k:v:raw:scaled:p:out:row_max:row_sum:entropy:support:share0 behind=0" },
        { "score_counts sq=2 sk=3 what=p:k:raw behind=4", " what=k:raw:p behind=4" },
        { "tensor_core", "instruction=hopper_mma_k16_f16_f32 stratum=ordinary" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct at_built_case built = at_build_line(rows[i].line);
        const char *id = built.list.items[0].id;
        at_assert_true(strstr(id, rows[i].part) != NULL, "%s: no \"%s\" in %s", rows[i].line, rows[i].part, id);
        at_drop_case(&built);
    }
    struct at_built_case plain = at_build_line("gemm m=5"); /* what no line asks for is in no id */
    assert_null(strstr(plain.list.items[0].id, "scale_a"));
    assert_null(strstr(plain.list.items[0].id, "bias"));
    assert_null(strstr(plain.list.items[0].id, "amax"));
    at_drop_case(&plain);
    struct at_case_list list = { 0 };
    at_assert_fails(at_case_parse("score_counts what=p::k", "r", "w", &list), AT_USAGE, "what: found ''");
    at_assert_fails(at_case_parse("score_counts what=row_mxa", "r", "w", &list), AT_USAGE, "did you mean 'row_max'");
    at_assert_fails(at_case_parse("score_counts attention=none", "r", "w", &list), AT_USAGE,
                    "wanted asynct or softmax");
    at_assert_fails(at_case_parse("score_counts bins=f32", "r", "w", &list), AT_USAGE, "wanted bf16 or f16");
    at_assert_fails(at_case_parse("score_counts behind=-1", "r", "w", &list), AT_USAGE, "from 0 to 16777216");
    at_assert_fails(at_case_parse("rms_norm behind=1", "r", "w", &list), AT_USAGE, "does not take this key");
    at_case_list_release(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),  cmocka_unit_test(test_scalars),  cmocka_unit_test(test_dimensions),
        cmocka_unit_test(test_fills), cmocka_unit_test(test_own_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
