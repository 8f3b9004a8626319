/* What must hold of AsyncT attention whatever the reference says: symmetries, linearity, layouts. Each is
 * checked of the exact value and of the declared-order model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/asynct_parameters.h"

enum { H = 4, HK = 2, D = 6 };

/* Values and model of a problem, one after the other. */
struct outputs {
    int64_t n;
    double *value; /* 2 n */
};

static struct outputs outputs(const struct at_problem *problem) {
    struct at_test_eval eval;
    struct at_numerics numerics = at_numerics_default();
    const int64_t rows = problem->op->rows(problem), n = at_test_count(problem, AT_ASYNCT_O);
    struct outputs out = { n, malloc((size_t)(2 * n + 1) * sizeof(double)) };
    numerics.p = AT_BF16;
    numerics.split = 5;
    assert_non_null(out.value);
    at_assert_ok(problem->op->check(problem));
    for (int model = 0; model < 2; model++) {
        at_assert_ok(at_test_eval_init(problem, 0, &eval));
        if (model)
            at_assert_ok(problem->op->model(problem, &numerics, 0, rows, &eval.eval));
        else
            at_assert_ok(problem->op->evaluate(problem, NULL, 0, rows, &eval.eval));
        memcpy(out.value + model * n, eval.eval.value[AT_ASYNCT_O], (size_t)n * sizeof(double));
        at_test_eval_release(&eval);
    }
    return out;
}

/* factor * a[from ..] == b[to ..], count elements of values and of the model. */
static void assert_part(const struct outputs *a, int64_t from, const struct outputs *b, int64_t to, int64_t count,
                        double factor) {
    for (int64_t i = 0; i < count; i++) {
        at_assert_same(factor * a->value[from + i], b->value[to + i]);
        at_assert_same(factor * a->value[a->n + from + i], b->value[b->n + to + i]);
    }
}

static void assert_all(const struct outputs *a, const struct outputs *b, double factor) {
    assert_int_equal(a->n, b->n);
    assert_part(a, 0, b, 0, a->n, factor);
}

static void make(struct at_test_problem *made, int b, const int *sq, const int *sk, int page, uint64_t seed) {
    struct at_test_shape shape = {
        .b = b, .h = H, .hk = HK, .d = D, .page = page, .sq = sq, .sk = sk, .causal = 1, .dtype = AT_F32
    };
    struct at_test_random random = { seed };
    at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, seed, made));
    at_test_asynct_parameters(&random, &made->problem);
    made->problem.params.clip_max = 2; /* no infinite gate: then zeros stay zeros of one sign */
    made->problem.params.clip_min = 0;
}

static void scale_all(struct at_problem *problem, const char *name, double factor) {
    int64_t n = at_tensor_count(&problem->tensors[at_op_tensor_index(problem->op, name)]);
    for (int64_t i = 0; i < n; i++)
        at_test_set(problem, name, i, factor * at_test_get(problem, name, i));
}

static void test_requests_may_be_permuted(void **state) {
    (void)state;
    static const int sq[] = { 2, 2, 2 }, sk[] = { 7, 3, 12 }, to[] = { 2, 0, 1 };
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct at_test_problem one, two;
        make(&one, 3, sq, sk, 4, seed);
        make(&two, 3, sq, sk, 4, seed);
        const int64_t columns = one.problem.sizes.max_pages, width = 2 * H * D;
        for (int r = 0; r < 3; r++) {
            at_test_set(&two.problem, "seq_lens", to[r], sk[r]);
            for (int64_t c = 0; c < columns; c++)
                at_test_set(&two.problem, "block_table", to[r] * columns + c,
                            ((const int32_t *)one.problem.tensors[AT_ATTN_BLOCK_TABLE].data)[r * columns + c]);
            for (int64_t i = 0; i < width; i++)
                at_test_set(&two.problem, "q", to[r] * width + i, at_test_get(&one.problem, "q", r * width + i));
        }
        struct outputs a = outputs(&one.problem), b = outputs(&two.problem);
        for (int r = 0; r < 3; r++)
            assert_part(&a, r * width, &b, to[r] * width, width, 1);
        free(a.value);
        free(b.value);
        at_test_problem_release(&one);
        at_test_problem_release(&two);
    }
}

/* v, gamma by powers of two scale o; q by 2 with k or scale by 1/2 changes nothing. */
static void test_powers_of_two(void **state) {
    (void)state;
    static const int sq[] = { 3, 1 }, sk[] = { 9, 14 };
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct at_test_problem made;
        make(&made, 2, sq, sk, 0, seed);
        struct outputs a = outputs(&made.problem);
        scale_all(&made.problem, "v", -4);
        struct outputs b = outputs(&made.problem);
        assert_all(&a, &b, -4);
        scale_all(&made.problem, "v", -0.25);
        scale_all(&made.problem, "gamma", 0.5);
        struct outputs c = outputs(&made.problem);
        assert_all(&a, &c, 0.5);
        scale_all(&made.problem, "gamma", 2);
        scale_all(&made.problem, "q", 2);
        scale_all(&made.problem, "k", 0.5);
        struct outputs e = outputs(&made.problem);
        assert_all(&a, &e, 1);
        scale_all(&made.problem, "k", 2);
        made.problem.params.scale /= 2;
        struct outputs g = outputs(&made.problem);
        assert_all(&a, &g, 1);
        struct outputs *all[] = { &a, &b, &c, &e, &g };
        for (int i = 0; i < 5; i++)
            free(all[i]->value);
        at_test_problem_release(&made);
    }
}

