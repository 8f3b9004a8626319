/* Rotary position embedding: decoys against the fault that their names say, positions and sizes that cases get, what is
 * copied and what is moved, problems that are none, and parts of a batch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "rope/rope.h"
#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "verify/judge/batch.h"

#define LINE "rope b=3 sq=3/0/2 prefix=300/9/0 h=4 hk=2 d=12 rot=8 padding=1 dtype=f32"

static struct at_test_eval evaluate(const struct at_problem *p, int decoy) {
    struct at_test_eval eval;
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 1, &eval));
    for (int64_t row = 0; row < p->op->rows(p); row++)
        at_assert_ok(decoy < 0 ? p->op->evaluate(p, NULL, row, row + 1, &eval.eval)
                               : p->op->decoy(p, NULL, decoy, row, row + 1, &eval.eval));
    return eval;
}

/* What a decoy gives is what the right operator gives of the problem with the fault in its inputs. */
static void assert_like(const struct at_problem *p, int decoy, const struct at_problem *faulty) {
    struct at_test_eval got = evaluate(p, decoy), want = evaluate(faulty, -1), right = evaluate(p, -1);
    int differs = 0;
    for (int t = AT_ROPE_Q_OUT; t <= AT_ROPE_K_OUT; t++)
        for (int64_t i = 0; i < at_test_count(p, t); i++) {
            at_assert_true(got.eval.value[t][i] == want.eval.value[t][i], "%s: element %lld is %g, wanted %g",
                           p->op->decoys[decoy].name, (long long)i, got.eval.value[t][i], want.eval.value[t][i]);
            differs |= got.eval.value[t][i] != right.eval.value[t][i];
        }
    at_assert_true(differs, "%s: no fault", p->op->decoys[decoy].name);
    at_test_eval_release(&got);
    at_test_eval_release(&want);
    at_test_eval_release(&right);
}

/* A second problem of the same line, whose inputs a test makes wrong. */
struct two {
    struct at_built_case right, wrong;
    struct at_problem *p, *w;
};

static void open_two(const char *line, struct two *two) {
    two->right = at_build_line(line);
    two->wrong = at_build_line(line);
    two->p = &two->right.data.problem;
    two->w = &two->wrong.data.problem;
}

static void close_two(struct two *two) {
    at_drop_case(&two->right);
    at_drop_case(&two->wrong);
}

static void test_table_decoys(void **state) {
    (void)state;
    struct two two;
    open_two(LINE, &two);
    const struct at_tensor *table = &two.p->tensors[AT_ROPE_COS_SIN];
    for (int64_t i = 0; i < at_tensor_count(table); i++)
        at_test_set(two.w, "cos_sin", i, (i % 8 < 4 ? 1 : -1) * at_tensor_get(table, i));
    assert_like(two.p, AT_ROPE_SIN_NEGATED, two.w);
    for (int64_t i = 0; i < at_tensor_count(table); i++)
        at_test_set(two.w, "cos_sin", i, at_tensor_get(table, i / 8 * 8 + (i + 4) % 8));
    assert_like(two.p, AT_ROPE_COS_SIN_SWAPPED, two.w);
    close_two(&two);
    open_two(LINE, &two);
    struct at_built_case other = at_build_line(LINE " base=500000");
    two.w->tensors[AT_ROPE_COS_SIN] = other.data.problem.tensors[AT_ROPE_COS_SIN];
    assert_like(two.p, AT_ROPE_OTHER_BASE, two.w);
    at_drop_case(&other);
    other = at_build_line("rope b=3 sq=3/0/2 prefix=300/9/0 h=4 hk=2 d=12 padding=1 dtype=f32");
    assert_like(two.p, AT_ROPE_WHOLE_HEAD, &other.data.problem);
    struct at_test_eval whole = evaluate(&other.data.problem, AT_ROPE_WHOLE_HEAD),
                        right = evaluate(&other.data.problem, -1);
    for (int64_t i = 0; i < at_test_count(&other.data.problem, AT_ROPE_Q_OUT); i++) /* rotated as it should be */
        at_assert_same(whole.eval.value[AT_ROPE_Q_OUT][i], right.eval.value[AT_ROPE_Q_OUT][i]);
    at_test_eval_release(&whole);
    at_test_eval_release(&right);
    at_drop_case(&other);
    struct at_rope_own own = at_rope_own_of(two.p);
    own.style = AT_ROPE_INTERLEAVED;
    two.w->tensors[AT_ROPE_COS_SIN] = two.p->tensors[AT_ROPE_COS_SIN];
    at_rope_own_set(two.w, &own);
    assert_like(two.p, AT_ROPE_OTHER_STYLE, two.w);
    close_two(&two);
}

