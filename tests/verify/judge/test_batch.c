/* Parts of a batch: every request, token, key and page arrives with its own rows, in any order, and gives the same
 * exact values as in the whole.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/attention.h"
#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "verify/judge/batch.h"

/* `count` elements of tensor t, from `from` in one problem and `to` in the other, have the same bits. */
static void assert_codes(const struct at_tensor *a, int64_t from, const struct at_tensor *b, int64_t to, int64_t count,
                         const char *what) {
    assert_int_equal(a->format, b->format);
    for (int64_t i = 0; i < count; i++)
        at_assert_true(
            at_load_code(a->format, a->data, (size_t)(from + i)) == at_load_code(b->format, b->data, (size_t)(to + i)),
            "%s: element %lld is not element %lld of the whole", what, (long long)(to + i), (long long)(from + i));
}

/* Exact values of all rows; [tensor][element]. */
static struct at_test_eval evaluate(const struct at_problem *p) {
    struct at_test_eval eval;
    at_assert_ok(at_test_eval_init(p, 0, &eval));
    at_assert_ok(p->op->evaluate(p, NULL, 0, p->op->rows(p), &eval.eval));
    return eval;
}

/* The exact values of the part's rows are those of the whole's, to the bit. */
static void assert_same_values(const struct at_problem *whole, const struct at_batch_part *part) {
    struct at_test_eval all = evaluate(whole), some = evaluate(&part->problem);
    int64_t rows = 0;
    for (int64_t u = 0; u < part->n; u++) {
        int64_t first, count, part_first, part_count, from, to, n, part_n;
        at_batch_rows(whole, part->requests[u], &first, &count);
        at_batch_rows(&part->problem, u, &part_first, &part_count);
        assert_int_equal(count, part_count);
        assert_int_equal(part_first, rows);
        rows += count;
        for (int64_t k = 0; k < count; k++)
            for (int t = 0; t < whole->op->n_tensors; t++) {
                if (whole->op->tensors[t].role == AT_IN)
                    continue;
                whole->op->row_span(whole, t, first + k, &from, &n);
                whole->op->row_span(&part->problem, t, part_first + k, &to, &part_n);
                assert_int_equal(n, part_n);
                for (int64_t i = 0; i < n; i++)
                    at_assert_same(some.eval.value[t][to + i], all.eval.value[t][from + i]);
            }
    }
    assert_int_equal(rows, part->problem.op->rows(&part->problem));
    at_test_eval_release(&all);
    at_test_eval_release(&some);
}

/* What every part promises: sizes, shapes, outputs without memory, inputs of its own, parameters as they were. */
static struct at_batch_part gather(const struct at_problem *whole, const int64_t *units, int64_t n) {
    struct at_batch_part part;
    at_assert_ok(at_batch_gather(whole, units, n, &part));
    at_assert_ok(part.problem.op->check(&part.problem));
    assert_int_equal(part.n, n);
    assert_int_equal(at_batch_units(&part.problem), n);
    assert_memory_equal(&part.problem.params, &whole->params, sizeof whole->params);
    for (int t = 0; t < whole->op->n_tensors; t++) {
        const struct at_tensor *to = &part.problem.tensors[t];
        if (whole->op->tensors[t].role == AT_OUT)
            assert_null(to->data);
        else
            assert_true(!to->data || to->data != whole->tensors[t].data);
        assert_true((uintptr_t)to->data % 4 == 0);
    }
    for (int64_t u = 0; u < n; u++)
        assert_int_equal(part.requests[u], units[u]);
    assert_same_values(whole, &part);
    return part;
}

static int32_t index_at(const struct at_problem *p, int tensor, int64_t i) {
    return at_tensor_i32(&p->tensors[tensor], i);
}