/* o(V + W) = o(V) + o(W), and o is proportional to gamma, up to the roundings of double. */
static void test_linear_in_v_and_gamma(void **state) {
    (void)state;
    static const int sq[] = { 3 }, sk[] = { 11 };
    struct at_test_problem made;
    make(&made, 1, sq, sk, 0, 4);
    double kept[11 * HK * D];
    struct outputs a = outputs(&made.problem);
    for (int i = 0; i < 11 * HK * D; i++) {
        kept[i] = at_test_get(&made.problem, "v", i);
        at_test_set(&made.problem, "v", i, (double)(i % 7 - 3));
    }
    struct outputs b = outputs(&made.problem);
    for (int i = 0; i < 11 * HK * D; i++) { /* the sum must be an f32 value: multiples of 2^-10 */
        double v = rint(kept[i] * 1024) / 1024;
        at_test_set(&made.problem, "v", i, v);
        kept[i] = v;
    }
    free(a.value);
    a = outputs(&made.problem);
    for (int i = 0; i < 11 * HK * D; i++)
        at_test_set(&made.problem, "v", i, kept[i] + (double)(i % 7 - 3));
    struct outputs c = outputs(&made.problem);
    for (int64_t i = 0; i < a.n; i++)
        at_assert_within(c.value[i], a.value[i] + b.value[i], 1e-13);
    for (int h = 0; h < H; h++)
        at_test_set(&made.problem, "gamma", h, 3 * at_round(AT_BF16, at_test_get(&made.problem, "gamma", h)));
    struct outputs e = outputs(&made.problem);
    for (int h = 0; h < H; h++)
        at_test_set(&made.problem, "gamma", h, at_test_get(&made.problem, "gamma", h) / 3);
    struct outputs g = outputs(&made.problem);
    for (int64_t i = 0; i < a.n; i++)
        at_assert_within(e.value[i], 3 * g.value[i], 1e-13);
    struct outputs *all[] = { &a, &b, &c, &e, &g };
    for (int i = 0; i < 5; i++)
        free(all[i]->value);
    at_test_problem_release(&made);
}

static void test_paged_is_contiguous(void **state) {
    (void)state;
    static const int sq[] = { 3, 0, 2, 1 }, sk[] = { 9, 4, 0, 17 }, pages[] = { 1, 4, 16, 7 };
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct at_test_problem one, two;
        make(&one, 4, sq, sk, 0, seed);
        make(&two, 4, sq, sk, pages[seed], seed);
        struct outputs a = outputs(&one.problem), b = outputs(&two.problem);
        assert_all(&a, &b, 1);
        for (int64_t i = 3 * H * D; i < 5 * H * D; i++) /* the request without keys */
            at_assert_same(a.value[i], 0.0);
        free(a.value);
        free(b.value);
        at_test_problem_release(&one);
        at_test_problem_release(&two);
    }
}

/* Copies count tensor rows of `width` values. */
static void copy(const struct at_problem *from, int64_t first, struct at_problem *into, int64_t to, const char *name,
                 int64_t count, int64_t width) {
    for (int64_t i = 0; i < count * width; i++)
        at_test_set(into, name, to * width + i, at_test_get(from, name, first * width + i));
}

/* 5 queries over 12 keys. The first 3 rows are those of 3 queries over 10 keys: what is hidden, even NaN,
 * has no effect. The last row is that of a decode step. */
static void test_prefix_and_decode(void **state) {
    (void)state;
    static const int sq[] = { 5 }, sk[] = { 12 }, fewer_sq[] = { 3 }, fewer_sk[] = { 10 }, one[] = { 1 };
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct at_test_problem full, prefix, decode;
        make(&full, 1, sq, sk, 0, seed);
        make(&prefix, 1, fewer_sq, fewer_sk, 0, seed);
        make(&decode, 1, one, sk, 4, seed);
        copy(&full.problem, 0, &prefix.problem, 0, "q", 3, H * D);
        copy(&full.problem, 0, &prefix.problem, 0, "k", 10, HK * D);
        copy(&full.problem, 0, &prefix.problem, 0, "v", 10, HK * D);
        copy(&full.problem, 4, &decode.problem, 0, "q", 1, H * D);
        struct outputs a = outputs(&full.problem), b = outputs(&prefix.problem), c = outputs(&decode.problem);
        assert_part(&a, 0, &b, 0, 3 * H * D, 1);
        assert_part(&a, 4 * H * D, &c, 0, H * D, 1);
        for (int i = 10 * HK * D; i < 12 * HK * D; i++) {
            at_test_set(&full.problem, "k", i, NAN);
            at_test_set(&full.problem, "v", i, NAN);
        }
        struct outputs e = outputs(&full.problem);
        assert_part(&a, 0, &e, 0, 3 * H * D, 1);
        assert_true(isnan(e.value[4 * H * D]));
        struct outputs *all[] = { &a, &b, &c, &e };
        for (int i = 0; i < 4; i++)
            free(all[i]->value);
        at_test_problem_release(&full);
        at_test_problem_release(&prefix);
        at_test_problem_release(&decode);
    }
}