static void test_position_decoys(void **state) {
    (void)state;
    static const int64_t at[] = { 300, 301, 302, 0, 1, 0 };
    static const struct {
        int decoy;
        int32_t positions[6];
    } faults[] = {
        { AT_ROPE_NEXT_POSITION, { 301, 302, 303, 1, 2, 1 } },
        { AT_ROPE_PREFIX_DROPPED, { 0, 1, 2, 0, 1, 0 } },
        { AT_ROPE_POSITION_BF16, { 300, 300, 302, 0, 1, 0 } },
    };
    struct two two;
    open_two(LINE " max_position=400", &two);
    for (int i = 0; i < 6; i++)
        assert_int_equal(at_tensor_i32(&two.p->tensors[AT_ROPE_POSITIONS], i), at[i]);
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        memcpy(two.w->tensors[AT_ROPE_POSITIONS].data, faults[f].positions, sizeof faults[f].positions);
        assert_like(two.p, faults[f].decoy, two.w);
    }
    /* beyond the table: as if it went on */
    struct at_built_case shorter = at_build_line(LINE " max_position=303");
    memcpy(two.w->tensors[AT_ROPE_POSITIONS].data, faults[0].positions, sizeof faults[0].positions);
    assert_like(&shorter.data.problem, AT_ROPE_NEXT_POSITION, two.w);
    at_drop_case(&shorter);
    close_two(&two);
}

/* Channel c of head x of a token. */
static double out_of(const struct at_test_eval *eval, const struct at_problem *p, int t, int64_t token, int64_t x,
                     int64_t c) {
    const int64_t heads = t == AT_ROPE_Q_OUT ? p->sizes.h : p->sizes.hk;
    return eval->eval.value[t][(token * heads + x) * p->sizes.d + c];
}

static void test_channel_decoys(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval right = evaluate(p, -1), zeroed = evaluate(p, AT_ROPE_REST_ZEROED),
                        k = evaluate(p, AT_ROPE_K_COPIED), heads = evaluate(p, AT_ROPE_HEADS_OF_K);
    for (int64_t x = 0; x < 4; x++)
        for (int64_t c = 0; c < 12; c++) {
            const double was = at_tensor_get(&p->tensors[AT_ROPE_Q], (2 * 4 + x) * 12 + c);
            const double is = out_of(&right, p, AT_ROPE_Q_OUT, 2, x, c);
            assert_true(c < 8 ? is != was : is == was);
            at_assert_same(out_of(&zeroed, p, AT_ROPE_Q_OUT, 2, x, c), c < 8 ? is : 0);
            at_assert_same(out_of(&heads, p, AT_ROPE_Q_OUT, 2, x, c), x < 2 ? is : was);
            at_assert_same(out_of(&k, p, AT_ROPE_Q_OUT, 2, x, c), is);
            if (x < 2)
                at_assert_same(out_of(&k, p, AT_ROPE_K_OUT, 2, x, c),
                               at_tensor_get(&p->tensors[AT_ROPE_K], (2 * 2 + x) * 12 + c));
        }
    struct at_test_eval *all[] = { &right, &zeroed, &k, &heads };
    for (int i = 0; i < 4; i++)
        at_test_eval_release(all[i]);
    at_drop_case(&built);
}

static void test_bits_and_bytes(void **state) {
    (void)state;
    struct at_built_case built =
        at_build_line("rope b=2 sq=3/2 prefix=4/5 h=2 hk=1 d=12 rot=8 dtype=f16 data=any_bits");
    const struct at_problem *p = &built.data.problem;
    const struct at_tensor *q = &p->tensors[AT_ROPE_Q];
    uint16_t codes[5 * 2 * 12];
    unsigned char computed[5 * 2 * 12] = { 0 };
    p->op->bits(p, AT_ROPE_Q_OUT, codes, computed);
    for (int64_t i = 0; i < at_tensor_count(q); i++) {
        assert_int_equal(computed[i], i % 12 < 8);
        if (!computed[i])
            assert_int_equal(codes[i], at_load_code(AT_F16, q->data, (size_t)i));
    }
    assert_int_equal(p->op->moved(p, AT_ROPE_COS_SIN), 3 * 8); /* positions 4, 5, 6 and 5, 6 */
    assert_int_equal(p->op->moved(p, AT_ROPE_Q), 5 * 2 * 12);
    at_drop_case(&built);
}