/* Queries, keys and values of every request, as the layout finds them. */
static void assert_requests(const struct at_problem *whole, const struct at_batch_part *part) {
    const struct at_problem *p = &part->problem;
    const int64_t row = p->sizes.hk * p->sizes.d, query = p->sizes.h * p->sizes.d;
    int64_t tokens = 0, keys = 0, max_sq = 0, max_sk = 0;
    for (int64_t u = 0; u < part->n; u++) {
        const int64_t r = part->requests[u], q0 = index_at(whole, AT_ATTN_QUERY_START, r);
        const int64_t sq = index_at(whole, AT_ATTN_QUERY_START, r + 1) - q0, sk = index_at(whole, AT_ATTN_SEQ_LENS, r);
        assert_int_equal(index_at(p, AT_ATTN_QUERY_START, u), tokens);
        assert_int_equal(index_at(p, AT_ATTN_QUERY_START, u + 1), tokens + sq);
        assert_int_equal(index_at(p, AT_ATTN_SEQ_LENS, u), sk);
        if (sq)
            assert_codes(&whole->tensors[AT_ATTN_Q], q0 * query, &p->tensors[AT_ATTN_Q], tokens * query, sq * query,
                         "q");
        for (int64_t t = 0; t < sk; t++)
            for (int which = AT_ATTN_K; which <= AT_ATTN_V; which++)
                assert_codes(&whole->tensors[which], at_attn_kv_index(whole, r, t, 0), &p->tensors[which],
                             at_attn_kv_index(p, u, t, 0), row, which == AT_ATTN_K ? "k" : "v");
        tokens += sq;
        keys += sk;
        max_sq = sq > max_sq ? sq : max_sq;
        max_sk = sk > max_sk ? sk : max_sk;
    }
    assert_int_equal(p->sizes.b, part->n);
    assert_int_equal(p->sizes.tokens, tokens);
    assert_int_equal(p->sizes.max_sq, max_sq);
    assert_int_equal(p->sizes.max_sk, max_sk);
    assert_int_equal(p->sizes.slots, p->sizes.page ? whole->sizes.slots : keys);
}

/* Several requests of five: one, none in order, all backwards, one of them twice. */
static void try_parts(const struct at_problem *whole) {
    static const struct {
        int64_t n, units[6];
    } parts[] = { { 1, { 0 } },
                  { 1, { 2 } },
                  { 1, { 4 } },
                  { 2, { 3, 1 } },
                  { 3, { 1, 2, 4 } },
                  { 5, { 4, 3, 2, 1, 0 } },
                  { 5, { 0, 1, 2, 3, 4 } },
                  { 6, { 3, 3, 0, 2, 1, 3 } } };
    assert_int_equal(at_batch_units(whole), 5);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct at_batch_part part = gather(whole, parts[i].units, parts[i].n);
        assert_requests(whole, &part);
        at_batch_release(&part);
        assert_null(part.memory);
    }
}

static void contiguous_requests(void **state) {
    (void)state;
    static const char *const lines[] = {
        "asynct_decode b=5 h=4 hk=2 sk=7/1/12/3/9 d=8 dtype=f32",
        "asynct_prefill b=5 h=2 hk=1 sq=3/1/4/2/6 sk=7/1/12/3/9 d=8 causal=1 dtype=bf16",
        "softmax_prefill b=5 h=2 hk=2 sq=3/1/4/2/6 d=8 causal=1 dtype=f16",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct at_built_case built = at_build_line(lines[i]);
        try_parts(&built.data.problem);
        at_drop_case(&built);
    }
}

static void paged_requests(void **state) {
    (void)state;
    static const char *const lines[] = {
        "asynct_decode b=5 h=4 hk=2 sk=7/1/12/3/9 d=8 page=4 dtype=f16",
        "asynct_prefill b=5 h=2 hk=1 sq=3/1/4/2/6 sk=7/4/12/3/9 d=8 page=4 causal=1 dtype=f32",
        "softmax_decode b=5 h=2 hk=1 sk=7/1/12/3/9 d=8 page=16 dtype=bf16",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct at_built_case built = at_build_line(lines[i]);
        const struct at_problem *p = &built.data.problem;
        try_parts(p);
        /* keys and values stay whole, rows of the table go with their requests */
        static const int64_t units[] = { 4, 1 };
        struct at_batch_part part = gather(p, units, 2);
        assert_int_equal(part.problem.tensors[AT_ATTN_KEY_START].rank, 0);
        assert_codes(&p->tensors[AT_ATTN_V], 0, &part.problem.tensors[AT_ATTN_V], 0,
                     at_tensor_count(&p->tensors[AT_ATTN_V]), "v");
        for (int u = 0; u < 2; u++)
            assert_codes(&p->tensors[AT_ATTN_BLOCK_TABLE], units[u] * p->sizes.max_pages,
                         &part.problem.tensors[AT_ATTN_BLOCK_TABLE], u * p->sizes.max_pages, p->sizes.max_pages,
                         "block_table");
        at_batch_release(&part);
        at_drop_case(&built);
    }
}