/* Three requests on the same pages with the same query give the same rows as one alone. */
static void test_batch_of_copies(void **state) {
    (void)state;
    static const int one[] = { 1 }, ones[] = { 1, 1, 1 }, sk[] = { 13 }, sks[] = { 13, 13, 13 };
    struct at_test_problem alone, batch;
    make(&alone, 1, one, sk, 4, 8);
    make(&batch, 3, ones, sks, 4, 8);
    const int64_t columns = batch.problem.sizes.max_pages;
    for (int r = 0; r < 3; r++) {
        copy(&alone.problem, 0, &batch.problem, r, "q", 1, H * D);
        for (int64_t c = 0; c < columns; c++)
            at_test_set(&batch.problem, "block_table", r * columns + c,
                        ((const int32_t *)batch.problem.tensors[AT_ATTN_BLOCK_TABLE].data)[c]);
    }
    struct outputs a = outputs(&alone.problem), b = outputs(&batch.problem);
    for (int r = 0; r < 3; r++)
        assert_part(&a, 0, &b, r * H * D, H * D, 1);
    free(a.value);
    free(b.value);
    at_test_problem_release(&alone);
    at_test_problem_release(&batch);
}

/* Grouped heads are heads with copies of their key/value head. */
static void test_groups_are_copies(void **state) {
    (void)state;
    static const int sq[] = { 2 }, sk[] = { 9 };
    struct at_test_problem grouped, copied;
    struct at_test_shape shape = { .b = 1, .h = H, .d = D, .sq = sq, .sk = sk, .causal = 1, .dtype = AT_F32 };
    make(&grouped, 1, sq, sk, 0, 2);
    at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, 2, &copied));
    copied.problem.params = grouped.problem.params;
    copy(&grouped.problem, 0, &copied.problem, 0, "q", 2, H * D);
    copy(&grouped.problem, 0, &copied.problem, 0, "gamma", H, 1);
    copy(&grouped.problem, 0, &copied.problem, 0, "sigma", H, 1);
    copy(&grouped.problem, 0, &copied.problem, 0, "taps", H, 3);
    for (int t = 0; t < 9; t++)
        for (int h = 0; h < H; h++) {
            copy(&grouped.problem, t * HK + h / (H / HK), &copied.problem, t * H + h, "k", 1, D);
            copy(&grouped.problem, t * HK + h / (H / HK), &copied.problem, t * H + h, "v", 1, D);
        }
    struct outputs a = outputs(&grouped.problem), b = outputs(&copied.problem);
    assert_all(&a, &b, 1);
    free(a.value);
    free(b.value);
    at_test_problem_release(&grouped);
    at_test_problem_release(&copied);
}

static void keep_p(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values) {
    double *p = context;
    assert_int_equal(row, 0);
    if (stage == AT_STAGE_p)
        memcpy(p, values, (size_t)n * sizeof *p);
}

/* V = identity: the outputs are the gate's values. */
static void test_identity_shows_p(void **state) {
    (void)state;
    static const int one[] = { 1 }, sk[] = { 16 };
    struct at_test_shape shape = { .b = 1, .d = 16, .sq = one, .sk = sk, .dtype = AT_F16 };
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct at_test_problem made;
        struct at_test_eval eval;
        double p[16];
        int zeros = 0, inside = 0;
        at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, seed, &made));
        for (int i = 0; i < 256; i++)
            at_test_set(&made.problem, "v", i, i / 16 == i % 16);
        at_assert_ok(at_test_eval_init(&made.problem, 0, &eval));
        eval.eval.trace = keep_p;
        eval.eval.trace_context = p;
        at_assert_ok(at_asynct_evaluate(&made.problem, NULL, 0, 1, &eval.eval));
        for (int t = 0; t < 16; t++) {
            at_assert_same(eval.eval.value[AT_ASYNCT_O][t], p[t]);
            assert_true(p[t] >= 0 && p[t] <= 1);
            zeros += p[t] == 0;
            inside += p[t] > 0 && p[t] < 1;
        }
        assert_true(zeros > 0 && inside > 0);
        at_test_eval_release(&eval);
        at_test_problem_release(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_may_be_permuted), cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_linear_in_v_and_gamma),    cmocka_unit_test(test_paged_is_contiguous),
        cmocka_unit_test(test_prefix_and_decode),        cmocka_unit_test(test_batch_of_copies),
        cmocka_unit_test(test_groups_are_copies),        cmocka_unit_test(test_identity_shows_p),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
