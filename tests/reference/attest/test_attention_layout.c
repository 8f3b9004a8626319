/* Requests, rows and slots of attention, shapes of a problem, and the check that refuses every index that
 * would read outside.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/attention.h"

static const struct at_tensor_spec specs[] = {
    { "q", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "" },
    { "k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "" },
    { "v", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "" },
    { "query_start", AT_IN, AT_FORMAT_I32, { AT_DIM_b_plus_1 }, "" },
    { "seq_lens", AT_IN, AT_FORMAT_I32, { AT_DIM_b }, "" },
    { "key_start", AT_IN, AT_FORMAT_I32, { AT_DIM_b_plus_1 }, "", AT_FILL_KEY_START },
    { "block_table", AT_IN, AT_FORMAT_I32, { AT_DIM_b, AT_DIM_max_pages }, "" },
    { "taps", AT_IN, AT_FORMAT_F32, { AT_DIM_h, AT_DIM_taps }, "" },
    { "o", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "" },
};
static const struct at_op layout_op = { .name = "layout", .tensors = specs, .n_tensors = 9 };

/* Five requests, two of them without queries and one without keys; also one with fewer keys than
 * queries. */
enum { B = 5, H = 6, HK = 2, D = 4, TOKENS = 8, PAGE = 4, PAGES = 9, MAX_PAGES = 3, SLOTS = 25 };
static const int32_t sq[B] = { 0, 3, 1, 0, 4 }, sk[B] = { 2, 9, 0, 5, 3 };

/* Where a page stands is unlike where it is in the table; request 3 shares a page with request 1, and the
 * tail of request 4 is mapped without being used. */
static const int32_t pages_of[B][MAX_PAGES] = { { 8, -1, -1 }, { 3, 0, 5 }, { -1, -1, -1 }, { 3, 7, -1 }, { 1, 2, 6 } };
/* Contiguous: gaps of one slot behind requests 0 and 3, four more at the end. */
static const int32_t key_starts[B + 1] = { 0, 3, 12, 12, 18, SLOTS };

static float data[PAGES * PAGE * H * D];
static int32_t query_start[B + 1], seq_lens[B], key_start[B + 1], block_table[B * MAX_PAGES];

static struct at_problem problem_of(int paged) {
    struct at_problem problem = { .op = &layout_op, .params = at_params_default(), .dtype = AT_F32 };
    problem.sizes = (struct at_sizes){ .b = B,
                                       .h = H,
                                       .hk = HK,
                                       .d = D,
                                       .tokens = TOKENS,
                                       .max_sq = 4,
                                       .max_sk = 9,
                                       .capacity = paged ? MAX_PAGES * PAGE : 9,
                                       .slots = paged ? PAGES * PAGE : SLOTS,
                                       .page = paged ? PAGE : 0,
                                       .max_pages = paged ? MAX_PAGES : 0,
                                       .taps = 3 };
    problem.params.scale = 0.5f;
    problem.params.causal = 1;
    query_start[0] = 0;
    for (int r = 0; r < B; r++)
        query_start[r + 1] = query_start[r] + sq[r];
    memcpy(seq_lens, sk, sizeof seq_lens);
    memcpy(key_start, key_starts, sizeof key_start);
    memcpy(block_table, pages_of, sizeof block_table);
    at_problem_shape(&problem);
    problem.tensors[AT_ATTN_Q].data = problem.tensors[AT_ATTN_K].data = problem.tensors[AT_ATTN_V].data = data;
    problem.tensors[AT_ATTN_QUERY_START].data = query_start;
    problem.tensors[AT_ATTN_SEQ_LENS].data = seq_lens;
    problem.tensors[paged ? AT_ATTN_BLOCK_TABLE : AT_ATTN_KEY_START].data = paged ? block_table : key_start;
    return problem;
}

/* Rows in order against a walk over requests that needs no search. */
static void test_rows(void **state) {
    (void)state;
    for (int paged = 0; paged < 2; paged++)
        for (int causal = 0; causal < 2; causal++) {
            struct at_problem problem = problem_of(paged);
            problem.params.causal = causal;
            at_assert_ok(at_attn_check(&problem));
            assert_int_equal(at_attn_rows(&problem), TOKENS * H);
            int64_t row = 0, token = 0;
            for (int r = 0; r < B; r++)
                for (int i = 0; i < sq[r]; i++, token++)
                    for (int head = 0; head < H; head++, row++) {
                        struct at_attn_row at = at_attn_row(&problem, row);
                        int visible = 0;
                        for (int t = 0; t < sk[r]; t++)
                            visible += !causal || t <= sk[r] - sq[r] + i;
                        assert_int_equal(at.request, r);
                        assert_int_equal(at.query, i);
                        assert_int_equal(at.token, token);
                        assert_int_equal(at.head, head);
                        assert_int_equal(at.kv_head, head / 3);
                        assert_int_equal(at.keys, sk[r]);
                        assert_int_equal(at.visible, visible);
                        at_assert_same(at_attn_row_work(&problem, row), 2.0 * visible * D);
                    }
            assert_int_equal(row, at_attn_rows(&problem));
        }
}

