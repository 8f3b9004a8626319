/* Slots of new tokens: the reference against a plain walk over pages, against the mapping that other operators' cases get,
 * decoys against the fault their names say, problems that are none, and parts of a batch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kv_write/kv_write.h"
#include "slot_mapping/slot_mapping.h"
#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "verify/judge/batch.h"

#define KEYS "b=4 sq=3/1/0/20 prefix=14/16/9/0 page=16 padding=3"
#define LINE "slot_mapping " KEYS
enum { TOKENS = 27 };

static int32_t *ints(const struct at_problem *p, int tensor) { return p->tensors[tensor].data; }

/* Evaluates row by row: rows are independent. decoy -1: the right result. */
static void evaluate(const struct at_problem *p, int decoy, double *slots) {
    struct at_eval eval = { 0 };
    eval.value[AT_SLOT_MAPPING] = slots;
    at_assert_ok(p->op->check(p));
    for (int64_t row = 0; row < p->op->rows(p); row++)
        at_assert_ok(decoy < 0 ? p->op->evaluate(p, NULL, row, row + 1, &eval)
                               : p->op->decoy(p, NULL, decoy, row, row + 1, &eval));
}

/* A walk of its own: key after key through the pages of each request, new ones noted. */
static void test_reference(void **state) {
    (void)state;
    static const int64_t sq[] = { 3, 1, 0, 20 }, prefix[] = { 14, 16, 9, 0 };
    struct at_built_case built = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    double slots[TOKENS];
    int64_t token = 0;
    assert_int_equal(p->op->rows(p), TOKENS);
    evaluate(p, -1, slots);
    for (int r = 0; r < 4; r++) {
        const int32_t *page = ints(p, AT_SLOT_BLOCK_TABLE) + r * p->sizes.max_pages;
        int64_t within = 0;
        for (int64_t t = 0; t < prefix[r] + sq[r]; t++, within++) {
            if (within == 16)
                within = 0, page++;
            if (t >= prefix[r])
                at_assert_same(slots[token++], (double)(*page * 16 + within));
        }
    }
    assert_int_equal(token, 24);
    for (; token < TOKENS; token++)
        at_assert_same(slots[token], -1.0);
    at_drop_case(&built);
    built = at_build_line("slot_mapping b=2 sq=2/1 prefix=3/0 padding=1");
    evaluate(&built.data.problem, -1, slots);
    static const double contiguous[] = { 3, 4, 5, -1 };
    for (int i = 0; i < 4; i++)
        at_assert_same(slots[i], contiguous[i]);
    at_drop_case(&built);
}

/* The mapping that cases draw for operators that read one, of the same keys, is this operator's result. */
static void test_same_as_drawn(void **state) {
    (void)state;
    static const char *const keys[] = { KEYS, "b=3 sq=1/7/0 prefix=20/13/5 page=0 padding=2",
                                        "b=2 sq=1 prefix=31/40 page=8 pool=5 padding=0" };
    for (int i = 0; i < 3; i++) {
        char line[2][160];
        double slots[TOKENS];
        snprintf(line[0], sizeof line[0], "slot_mapping %s seed=9", keys[i]);
        snprintf(line[1], sizeof line[1], "kv_write %s hk=1 d=4 seed=9", keys[i]);
        struct at_built_case mine = at_build_line(line[0]), drawn = at_build_line(line[1]);
        evaluate(&mine.data.problem, -1, slots);
        assert_int_equal(mine.data.problem.sizes.tokens, drawn.data.problem.sizes.tokens);
        for (int64_t t = 0; t < drawn.data.problem.sizes.tokens; t++)
            at_assert_same(slots[t], (double)ints(&drawn.data.problem, AT_KV_WRITE_SLOT_MAPPING)[t]);
        at_drop_case(&mine);
        at_drop_case(&drawn);
    }
}

/* A request's growing: 15, 16 and 17 keys of three requests, whose second page comes with the last. Dealt by capacity each keeps
 * its first page, and no page is another's; dealt by length the later requests' move. */
static void test_dealt_by_capacity(void **state) {
    (void)state;
    int32_t first[2][3] = { { 0 } };
    for (int by_capacity = 0; by_capacity < 2; by_capacity++)
        for (int keys = 15; keys <= 17; keys++) {
            char line[160];
            snprintf(line, sizeof line, "slot_mapping b=3 sq=1 sk=%d page=16 pool=2 capacity=48 seed=3%s", keys,
                     by_capacity ? " deal=capacity" : "");
            struct at_built_case built = at_build_line(line);
            const struct at_problem *p = &built.data.problem;
            const int32_t *table = ints(p, AT_SLOT_BLOCK_TABLE);
            double slots[3];
            int moved = 0;
            evaluate(p, -1, slots);
            assert_int_equal(p->sizes.max_pages, 3);
            assert_int_equal(p->sizes.slots, 16 * (by_capacity ? 3 * 3 + 2 : 3 * ((keys + 15) / 16) + 2));
            for (int r = 0; r < 3; r++) {
                const int last = (keys - 1) / 16;
                at_assert_same(slots[r], (double)(table[3 * r + last] * 16 + (keys - 1) % 16));
                assert_int_equal(table[3 * r + 1] >= 0, keys > 16);
                assert_int_equal(table[3 * r + 2], -1);
                for (int other = 0; other < 3 * r; other++)
                    assert_true(table[other] < 0 || (table[other] != table[3 * r] && table[other] != table[3 * r + 1]));
                if (keys == 15)
                    first[by_capacity][r] = table[3 * r];
                moved += first[by_capacity][r] != table[3 * r];
            }
            assert_int_equal(moved > 0, !by_capacity && keys == 17);
            at_drop_case(&built);
        }
}

