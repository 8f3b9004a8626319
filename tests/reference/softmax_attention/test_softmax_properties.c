/* What softmax attention must do whatever its values: identities that need no reference.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "softmax_attention/softmax_attention.h"
#include "tests/support/attention_problem.h"

static const struct at_op *const op = &at_op_softmax_attention;
static const int lengths[] = { 13, 6, 1, 0 }, queries[] = { 3, 2, 1, 2 };

static struct at_test_problem make(int page, int causal, enum at_format dtype, uint64_t seed) {
    struct at_test_problem p;
    struct at_test_shape shape = {
        .b = 4, .h = 4, .hk = 2, .d = 6, .page = page, .causal = causal, .dtype = dtype, .sq = queries, .sk = lengths
    };
    at_assert_ok(at_test_attention_problem(op, &shape, seed, &p));
    return p;
}

static struct at_test_eval evaluate(const struct at_problem *p) {
    struct at_test_eval e;
    at_assert_ok(op->check(p));
    at_assert_ok(at_test_eval_init(p, 0, &e));
    at_assert_ok(op->evaluate(p, NULL, 0, op->rows(p), &e.eval));
    return e;
}

/* Outputs of two problems of one shape, within `relative` of 1 + |a|. */
static void expect_equal(const struct at_problem *p, const struct at_test_eval *a, const struct at_test_eval *b,
                         double relative, double lse_shift) {
    for (int t = AT_SOFTMAX_O; t <= AT_SOFTMAX_LSE; t++)
        for (int64_t i = 0; i < at_test_count(p, t); i++) {
            double x = a->eval.value[t][i] + (t == AT_SOFTMAX_LSE ? lse_shift : 0), y = b->eval.value[t][i];
            if (isinf(x) || relative == 0)
                at_assert_same(y, x);
            else
                at_assert_within(y, x, relative * (1 + fabs(x)));
        }
}

/* Adding c to every score leaves o and moves lse by c: a channel where q is 1 and k is constant. */
static void test_shift(void **state) {
    (void)state;
    struct at_test_problem p = make(0, 1, AT_F32, 1);
    const int64_t rows = p.problem.sizes.tokens * p.problem.sizes.h, keys = p.problem.sizes.slots * p.problem.sizes.hk;
    for (int64_t r = 0; r < rows; r++)
        at_test_set(&p.problem, "q", r * 6 + 5, 1);
    for (int64_t r = 0; r < keys; r++)
        at_test_set(&p.problem, "k", r * 6 + 5, 0);
    struct at_test_eval before = evaluate(&p.problem);
    for (int64_t r = 0; r < keys; r++)
        at_test_set(&p.problem, "k", r * 6 + 5, 50);
    struct at_test_eval after = evaluate(&p.problem);
    expect_equal(&p.problem, &before, &after, 1e-13, 50 * (double)p.problem.params.scale);
    at_test_eval_release(&before);
    at_test_eval_release(&after);
    at_test_problem_release(&p);
}

/* Weights sum to one, so equal values are returned; and o stays between the least and the greatest value. */
static void test_mean(void **state) {
    (void)state;
    for (int causal = 0; causal <= 1; causal++) {
        struct at_test_problem p = make(4, causal, AT_BF16, 2);
        struct at_test_eval e = evaluate(&p.problem);
        int64_t strict = 0;
        for (int64_t row = 0; row < op->rows(&p.problem); row++) {
            struct at_attn_row at = at_attn_row(&p.problem, row);
            for (int64_t c = 0; c < 6 && at.visible > 0; c++) {
                double least = INFINITY, greatest = -INFINITY, o = e.eval.value[AT_SOFTMAX_O][row * 6 + c];
                for (int64_t t = 0; t < at.visible; t++) {
                    double v =
                        at_test_get(&p.problem, "v", at_attn_kv_index(&p.problem, at.request, t, at.kv_head) + c);
                    least = fmin(least, v);
                    greatest = fmax(greatest, v);
                }
                at_assert_true(o >= least - 1e-15 * fabs(least) && o <= greatest + 1e-15 * fabs(greatest),
                               "o = %g outside [%g, %g]", o, least, greatest);
                strict += o > least && o < greatest;
            }
        }
        at_assert_true(strict > 100, "only %lld means of different values", (long long)strict);
        at_test_eval_release(&e);
        at_test_set_all(&p.problem, "v", 1);
        e = evaluate(&p.problem);
        for (int64_t row = 0; row < op->rows(&p.problem); row++)
            for (int64_t c = 0; c < 6; c++)
                at_assert_within(e.eval.value[AT_SOFTMAX_O][row * 6 + c],
                                 at_attn_row(&p.problem, row).visible > 0 ? 1 : 0, 1e-14);
        at_test_eval_release(&e);
        at_test_problem_release(&p);
    }
}