static void test_slots(void **state) {
    (void)state;
    struct at_problem contiguous = problem_of(0), paged = problem_of(1);
    for (int r = 0; r < B; r++)
        for (int t = 0; t < sk[r]; t++) {
            int64_t paged_slot = (int64_t)pages_of[r][t / PAGE] * PAGE + t % PAGE;
            assert_int_equal(at_attn_slot(&contiguous, r, t), key_starts[r] + t);
            assert_int_equal(at_attn_slot(&paged, r, t), paged_slot);
            assert_int_equal(at_attn_kv_index(&paged, r, t, 1), paged_slot * HK * D + D);
            assert_int_equal(at_attn_kv_index(&contiguous, r, t, 0), (key_starts[r] + t) * HK * D);
        }
}

static void test_shapes(void **state) {
    (void)state;
    struct at_problem problem = problem_of(0);
    assert_int_equal(at_tensor_count(&problem.tensors[AT_ATTN_Q]), TOKENS * H * D);
    assert_int_equal(at_tensor_count(&problem.tensors[AT_ATTN_K]), SLOTS * HK * D);
    assert_int_equal(at_tensor_count(&problem.tensors[AT_ATTN_KEY_START]), B + 1);
    assert_int_equal(at_tensor_count(&problem.tensors[AT_ATTN_BLOCK_TABLE]), 0);
    assert_int_equal(problem.tensors[AT_ATTN_BLOCK_TABLE].rank, 0);
    assert_int_equal(problem.tensors[7].format, AT_F32);
    problem.dtype = AT_BF16;
    problem.sizes.tokens = 0;
    problem.sizes.page = PAGE;
    problem.sizes.max_pages = MAX_PAGES;
    at_problem_shape(&problem);
    assert_int_equal(problem.tensors[AT_ATTN_Q].rank, 0);
    assert_int_equal(at_tensor_count(&problem.tensors[AT_ATTN_Q]), 0); /* though it has memory */
    assert_ptr_equal(problem.tensors[AT_ATTN_Q].data, data);
    assert_int_equal(problem.tensors[AT_ATTN_K].format, AT_BF16);
    assert_int_equal(at_tensor_bytes(&problem.tensors[AT_ATTN_K]), SLOTS * HK * D * 2);
    assert_int_equal(problem.tensors[AT_ATTN_SEQ_LENS].format, AT_I32);
    assert_int_equal(problem.tensors[AT_ATTN_KEY_START].rank, 0);
    assert_int_equal(problem.tensors[AT_ATTN_BLOCK_TABLE].rank, 2);
    assert_int_equal(problem.tensors[AT_ATTN_BLOCK_TABLE].shape[1], MAX_PAGES);
    assert_int_equal(problem.tensors[7].shape[1], 3);
    assert_int_equal(problem.tensors[8].rank, 0);
}

static void test_names_and_dims(void **state) {
    (void)state;
    for (int i = 0; i < layout_op.n_tensors; i++)
        assert_int_equal(at_op_tensor_index(&layout_op, specs[i].name), i);
    assert_int_equal(at_op_tensor_index(&layout_op, "lse"), -1);
    assert_int_equal(at_op_tensor_index(&layout_op, ""), -1);
    struct at_problem problem = { .op = &layout_op };
    int64_t next = 100;
#define X(name, meaning) problem.sizes.name = next++;
    AT_SIZE_LIST(X)
#undef X
    next = 100;
#define X(name, meaning) assert_int_equal(at_dim_size(&problem, AT_DIM_##name), next++);
    AT_SIZE_LIST(X)
#undef X
    assert_int_equal(at_dim_size(&problem, AT_DIM_b_plus_1), 101);
    assert_int_equal(at_dim_size(&problem, AT_DIM_NONE), 0);
    struct at_params params = at_params_default();
#define X(type, name, value, meaning) at_assert_same(params.name, value);
    AT_PARAM_LIST(X)
#undef X
}

