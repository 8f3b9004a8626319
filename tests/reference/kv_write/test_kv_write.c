/* Writing a cache: the reference against a plain walk over the tokens, decoys against the fault their names say, the
 * mapping that cases get, problems that are none, and parts of a batch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kv_write/kv_write.h"
#include "tests/support/built_case.h"
#include "tests/support/attention_problem.h"
#include "verify/judge/batch.h"

#define LINE "kv_write b=4 sq=3/1/0/20 prefix=14/16/9/0 hk=2 d=8 page=16 padding=3 dtype=bf16 data=random_bits"

static int32_t slot_of(const struct at_problem *p, int64_t token) {
    return at_tensor_i32(&p->tensors[AT_KV_WRITE_SLOT_MAPPING], token);
}

/* Evaluates row by row: rows are independent. decoy -1: the right result. */
static struct at_test_eval evaluate(const struct at_problem *p, int decoy) {
    struct at_test_eval eval;
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 1, &eval));
    for (int64_t row = 0; row < p->op->rows(p); row++)
        at_assert_ok(decoy < 0 ? p->op->evaluate(p, NULL, row, row + 1, &eval.eval)
                               : p->op->decoy(p, NULL, decoy, row, row + 1, &eval.eval));
    return eval;
}

/* Row `row` of output t is row `from_row` of `from`. */
static void assert_row(const struct at_problem *p, const struct at_test_eval *eval, int t, int64_t row,
                       const struct at_tensor *from, int64_t from_row) {
    const int64_t n = p->sizes.hk * p->sizes.d;
    for (int64_t i = 0; i < n; i++)
        at_assert_same(eval->eval.value[t][row * n + i], at_tensor_get(from, from_row * n + i));
}

/* Slot by slot: who wrote it. A walk of its own, from the slot to the token and not the other way round. */
static void assert_cache(const struct at_problem *p, const struct at_test_eval *eval) {
    int64_t written = 0;
    for (int64_t slot = 0; slot < p->sizes.slots; slot++) {
        int64_t writer = -1;
        for (int64_t token = 0; token < p->sizes.tokens; token++)
            writer = slot_of(p, token) == slot ? token : writer;
        for (int which = 0; which < 2; which++) {
            const struct at_tensor *from = &p->tensors[writer < 0 ? AT_KV_WRITE_K + which : AT_KV_WRITE_NEW_K + which];
            assert_row(p, eval, AT_KV_WRITE_K + which, slot, from, writer < 0 ? slot : writer);
        }
        written += writer >= 0;
    }
    assert_int_equal(written, 24);
}

static void test_reference(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval eval = evaluate(p, -1), modelled = eval;
    assert_cache(p, &eval);
    for (int64_t i = 0; i < at_tensor_count(&p->tensors[AT_KV_WRITE_V]); i++)
        assert_true(eval.eval.limit[AT_KV_WRITE_K][i] == 0 && eval.eval.limit[AT_KV_WRITE_V][i] == 0);
    const struct at_numerics numerics = at_numerics_default();
    at_assert_ok(p->op->model(p, &numerics, 0, p->op->rows(p), &modelled.eval));
    assert_cache(p, &modelled);
    at_test_eval_release(&eval);
    at_drop_case(&built);
}

static void test_decoys(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    const struct at_tensor *new_k = &p->tensors[AT_KV_WRITE_NEW_K], *new_v = &p->tensors[AT_KV_WRITE_NEW_V];
    const struct at_tensor *k = &p->tensors[AT_KV_WRITE_K];
    const int32_t slot = slot_of(p, 1); /* key 15 of request 0: the end of its page */
    assert_int_equal(slot % 16, 15);
    struct at_test_eval kept = evaluate(p, 0), next = evaluate(p, 1), start = evaluate(p, 2), padded = evaluate(p, 3),
                        swapped = evaluate(p, 4);
    assert_string_equal(p->op->decoys[0].name, "not_written");
    assert_row(p, &kept, AT_KV_WRITE_K, slot, k, slot);
    assert_string_equal(p->op->decoys[1].name, "next_slot");
    assert_row(p, &next, AT_KV_WRITE_K, slot, new_k, 0);
    assert_row(p, &next, AT_KV_WRITE_K, (slot + 1) % p->sizes.slots, new_k, 1);
    assert_string_equal(p->op->decoys[2].name, "page_start");
    assert_row(p, &start, AT_KV_WRITE_K, slot - 15, new_k, 1);
    assert_string_equal(p->op->decoys[3].name, "padding_written");
    assert_int_equal(slot_of(p, p->sizes.tokens - 1), -1);
    assert_row(p, &padded, AT_KV_WRITE_V, p->sizes.slots - 1, new_v, p->sizes.tokens - 1);
    assert_string_equal(p->op->decoys[4].name, "k_and_v_swapped");
    assert_row(p, &swapped, AT_KV_WRITE_K, slot, new_v, 1);
    assert_row(p, &swapped, AT_KV_WRITE_V, slot, new_k, 1);
    struct at_test_eval *all[] = { &kept, &next, &start, &padded, &swapped };
    for (int i = 0; i < 5; i++)
        at_test_eval_release(all[i]);
    at_drop_case(&built);
}