/* Requests without queries, without keys, without both; parts in which nothing is left. */
static void empty_requests(void **state) {
    (void)state;
    static const char *const lines[] = {
        "asynct_prefill b=5 h=2 hk=1 sq=2/0/3/0/1 sk=5/4/0/0/9 d=8 dtype=f32",
        "asynct_prefill b=5 h=2 hk=1 sq=2/0/3/0/1 sk=5/4/0/0/9 d=8 page=4 dtype=bf16",
        "softmax_prefill b=5 h=2 hk=1 sq=2/0/3/0/1 sk=5/4/0/0/9 d=8 page=4 dtype=f32",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct at_built_case built = at_build_line(lines[i]);
        const struct at_problem *p = &built.data.problem;
        try_parts(p);
        static const int64_t nothing[] = { 3 }, no_keys[] = { 2 }, no_queries[] = { 1 };
        struct at_batch_part part = gather(p, nothing, 1);
        assert_int_equal(part.problem.sizes.tokens, 0);
        assert_int_equal(at_tensor_count(&part.problem.tensors[AT_ATTN_Q]), 0);
        assert_int_equal(part.problem.op->rows(&part.problem), 0);
        at_batch_release(&part);
        part = gather(p, no_keys, 1);
        assert_int_equal(part.problem.sizes.max_sk, 0);
        assert_int_equal(part.problem.sizes.tokens, 3);
        if (!p->sizes.page)
            assert_int_equal(at_tensor_count(&part.problem.tensors[AT_ATTN_K]), 0);
        at_batch_release(&part);
        part = gather(p, no_queries, 1);
        assert_int_equal(part.problem.sizes.max_sk, 4);
        assert_int_equal(part.problem.sizes.tokens, 0);
        at_batch_release(&part);
        at_drop_case(&built);
    }
}

/* Norms are split by token; parameters stay whole. */
static void tokens_of_norms(void **state) {
    (void)state;
    static const char *const lines[] = {
        "uclip_norm tokens=5 channels=24 dtype=bf16",
        "add_uclip_norm tokens=5 channels=24 dtype=f16",
        "qk_uclip_norm tokens=5 h=4 hk=2 d=8 dtype=f32",
        "post_attn_pre_mlp_uclip tokens=5 channels=24 dtype=bf16",
        "qk_uclip_norm tokens=5 h=4 hk=2 d=8 dtype=f32 gamma_per=tensor",
        "post_attn_pre_mlp_uclip_in_place tokens=5 channels=24 dtype=bf16",
        "rms_norm tokens=5 channels=24 dtype=f32",
        "add_rms_norm tokens=5 channels=24 dtype=bf16",
        "silu_mul tokens=5 channels=24 dtype=bf16",
        "reglu tokens=5 channels=24 halves=together dtype=f16",
    };
    static const int64_t units[] = { 3, 0, 4 };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct at_built_case built = at_build_line(lines[i]);
        const struct at_problem *p = &built.data.problem;
        assert_int_equal(at_batch_units(p), 5);
        struct at_batch_part part = gather(p, units, 3);
        assert_int_equal(part.problem.sizes.tokens, 3);
        for (int t = 0; t < p->op->n_tensors; t++) {
            const struct at_tensor *from = &p->tensors[t], *to = &part.problem.tensors[t];
            if (p->op->tensors[t].role == AT_OUT)
                continue;
            const char *name = p->op->tensors[t].name;
            if (p->op->tensors[t].dims[0] != AT_DIM_tokens) {
                assert_int_equal(at_tensor_count(from), at_tensor_count(to));
                assert_codes(from, 0, to, 0, at_tensor_count(from), name);
                continue;
            }
            const int64_t width = at_tensor_count(from) / 5;
            for (int u = 0; u < 3; u++)
                assert_codes(from, units[u] * width, to, u * width, width, name);
        }
        at_batch_release(&part);
        at_drop_case(&built);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contiguous_requests),
        cmocka_unit_test(paged_requests),
        cmocka_unit_test(empty_requests),
        cmocka_unit_test(tokens_of_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