/* A problem without requests, and one whose requests have no keys, are problems. */
static void test_empty(void **state) {
    (void)state;
    for (int paged = 0; paged < 2; paged++) {
        struct at_problem problem = problem_of(paged);
        static int32_t zeros[B + 1];
        problem.sizes.b = problem.sizes.tokens = problem.sizes.slots = problem.sizes.max_sq = problem.sizes.max_sk = 0;
        problem.sizes.max_pages = 0;
        at_problem_shape(&problem);
        problem.tensors[AT_ATTN_QUERY_START].data = problem.tensors[AT_ATTN_KEY_START].data = zeros;
        problem.tensors[AT_ATTN_Q].data = problem.tensors[AT_ATTN_K].data = NULL;
        at_assert_ok(at_attn_check(&problem));
        assert_int_equal(at_attn_rows(&problem), 0);
        problem = problem_of(paged);
        memset(seq_lens, 0, sizeof seq_lens);
        memset(block_table, 0xff, sizeof block_table);
        at_assert_ok(at_attn_check(&problem));
        for (int64_t row = 0; row < at_attn_rows(&problem); row++)
            assert_int_equal(at_attn_row(&problem, row).visible, 0);
    }
}

#define REFUSED(paged, change, message) \
    do { \
        struct at_problem problem = problem_of(paged); \
        at_assert_ok(at_attn_check(&problem)); \
        change; \
        at_assert_fails(at_attn_check(&problem), AT_USAGE, message); \
    } while (0)

static void test_refused_sizes(void **state) {
    (void)state;
    REFUSED(0, problem.sizes.b = -1, "size b is -1, wanted 0 to 2147483647");
    REFUSED(0, problem.sizes.h = 0, "size h is 0, wanted 1");
    REFUSED(0, problem.sizes.hk = 0, "size hk is 0");
    REFUSED(0, problem.sizes.hk = -2, "size hk is -2");
    REFUSED(0, problem.sizes.d = 0, "size d is 0");
    REFUSED(0, problem.sizes.d = (int64_t)1 << 31, "size d is 2147483648");
    REFUSED(0, problem.sizes.tokens = -1, "size tokens is -1");
    REFUSED(0, problem.sizes.slots = -1, "size slots is -1");
    REFUSED(0, problem.sizes.slots = INT64_MAX, "size slots is 9223372036854775807");
    REFUSED(1, problem.sizes.page = -16, "size page is -16");
    REFUSED(1, problem.sizes.max_pages = -1, "size max_pages is -1");
    REFUSED(0, problem.sizes.max_sq = -1, "size max_sq is -1");
    REFUSED(0, problem.sizes.max_sk = -1, "size max_sk is -1");
    REFUSED(0, problem.sizes.capacity = 8, "capacity is 8 keys and max_sk is 9, wanted no less");
    REFUSED(0, problem.sizes.hk = 4, "h is 6 and hk is 4, wanted hk to divide h");
    REFUSED(0, problem.sizes.hk = 12, "wanted hk to divide h");
    REFUSED(0, problem.sizes.max_pages = 3, "max_pages is 3 with page 0");
    REFUSED(1, problem.sizes.slots = PAGES * PAGE + 1, "slots is 37 with page 4, wanted whole pages");
    /* 2^31 x 2^31 x 4 x 8 bytes wrap to a small number in 64 bits */
    REFUSED(0, (problem.sizes.tokens = problem.sizes.h = INT32_MAX - 1), "q of 2147483646 x 2147483646 x 4");
    REFUSED(0, (problem.sizes.slots = INT32_MAX, problem.sizes.d = INT32_MAX), "k of 2147483647 x 2 x 2147483647");
    REFUSED(1, (problem.sizes.b = INT32_MAX, problem.sizes.max_pages = INT32_MAX), "block_table of 2147483647 x");
}

static void test_refused_tensors(void **state) {
    (void)state;
    REFUSED(0, problem.dtype = AT_F64, "dtype is 0, wanted f32, f16 or bf16");
    REFUSED(0, problem.dtype = AT_I32, "dtype is");
    REFUSED(0, problem.dtype = AT_F16, "tensor q has format number 1, wanted f16");
    REFUSED(0, problem.params.scale = NAN, "scale is nan");
    REFUSED(0, problem.params.scale = INFINITY, "scale is inf");
    REFUSED(0, problem.params.causal = 2, "causal is 2");
    REFUSED(0, problem.params.causal = -1, "causal is -1");
    REFUSED(0, problem.tensors[AT_ATTN_Q].rank = 2, "tensor q has rank 2, wanted 3");
    REFUSED(0, problem.tensors[AT_ATTN_V].shape[0]--, "tensor v has 24 elements along dimension 0, wanted 25");
    REFUSED(0, problem.tensors[AT_ATTN_K].shape[2]++, "tensor k has 5 elements along dimension 2, wanted 4");
    REFUSED(0, problem.tensors[AT_ATTN_SEQ_LENS].format = AT_F32, "tensor seq_lens has format number 1, wanted i32");
    REFUSED(0, problem.tensors[AT_ATTN_K].data = NULL, "tensor k has no data, wanted 200 elements");
    REFUSED(0, problem.tensors[AT_ATTN_QUERY_START].data = NULL, "tensor query_start has no data");
    REFUSED(0, problem.tensors[AT_ATTN_SEQ_LENS].data = NULL, "tensor seq_lens has no data");
    REFUSED(0, problem.tensors[AT_ATTN_KEY_START].data = NULL, "tensor key_start has no data");
    REFUSED(1, problem.tensors[AT_ATTN_BLOCK_TABLE].data = NULL, "tensor block_table has no data");
    struct at_problem problem = problem_of(0);
    static const struct at_op short_op = { .name = "short", .tensors = specs, .n_tensors = 6 };
    problem.op = &short_op;
    at_assert_fails(at_attn_check(&problem), AT_BUG, "7 attention tensors");
    problem.op = NULL;
    at_assert_fails(at_attn_check(&problem), AT_BUG, "7 attention tensors");
}