static void copy_key(const struct at_test_problem *from, int64_t a, struct at_test_problem *to, int64_t b) {
    const char *names[] = { "k", "v" };
    for (int i = 0; i < 2; i++)
        for (int64_t c = 0; c < 12; c++) /* hk d */
            at_test_set(&to->problem, names[i], b * 12 + c, at_test_get(&from->problem, names[i], a * 12 + c));
}

/* Without a mask the order of the keys does not matter. */
static void test_permuted_keys(void **state) {
    (void)state;
    struct at_test_problem p = make(0, 0, AT_F16, 3), turned = make(0, 0, AT_F16, 3);
    for (int64_t t = 0; t < 13; t++)
        copy_key(&p, t, &turned, (t * 5 + 2) % 13);
    struct at_test_eval a = evaluate(&p.problem), b = evaluate(&turned.problem);
    expect_equal(&p.problem, &a, &b, 1e-14, 0);
    at_test_eval_release(&a);
    at_test_eval_release(&b);
    at_test_problem_release(&p);
    at_test_problem_release(&turned);
}

/* Keys behind the causal mask do not matter at all, not even as NaN. */
static void test_hidden_keys(void **state) {
    (void)state;
    struct at_test_problem p = make(0, 1, AT_F32, 4);
    struct at_test_eval a = evaluate(&p.problem);
    for (int64_t c = 0; c < 12; c++) {
        at_test_set(&p.problem, "k", 12 * 12 + c, (double)NAN);
        at_test_set(&p.problem, "v", 12 * 12 + c, (double)NAN);
    }
    struct at_test_eval b = evaluate(&p.problem);
    int64_t changed = 0;
    for (int64_t i = 0; i < at_test_count(&p.problem, AT_SOFTMAX_O); i++) {
        if (at_attn_row(&p.problem, i / 6).request == 0 && at_attn_row(&p.problem, i / 6).query == 2) {
            changed += isnan(b.eval.value[AT_SOFTMAX_O][i]); /* the last query sees it */
            continue;
        }
        at_assert_same(b.eval.value[AT_SOFTMAX_O][i], a.eval.value[AT_SOFTMAX_O][i]);
    }
    at_assert_true(changed == 24, "the last query saw %lld NaN", (long long)changed);
    at_test_eval_release(&a);
    at_test_eval_release(&b);
    at_test_problem_release(&p);
}

/* Two halves of the keys, each with its lse, give the whole: o = sum o_j e^lse_j / sum e^lse_j. */
static void test_split_merge(void **state) {
    (void)state;
    struct at_test_problem p = make(0, 0, AT_F32, 5), first = make(0, 0, AT_F32, 5), last = make(0, 0, AT_F32, 5);
    int32_t *keys = first.problem.tensors[AT_ATTN_SEQ_LENS].data;
    keys[0] = 5;
    keys = last.problem.tensors[AT_ATTN_SEQ_LENS].data;
    keys[0] = 8;
    for (int64_t t = 0; t < 8; t++)
        copy_key(&p, t + 5, &last, t);
    struct at_test_eval whole = evaluate(&p.problem), a = evaluate(&first.problem), b = evaluate(&last.problem);
    for (int64_t row = 0; row < 3 * 4; row++) {
        double x = a.eval.value[AT_SOFTMAX_LSE][row], y = b.eval.value[AT_SOFTMAX_LSE][row], m = fmax(x, y);
        double sum = exp(x - m) + exp(y - m);
        at_assert_within(m + log(sum), whole.eval.value[AT_SOFTMAX_LSE][row], 1e-14);
        for (int64_t i = row * 6; i < row * 6 + 6; i++)
            at_assert_within((a.eval.value[AT_SOFTMAX_O][i] * exp(x - m) + b.eval.value[AT_SOFTMAX_O][i] * exp(y - m)) /
                                 sum,
                             whole.eval.value[AT_SOFTMAX_O][i], 1e-14);
    }
    at_test_eval_release(&whole);
    at_test_eval_release(&a);
    at_test_eval_release(&b);
    at_test_problem_release(&p);
    at_test_problem_release(&first);
    at_test_problem_release(&last);
}

/* The same keys in pages and in a row, to the bit. */
static void test_paged_is_contiguous(void **state) {
    (void)state;
    for (int page = 1; page <= 7; page += 3) {
        struct at_test_problem p = make(page, 1, AT_BF16, 6), flat = make(0, 1, AT_BF16, 6);
        for (int r = 0; r < 4; r++)
            for (int64_t t = 0; t < lengths[r]; t++)
                copy_key(&p, at_attn_slot(&p.problem, r, t), &flat, at_attn_slot(&flat.problem, r, t));
        for (int64_t i = 0; i < 8 * 4 * 6; i++)
            at_test_set(&flat.problem, "q", i, at_test_get(&p.problem, "q", i));
        struct at_test_eval a = evaluate(&p.problem), b = evaluate(&flat.problem);
        expect_equal(&p.problem, &a, &b, 0, 0);
        at_test_eval_release(&a);
        at_test_eval_release(&b);
        at_test_problem_release(&p);
        at_test_problem_release(&flat);
    }
}