static void test_sizes(void **state) {
    (void)state;
    static const struct {
        const char *line;
        int64_t rot, positions;
    } cases[] = {
        { "rope b=2 sq=3/2 prefix=4/5 d=9", 8, 7 },
        { "rope b=1 sq=1 d=64", 64, 1 },
        { "rope b=1 sq=3 prefix=7 d=64 rot=7 max_position=4", 6, 10 },
        { "rope b=1 sq=1 d=7 rot=100", 6, 1 },
        { "rope b=1 sq=1 d=1", 0, 1 },
        { "rope b=1 sq=1 d=64 rot=0", 0, 1 },
        { "rope b=1 sq=3 d=64 rot=6 max_position=1000", 6, 1000 },
        { "rope scenario=mixed_prefill_b32 h=1 hk=1 d=8", 8, 512 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct at_built_case built = at_build_line(cases[i].line);
        const struct at_rope_own own = at_rope_own_of(&built.data.problem);
        assert_int_equal(own.rot, cases[i].rot);
        assert_int_equal(own.max_position, cases[i].positions);
        at_drop_case(&built);
    }
}

static void refused(struct at_problem *p, const char *text) { at_assert_fails(p->op->check(p), AT_USAGE, text); }

static void refused_own(struct at_problem *p, struct at_rope_own own, const char *text) {
    const struct at_rope_own right = at_rope_own_of(p);
    at_rope_own_set(p, &own);
    refused(p, text);
    at_rope_own_set(p, &right);
}

static void test_refused(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    struct at_problem *p = &built.data.problem, whole = *p;
    struct at_rope_own own = at_rope_own_of(p);
    int32_t *positions = p->tensors[AT_ROPE_POSITIONS].data;
    at_assert_ok(p->op->check(p));
    refused_own(p, (struct at_rope_own){ 7, own.max_position, own.base, 0, 0 }, "rot is 7, wanted an even number");
    refused_own(p, (struct at_rope_own){ 14, own.max_position, own.base, 0, 0 }, "from 0 to d = 12");
    refused_own(p, (struct at_rope_own){ -2, own.max_position, own.base, 0, 0 }, "rot is -2");
    refused_own(p, (struct at_rope_own){ 8, 0, own.base, 0, 0 }, "max_position is 0");
    refused_own(p, (struct at_rope_own){ 8, own.max_position, NAN, 0, 0 }, "base is nan");
    refused_own(p, (struct at_rope_own){ 8, own.max_position, own.base, 2, 0 }, "style and table are 2 and 0");
    refused_own(p, (struct at_rope_own){ 8, own.max_position, own.base, 0, -1 }, "style and table are 0 and -1");
    refused_own(p, (struct at_rope_own){ 8, own.max_position - 1, own.base, 0, 0 }, "tensor cos_sin has");
    positions[1] = (int32_t)own.max_position;
    refused(p, "positions[1] is 303, wanted 0 to 302");
    positions[1] = -1;
    refused(p, "positions[1] is -1");
    positions[1] = 301;
    p->sizes.tokens = -1;
    refused(p, "tokens is -1");
    *p = whole;
    p->sizes.hk = 0;
    refused(p, "h, hk, d are 4, 0, 12");
    *p = whole;
    p->tensors[AT_ROPE_K].data = NULL;
    refused(p, "tensor k has no data");
    *p = whole;
    at_drop_case(&built);
    struct at_case_list list = { 0 };
    at_assert_fails(at_case_parse("rope b=1 sq=5 sk=4", "t", "here", &list), AT_USAGE, "wanted at least as many");
    at_assert_fails(at_case_parse("rope style=halves", "t", "here", &list), AT_USAGE, "half_split or interleaved");
    at_assert_fails(at_case_parse("rms_norm data=any_bits", "t", "here", &list), AT_USAGE, "a family for norms");
    at_case_list_release(&list);
}

/* Some tokens in another order: the table stays whole. */
static void test_parts(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval whole = evaluate(p, -1);
    const int64_t units[] = { 5, 2, 0 };
    struct at_batch_part part;
    assert_int_equal(at_batch_units(p), 6);
    at_assert_ok(at_batch_gather(p, units, 3, &part));
    struct at_test_eval some = evaluate(&part.problem, -1);
    for (int64_t u = 0; u < 3; u++)
        for (int64_t i = 0; i < 24; i++)
            at_assert_same(some.eval.value[AT_ROPE_K_OUT][u * 24 + i],
                           whole.eval.value[AT_ROPE_K_OUT][units[u] * 24 + i]);
    at_test_eval_release(&some);
    at_test_eval_release(&whole);
    at_batch_release(&part);
    at_drop_case(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_decoys),   cmocka_unit_test(test_position_decoys),
        cmocka_unit_test(test_channel_decoys), cmocka_unit_test(test_bits_and_bytes),
        cmocka_unit_test(test_sizes),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