static void test_refused_indices(void **state) {
    (void)state;
    for (int paged = 0; paged < 2; paged++) {
        REFUSED(paged, query_start[0] = 1, "query_start[1] is 0, wanted at least 1");
        REFUSED(paged, query_start[0] = query_start[1] = 1, "query_start[0] is 1, wanted 0");
        REFUSED(paged, query_start[0] = -1, "query_start[0] is -1, wanted at least 0");
        REFUSED(paged, query_start[3] = 2, "query_start[3] is 2, wanted at least 3");
        REFUSED(paged, query_start[B] = 9, "query_start[5] is 9, wanted 8");
        REFUSED(paged, query_start[B] = 7, "query_start[5] is 7, wanted 8");
        REFUSED(paged, problem.sizes.max_sq = 3, "request 4 has 4 query tokens, wanted at most max_sq = 3");
        REFUSED(paged, seq_lens[2] = -1, "seq_lens[2] is -1, wanted 0 to max_sk = 9");
        REFUSED(paged, seq_lens[1] = 10, "seq_lens[1] is 10, wanted 0 to max_sk = 9");
        REFUSED(paged, problem.sizes.max_sk = 8, "seq_lens[1] is 9, wanted 0 to max_sk = 8");
    }
    REFUSED(0, key_start[0] = -1, "key_start[0] is -1, wanted at least 0");
    REFUSED(0, key_start[2] = 2, "key_start[2] is 2, wanted at least 3");
    REFUSED(0, key_start[B] = SLOTS + 1, "key_start[5] is 26, wanted 25");
    REFUSED(0, seq_lens[0] = 4, "seq_lens[0] is 4, but key_start leaves the request 3 slots");
    REFUSED(0, seq_lens[2] = 1, "seq_lens[2] is 1, but key_start leaves the request 0 slots");
    REFUSED(1, (seq_lens[1] = 13, problem.sizes.max_sk = problem.sizes.capacity = 13),
            "request 1 has 13 keys on 4 pages of 4");
    for (int r = 0; r < B; r++) /* every entry of the table, used or not */
        for (int i = 0; i < MAX_PAGES; i++) {
            char message[64];
            snprintf(message, sizeof message, "block_table[%d][%d] is", r, i);
            REFUSED(1, block_table[r * MAX_PAGES + i] = PAGES, message);
            REFUSED(1, block_table[r * MAX_PAGES + i] = -2, message);
            REFUSED(1, block_table[r * MAX_PAGES + i] = INT32_MAX, message);
            if (i < (sk[r] + PAGE - 1) / PAGE)
                REFUSED(1, block_table[r * MAX_PAGES + i] = -1, message);
        }
}

/* Bounds that are reached but not passed. */
static void test_accepted_edges(void **state) {
    (void)state;
    struct at_problem problem = problem_of(1);
    block_table[0] = PAGES - 1;
    block_table[4 * MAX_PAGES + 2] = -1; /* mapped without use before, and unmapped now */
    seq_lens[4] = 8;
    problem.params.scale = -1;
    at_assert_ok(at_attn_check(&problem));
    problem = problem_of(0);
    seq_lens[0] = 3;
    key_start[0] = 0;
    problem.params.scale = 0;
    problem.sizes.max_sq = problem.sizes.max_sk = problem.sizes.capacity = INT32_MAX; /* bounds, not counts */
    at_assert_ok(at_attn_check(&problem));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_names_and_dims),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_refused_sizes),
        cmocka_unit_test(test_refused_tensors),
        cmocka_unit_test(test_refused_indices),
        cmocka_unit_test(test_accepted_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