static void test_decoys(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    const int32_t *table = ints(p, AT_SLOT_BLOCK_TABLE);
    const int64_t columns = p->sizes.max_pages;
    /* Token 1: key 15 of request 0, at the end of its first page. Token 2: key 16. Token 26: padding. */
    const double right = table[0] * 16 + 15;
    const struct {
        const char *name;
        int token;
        double slot;
    } want[AT_SLOT_FAULTS] = {
        { "padding_mapped", 26, 0 },        { "prefix_forgotten", 1, table[0] * 16 + 1 },
        { "next_slot", 1, right + 1 },      { "page_start", 1, right - 15 },
        { "first_page", 2, table[0] * 16 }, { "other_request", 1, table[columns] * 16 + 15 },
        { "table_ignored", 2, 16 },
    };
    for (int d = 0; d < AT_SLOT_FAULTS; d++) {
        double slots[TOKENS];
        evaluate(p, d, slots);
        assert_string_equal(p->op->decoys[d].name, want[d].name);
        at_assert_same(slots[want[d].token], want[d].slot);
    }
    at_drop_case(&built);
}

static void refused(struct at_problem *p, const char *text) { at_assert_fails(p->op->check(p), AT_USAGE, text); }

/* One entry of an index tensor made wrong, and put back. */
static void refused_entry(struct at_problem *p, int tensor, int64_t at, int32_t value, const char *text) {
    int32_t *entry = ints(p, tensor) + at, before = *entry;
    *entry = value;
    refused(p, text);
    *entry = before;
    at_assert_ok(p->op->check(p));
}

static void test_refused(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    struct at_problem *p = &built.data.problem, whole = *p;
    refused_entry(p, AT_SLOT_QUERY_START, 0, 1, "query_start[0] is 1, wanted 0");
    refused_entry(p, AT_SLOT_QUERY_START, 1, 5, "request 1 has tokens 5 to 4");
    refused_entry(p, AT_SLOT_QUERY_START, 4, 28, "request 3 has tokens 4 to 28, wanted 0 to 27");
    refused_entry(p, AT_SLOT_SEQ_LENS, 3, 19, "request 3 has 19 keys, wanted at least its 20 new tokens");
    refused_entry(p, AT_SLOT_SEQ_LENS, 0, 4000, "in column 249");
    refused_entry(p, AT_SLOT_BLOCK_TABLE, 0, -1, "request 0 has page -1 in column 0");
    refused_entry(p, AT_SLOT_BLOCK_TABLE, 0, (int32_t)(p->sizes.slots / 16), "wanted 0 to");
    p->sizes.page = 7;
    refused(p, "not whole pages of 7");
    *p = whole;
    p->sizes.b = -1;
    refused(p, "wanted 0 or more");
    *p = whole;
    p->sizes.tokens++;
    refused(p, "tensor slot_mapping has 27 elements, wanted 28");
    *p = whole;
    p->tensors[AT_SLOT_SEQ_LENS].data = NULL;
    refused(p, "tensor seq_lens has no data");
    at_drop_case(&built);
    built = at_build_line("slot_mapping b=2 sq=2/1 prefix=3/0");
    refused_entry(&built.data.problem, AT_SLOT_KEY_START, 0, 2, "request 0 has slots 2 to 7, wanted 0 to 6");
    at_drop_case(&built);
    struct at_case_list list = { 0 };
    at_assert_fails(at_case_parse("slot_mapping b=1 sq=5 sk=4", "t", "here", &list), AT_USAGE,
                    "wanted at least as many");
    at_assert_fails(at_case_parse("slot_mapping b=1 dtype=bf16", "t", "here", &list), AT_USAGE, "dtype");
    at_case_list_release(&list);
}

/* Some requests in another order: each token keeps its slot. */
static void check_parts(const char *line) {
    struct at_built_case built = at_build_line(line);
    const struct at_problem *p = &built.data.problem;
    const int64_t units[] = { 3, 0, 2 };
    double whole[TOKENS], some[TOKENS];
    struct at_batch_part part;
    evaluate(p, -1, whole);
    assert_int_equal(at_batch_units(p), 4);
    at_assert_ok(at_batch_gather(p, units, 3, &part));
    evaluate(&part.problem, -1, some);
    for (int64_t u = 0; u < 3; u++) {
        int64_t row, rows, part_row, part_rows;
        at_batch_rows(p, units[u], &row, &rows);
        at_batch_rows(&part.problem, u, &part_row, &part_rows);
        assert_int_equal(part_rows, rows);
        for (int64_t i = 0; i < rows; i++)
            at_assert_same(some[part_row + i], whole[row + i]);
    }
    assert_int_equal(part.problem.sizes.tokens, 23);
    at_batch_release(&part);
    at_drop_case(&built);
}

static void test_parts(void **state) {
    (void)state;
    check_parts(LINE);
    check_parts("slot_mapping b=4 sq=3/1/0/20 prefix=14/16/9/0 page=0 padding=3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),         cmocka_unit_test(test_same_as_drawn),
        cmocka_unit_test(test_dealt_by_capacity), cmocka_unit_test(test_decoys),
        cmocka_unit_test(test_refused),           cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