/* A query alone over all keys is the last row of the prefill; both layouts of the mask, exact and modelled. */
static void test_decode_is_last_prefill_row(void **state) {
    (void)state;
    const int sq = 5, sk = 21, one = 1;
    struct at_test_shape shape = {
        .b = 1, .h = 2, .hk = 1, .d = 16, .causal = 1, .dtype = AT_F16, .sq = &sq, .sk = &sk
    };
    struct at_test_problem prefill, decode;
    struct at_test_eval a, b;
    struct at_numerics numerics;
    at_assert_ok(at_numerics_parse("qk_unit=tc_f32 pv_unit=tc_f16 pv_chunk=16 p=f16 block=16", &numerics));
    at_assert_ok(at_test_attention_problem(op, &shape, 7, &prefill));
    shape.sq = &one;
    shape.causal = 0;
    at_assert_ok(at_test_attention_problem(op, &shape, 7, &decode));
    for (int64_t i = 0; i < 2 * 16; i++)
        at_test_set(&decode.problem, "q", i, at_test_get(&prefill.problem, "q", 4 * 2 * 16 + i));
    for (int64_t i = 0; i < 21 * 16; i++) {
        at_test_set(&decode.problem, "k", i, at_test_get(&prefill.problem, "k", i));
        at_test_set(&decode.problem, "v", i, at_test_get(&prefill.problem, "v", i));
    }
    for (int model = 0; model <= 1; model++) {
        at_assert_ok(at_test_eval_init(&prefill.problem, 0, &a));
        at_assert_ok(at_test_eval_init(&decode.problem, 0, &b));
        at_assert_ok((model ? op->model : op->evaluate)(&prefill.problem, &numerics, 0, 10, &a.eval));
        at_assert_ok((model ? op->model : op->evaluate)(&decode.problem, &numerics, 0, 2, &b.eval));
        for (int64_t i = 0; i < 2 * 16; i++)
            at_assert_same(b.eval.value[AT_SOFTMAX_O][i], a.eval.value[AT_SOFTMAX_O][4 * 2 * 16 + i]);
        for (int64_t i = 0; i < 2; i++)
            at_assert_same(b.eval.value[AT_SOFTMAX_LSE][i], a.eval.value[AT_SOFTMAX_LSE][4 * 2 + i]);
        at_test_eval_release(&a);
        at_test_eval_release(&b);
    }
    at_test_problem_release(&prefill);
    at_test_problem_release(&decode);
}

/* Requests that change places in the block table change nothing else; rows may be asked for one by one. */
static void test_request_order_and_row_ranges(void **state) {
    (void)state;
    struct at_test_problem p = make(4, 0, AT_F32, 8), turned = make(4, 0, AT_F32, 8);
    const int64_t pages = p.problem.sizes.max_pages;
    int32_t *table = turned.problem.tensors[AT_ATTN_BLOCK_TABLE].data;
    const int32_t *old = p.problem.tensors[AT_ATTN_BLOCK_TABLE].data;
    int32_t *keys = turned.problem.tensors[AT_ATTN_SEQ_LENS].data;
    /* requests 1 and 3 have two queries each: they change places */
    for (int64_t i = 0; i < pages; i++) {
        table[pages + i] = old[3 * pages + i];
        table[3 * pages + i] = old[pages + i];
    }
    keys[1] = lengths[3];
    keys[3] = lengths[1];
    for (int64_t i = 0; i < 2 * 24; i++) {
        at_test_set(&turned.problem, "q", 3 * 24 + i, at_test_get(&p.problem, "q", 6 * 24 + i));
        at_test_set(&turned.problem, "q", 6 * 24 + i, at_test_get(&p.problem, "q", 3 * 24 + i));
    }
    struct at_test_eval a = evaluate(&p.problem), b;
    at_assert_ok(at_test_eval_init(&p.problem, 0, &b));
    for (int64_t row = op->rows(&p.problem) - 1; row >= 0; row--)
        at_assert_ok(op->evaluate(&turned.problem, NULL, row, row + 1, &b.eval));
    for (int64_t i = 0; i < 8 * 24; i++) {
        int64_t token = i / 24, to = token == 3 || token == 4 ? token + 3 : token >= 6 ? token - 3 : token;
        at_assert_same(b.eval.value[AT_SOFTMAX_O][to * 24 + i % 24], a.eval.value[AT_SOFTMAX_O][i]);
    }
    at_test_eval_release(&a);
    at_test_eval_release(&b);
    at_test_problem_release(&p);
    at_test_problem_release(&turned);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shift),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_permuted_keys),
        cmocka_unit_test(test_hidden_keys),
        cmocka_unit_test(test_split_merge),
        cmocka_unit_test(test_paged_is_contiguous),
        cmocka_unit_test(test_decode_is_last_prefill_row),
        cmocka_unit_test(test_request_order_and_row_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
