/* Outputs of norm problems: the exact value and three declared arithmetics, compared to the bit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/norm_outputs.h"

#include "tests/at_test.h"

static struct at_numerics declaration(int i) {
    struct at_numerics numerics = at_numerics_default();
    numerics.qk_unit = (const int[]){ AT_UNIT_F32, AT_UNIT_F32_FMA, AT_UNIT_F64 }[i];
    numerics.qk_lanes = (const int[]){ 1, 4, 1 }[i];
    numerics.fir_fma = i == 1;
    return numerics;
}

struct at_norm_output at_norm_run(const struct at_problem *p, const char *name) {
    const int tensor = at_op_tensor_index(p->op, name);
    struct at_norm_output out = { at_test_count(p, tensor), NULL };
    out.value = malloc((size_t)((1 + AT_NORM_MODELS) * out.n + 1) * sizeof(double));
    assert_non_null(out.value);
    at_assert_ok(p->op->check(p));
    for (int i = 0; i <= AT_NORM_MODELS; i++) {
        struct at_test_eval eval;
        at_assert_ok(at_test_eval_init(p, 0, &eval));
        struct at_numerics numerics = declaration(i ? i - 1 : 0);
        if (i == 0)
            at_assert_ok(p->op->evaluate(p, NULL, 0, p->op->rows(p), &eval.eval));
        else
            at_assert_ok(p->op->model(p, &numerics, 0, p->op->rows(p), &eval.eval));
        memcpy(out.value + i * out.n, eval.eval.value[tensor], (size_t)out.n * sizeof(double));
        at_test_eval_release(&eval);
    }
    return out;
}

void at_norm_assert_part(const struct at_norm_output *a, int64_t from, const struct at_norm_output *b, int64_t to,
                         int64_t n, double factor) {
    for (int m = 0; m <= AT_NORM_MODELS; m++)
        for (int64_t i = 0; i < n; i++)
            at_assert_same(factor * a->value[m * a->n + from + i], b->value[m * b->n + to + i]);
}

void at_norm_assert_outputs(const struct at_problem *p, const char *name, const struct at_problem *q, const char *other,
                            double factor) {
    struct at_norm_output a = at_norm_run(p, name), b = at_norm_run(q, other);
    assert_true(a.n == b.n && a.n > 0);
    at_norm_assert_part(&a, 0, &b, 0, a.n, factor);
    free(a.value);
    free(b.value);
}

static void fill(struct at_problem *p, uint64_t seed) {
    struct at_test_random random = { seed };
    for (int t = 0; t < p->op->n_tensors; t++) {
        const char *name = p->op->tensors[t].name;
        for (int64_t i = 0; p->op->tensors[t].role != AT_OUT && i < at_tensor_count(&p->tensors[t]); i++)
            at_test_set(p, name, i, (name[0] == 'b' ? 0.25 : 1) * at_test_normal(&random));
    }
}

void at_norm_make(const char *op, enum at_format dtype, uint64_t seed, struct at_test_problem *made) {
    struct at_test_norm_shape shape = {
        .tokens = AT_NORM_TOKENS, .channels = AT_NORM_CHANNELS, .h = 2, .hk = 2, .dtype = dtype
    };
    at_test_norm_problem(at_op_find(op), &shape, made);
    fill(&made->problem, seed);
}

int64_t at_norm_count(const struct at_problem *p, const char *name) {
    return at_tensor_count(&p->tensors[at_op_tensor_index(p->op, name)]);
}

void at_norm_scale(struct at_problem *p, const char *name, double factor) {
    for (int64_t i = 0; i < at_norm_count(p, name); i++)
        at_test_set(p, name, i, factor * at_test_get(p, name, i));
}

void at_norm_copy(struct at_problem *to, const char *name, const struct at_problem *from, const char *other) {
    assert_int_equal(at_norm_count(to, name), at_norm_count(from, other));
    for (int64_t i = 0; i < at_norm_count(to, name); i++)
        at_test_set(to, name, i, at_test_get(from, other, i));
}