/* Each slot at most once, requests in the table's pages, new tokens at the end of their request, padding last. */
static void test_mapping(void **state) {
    (void)state;
    static const int64_t sq[] = { 3, 1, 0, 20 }, prefix[] = { 14, 16, 9, 0 };
    struct at_built_case built = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    assert_int_equal(p->sizes.tokens, 27);
    int64_t token = 0, page_of[16], pages = 0;
    for (int r = 0; r < 4; r++)
        for (int64_t i = 0; i < sq[r]; i++, token++) {
            const int32_t slot = slot_of(p, token);
            assert_int_equal(slot % 16, (prefix[r] + i) % 16);
            if (i == 0 || slot % 16 == 0) {
                for (int64_t k = 0; k < pages; k++)
                    assert_int_not_equal(page_of[k], slot / 16);
                page_of[pages++] = slot / 16;
            } else {
                assert_int_equal(slot, slot_of(p, token - 1) + 1);
            }
        }
    for (; token < 27; token++)
        assert_int_equal(slot_of(p, token), -1);
    at_drop_case(&built);
    built = at_build_line("kv_write b=2 sq=2/1 prefix=3/0 hk=1 d=4 padding=1");
    const int32_t contiguous[] = { 3, 4, 5, -1 };
    for (int i = 0; i < 4; i++)
        assert_int_equal(slot_of(&built.data.problem, i), contiguous[i]);
    assert_int_equal(built.data.problem.sizes.slots, 6);
    at_drop_case(&built);
}

static void refused(struct at_problem *p, const char *text) { at_assert_fails(p->op->check(p), AT_USAGE, text); }

static void test_refused(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    struct at_problem *p = &built.data.problem, whole = *p;
    int32_t *mapping = p->tensors[AT_KV_WRITE_SLOT_MAPPING].data;
    const int32_t first = mapping[0];
    at_assert_ok(p->op->check(p));
    mapping[0] = mapping[5];
    refused(p, "as that of a token before it");
    mapping[0] = -2;
    refused(p, "slot_mapping[0] is -2, wanted -1 to");
    mapping[0] = (int32_t)p->sizes.slots;
    refused(p, "wanted -1 to");
    mapping[0] = first;
    p->sizes.hk = 0;
    refused(p, "hk, d are 0, 8");
    *p = whole;
    p->sizes.page = 7;
    refused(p, "not whole pages of 7");
    *p = whole;
    p->sizes.tokens--;
    refused(p, "tensor new_k has");
    *p = whole;
    p->tensors[AT_KV_WRITE_V].data = NULL;
    refused(p, "tensor v has no data");
    *p = whole;
    p->sizes.slots = -16;
    refused(p, "wanted 0 or more");
    *p = whole;
    at_drop_case(&built);
    struct at_case_list list = { 0 };
    at_assert_fails(at_case_parse("kv_write b=1 sq=5 sk=4", "t", "here", &list), AT_USAGE, "wanted at least as many");
    at_assert_fails(at_case_parse("kv_write b=1 h=8", "t", "here", &list), AT_USAGE, "h");
    at_case_list_release(&list);
}

/* A token alone, and the batch backwards: each writes its own slot. */
static void test_parts(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval whole = evaluate(p, -1);
    const int64_t units[] = { 26, 20, 0, 25 };
    struct at_batch_part part;
    assert_int_equal(at_batch_units(p), 27);
    at_assert_ok(at_batch_gather(p, units, 4, &part));
    struct at_test_eval some = evaluate(&part.problem, -1);
    for (int64_t u = 0; u < 4; u++) {
        int64_t row, rows, part_row, part_rows;
        at_batch_rows(p, units[u], &row, &rows);
        at_batch_rows(&part.problem, u, &part_row, &part_rows);
        assert_int_equal(rows, units[u] < 24); /* padding writes nothing */
        assert_int_equal(part_rows, rows);
        if (!rows)
            continue;
        assert_int_equal(part_row, row);
        assert_int_equal(row, slot_of(p, units[u]));
        for (int64_t i = row * 16; i < (row + 1) * 16; i++)
            at_assert_same(some.eval.value[AT_KV_WRITE_K][i], whole.eval.value[AT_KV_WRITE_K][i]);
    }
    at_test_eval_release(&some);
    at_test_eval_release(&whole);
    at_batch_release(&part);
    at_drop_case(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_decoys), cmocka_unit_test(test_mapping),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
