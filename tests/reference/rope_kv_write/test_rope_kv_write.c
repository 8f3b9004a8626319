/* Rotation with the write into the cache: the reference against rope followed by kv_write, MPFR, limits, decoys against the
 * faults that their names say, what is moved to the bit, problems that are none, and parts of a batch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kv_write/kv_write.h"
#include "rope/rope.h"
#include "rope_kv_write/rope_kv_write.h"
#include "tests/oracle/rope_mpfr.h"
#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "verify/judge/batch.h"

#define LINE "rope_kv_write b=4 sq=3/1/0/20 prefix=14/16/9/0 h=4 hk=2 d=12 rot=8 page=16 padding=3 dtype=f32"

static const char *const lines[] = {
    LINE,
    "rope_kv_write b=2 sq=3/9 prefix=14/300 h=4 hk=2 d=64 rot=24 page=8 style=interleaved dtype=f16 padding=2",
    "rope_kv_write b=1 sq=7 prefix=50 h=2 hk=1 d=33 table=input base=100 dtype=bf16 data=heavy_tail",
    "rope_kv_write b=2 sq=3/9 h=2 hk=2 d=16 rot=0 page=3 pool=9 padding=1 dtype=bf16 data=random_bits",
    "rope_kv_write b=2 sq=3/9 prefix=7 h=2 hk=2 d=16 page=16 padding=1 data=nonfinite dtype=f32",
    "rope_kv_write b=2 sq=3/9 prefix=7 h=2 hk=2 d=16 page=16 data=exact dtype=f16",
};
enum { LINES = sizeof lines / sizeof *lines };

static int64_t slot_of(const struct at_problem *p, int64_t token) {
    return at_tensor_i32(&p->tensors[AT_ROPE_KV_WRITE_SLOT_MAPPING], token);
}

/* Row by row: rows are independent. decoy -1: the right result. Every element is written. */
static struct at_test_eval evaluate(const struct at_problem *p, const struct at_numerics *numerics, int decoy) {
    struct at_test_eval eval;
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 1, &eval));
    for (int t = AT_ROPE_KV_WRITE_Q_OUT; t <= AT_ROPE_KV_WRITE_V_CACHE; t++)
        for (int64_t i = 0; i < at_test_count(p, t); i++)
            eval.eval.limit[t][i] = -1;
    for (int64_t row = 0; row < p->op->rows(p); row++)
        at_assert_ok(decoy < 0 ? p->op->evaluate(p, numerics, row, row + 1, &eval.eval)
                               : p->op->decoy(p, numerics, decoy, row, row + 1, &eval.eval));
    for (int t = AT_ROPE_KV_WRITE_Q_OUT; t <= AT_ROPE_KV_WRITE_V_CACHE; t++)
        for (int64_t i = 0; i < at_test_count(p, t); i++)
            at_assert_true(eval.eval.limit[t][i] >= 0, "tensor %d: no row has element %lld", t, (long long)i);
    return eval;
}

/* Spans of all rows are each element once. */
static void test_rows(void **state) {
    (void)state;
    for (int l = 0; l < LINES; l++) {
        struct at_built_case built = at_build_line(lines[l]);
        const struct at_problem *p = &built.data.problem;
        for (int t = AT_ROPE_KV_WRITE_Q_OUT; t <= AT_ROPE_KV_WRITE_V_CACHE; t++) {
            char *seen = calloc((size_t)at_test_count(p, t) + 1, 1);
            assert_non_null(seen);
            for (int64_t row = 0; row < p->op->rows(p); row++) {
                int64_t first, count;
                p->op->row_span(p, t, row, &first, &count);
                for (int64_t i = first; i < first + count; i++)
                    assert_int_equal(seen[i]++, 0);
            }
            for (int64_t i = 0; i < at_test_count(p, t); i++)
                assert_int_equal(seen[i], 1);
            free(seen);
        }
        at_drop_case(&built);
    }
}

/* The same tensors as a problem of rope and one of kv_write, whose new keys are rope's exact ones. */
struct pair {
    struct at_problem rope, write;
};

static struct pair pair_of(const struct at_problem *p) {
    static const int of_rope[] = { AT_ROPE_KV_WRITE_Q, AT_ROPE_KV_WRITE_K, AT_ROPE_KV_WRITE_POSITIONS,
                                   AT_ROPE_KV_WRITE_COS_SIN };
    static const int of_write[] = { AT_ROPE_KV_WRITE_K, AT_ROPE_KV_WRITE_V, AT_ROPE_KV_WRITE_SLOT_MAPPING,
                                    AT_ROPE_KV_WRITE_K_CACHE, AT_ROPE_KV_WRITE_V_CACHE };
    struct pair two = { *p, *p };
    two.rope.op = &at_op_rope;
    two.write.op = &at_op_kv_write;
    for (int t = 0; t < 4; t++)
        two.rope.tensors[t] = p->tensors[of_rope[t]];
    for (int t = 0; t < 5; t++)
        two.write.tensors[t] = p->tensors[of_write[t]];
    two.rope.tensors[AT_ROPE_Q_OUT] = two.rope.tensors[AT_ROPE_Q];
    two.rope.tensors[AT_ROPE_K_OUT] = two.rope.tensors[AT_ROPE_K];
    return two;
}

/* rope, then kv_write of what it gives, to the bit and with its limits; what no token writes and v have limits of 0. */
static void test_as_both(void **state) {
    (void)state;
    for (int l = 0; l < LINES; l++)
        for (int fused = 0; fused < 2; fused++) {
            struct at_built_case built = at_build_line(lines[l]);
            const struct at_problem *p = &built.data.problem;
            struct at_numerics numerics = at_numerics_default();
            numerics.fir_fma = fused;
            const struct pair two = pair_of(p);
            struct at_test_eval got = evaluate(p, &numerics, -1), rope, write;
            at_assert_ok(at_test_eval_init(&two.rope, 1, &rope));
            at_assert_ok(at_test_eval_init(&two.write, 1, &write));
            at_assert_ok(two.rope.op->evaluate(&two.rope, &numerics, 0, two.rope.op->rows(&two.rope), &rope.eval));
            at_assert_ok(two.write.op->evaluate(&two.write, NULL, 0, two.write.op->rows(&two.write), &write.eval));
            const int64_t n = p->sizes.hk * p->sizes.d;
            for (int64_t token = 0; token < p->sizes.tokens; token++)
                for (int64_t i = 0; slot_of(p, token) >= 0 && i < n; i++) {
                    write.eval.value[AT_KV_WRITE_K][slot_of(p, token) * n + i] =
                        rope.eval.value[AT_ROPE_K_OUT][token * n + i];
                    write.eval.limit[AT_KV_WRITE_K][slot_of(p, token) * n + i] =
                        rope.eval.limit[AT_ROPE_K_OUT][token * n + i];
                }
            for (int64_t i = 0; i < at_test_count(p, AT_ROPE_KV_WRITE_Q_OUT); i++) {
                at_assert_same(got.eval.value[AT_ROPE_KV_WRITE_Q_OUT][i], rope.eval.value[AT_ROPE_Q_OUT][i]);
                at_assert_same(got.eval.limit[AT_ROPE_KV_WRITE_Q_OUT][i], rope.eval.limit[AT_ROPE_Q_OUT][i]);
            }
            for (int t = 0; t < 2; t++)
                for (int64_t i = 0; i < at_test_count(p, AT_ROPE_KV_WRITE_K_CACHE + t); i++) {
                    at_assert_same(got.eval.value[AT_ROPE_KV_WRITE_K_CACHE + t][i],
                                   write.eval.value[AT_KV_WRITE_K + t][i]);
                    at_assert_same(got.eval.limit[AT_ROPE_KV_WRITE_K_CACHE + t][i],
                                   write.eval.limit[AT_KV_WRITE_K + t][i]);
                }
            at_test_eval_release(&got);
            at_test_eval_release(&rope);
            at_test_eval_release(&write);
            at_drop_case(&built);
        }
}

/* Queries, and the keys of each slot from the slot's side, against MPFR; the model lies within its limits. */
static void test_oracle(void **state) {
    (void)state;
    for (int l = 0; l < LINES; l++) {
        struct at_built_case built = at_build_line(lines[l]);
        const struct at_problem *p = &built.data.problem;
        const struct at_numerics numerics = at_numerics_default();
        const int64_t n = p->sizes.hk * p->sizes.d;
        struct at_test_eval exact = evaluate(p, &numerics, -1), model;
        int64_t written = 0;
        double off;
        for (int64_t i = 0; i < at_test_count(p, AT_ROPE_KV_WRITE_Q_OUT); i++) {
            const double value = exact.eval.value[AT_ROPE_KV_WRITE_Q_OUT][i];
            at_assert_same(value, at_rope_mpfr(p, "q_out", i, value, &off));
        }
        for (int64_t i = 0; i < at_test_count(p, AT_ROPE_KV_WRITE_K_CACHE); i++) {
            const double k = exact.eval.value[AT_ROPE_KV_WRITE_K_CACHE][i],
                         v = exact.eval.value[AT_ROPE_KV_WRITE_V_CACHE][i];
            int64_t writer = -1;
            for (int64_t token = 0; token < p->sizes.tokens; token++)
                writer = slot_of(p, token) == i / n ? token : writer;
            written += writer >= 0;
            const int64_t from = writer * n + i % n;
            at_assert_same(k, writer < 0 ? at_tensor_get(&p->tensors[AT_ROPE_KV_WRITE_K_CACHE], i)
                                         : at_rope_mpfr(p, "k_out", from, k, &off));
            at_assert_same(v, writer < 0 ? at_tensor_get(&p->tensors[AT_ROPE_KV_WRITE_V_CACHE], i)
                                         : at_tensor_get(&p->tensors[AT_ROPE_KV_WRITE_V], from));
        }
        assert_true(written > 0 && written < at_test_count(p, AT_ROPE_KV_WRITE_K_CACHE) + (l == 2 || l == 3));
        at_assert_ok(at_test_eval_init(p, 1, &model));
        at_assert_ok(p->op->model(p, &numerics, 0, p->op->rows(p), &model.eval));
        for (int t = AT_ROPE_KV_WRITE_Q_OUT; t <= AT_ROPE_KV_WRITE_V_CACHE; t++)
            for (int64_t i = 0; i < at_test_count(p, t); i++) {
                const double want = exact.eval.value[t][i], value = model.eval.value[t][i];
                at_assert_same(model.eval.limit[t][i], 0.0);
                if (isfinite(want) && exact.eval.limit[t][i] < (double)INFINITY)
                    at_assert_within(value, want, exact.eval.limit[t][i]);
                else if (!isfinite(want))
                    at_assert_same(value, want);
            }
        struct at_numerics any = numerics;
        any.free_order = 1;
        at_assert_fails(p->op->model(p, &any, 0, 1, &model.eval), AT_UNSUPPORTED, "no order is declared");
        at_test_eval_release(&exact);
        at_test_eval_release(&model);
        at_drop_case(&built);
    }
}

/* ---- decoys ---- */

/* What a decoy gives is what the right operator gives of the problem with the fault in its inputs. */
static void assert_like(const struct at_problem *p, int decoy, const struct at_problem *faulty) {
    struct at_test_eval got = evaluate(p, NULL, decoy), want = evaluate(faulty, NULL, -1),
                        right = evaluate(p, NULL, -1);
    int differs = 0;
    for (int t = AT_ROPE_KV_WRITE_Q_OUT; t <= AT_ROPE_KV_WRITE_V_CACHE; t++)
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

/* Faults of the rotation: rope's own, whose values go where the right ones do. */
static void test_rotation_decoys(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE " max_position=400 seed=2");
    const struct at_problem *p = &built.data.problem;
    const struct pair two = pair_of(p);
    const int64_t n = p->sizes.hk * p->sizes.d;
    struct at_test_eval right = evaluate(p, NULL, -1);
    for (int decoy = 0; decoy < AT_ROPE_FAULTS; decoy++) {
        struct at_test_eval got = evaluate(p, NULL, decoy), rope;
        assert_string_equal(p->op->decoys[decoy].name, at_op_rope.decoys[decoy].name);
        at_assert_ok(at_test_eval_init(&two.rope, 1, &rope));
        at_assert_ok(at_op_rope.decoy(&two.rope, NULL, decoy, 0, p->sizes.tokens, &rope.eval));
        for (int64_t i = 0; i < at_test_count(p, AT_ROPE_KV_WRITE_Q_OUT); i++)
            at_assert_same(got.eval.value[AT_ROPE_KV_WRITE_Q_OUT][i], rope.eval.value[AT_ROPE_Q_OUT][i]);
        for (int64_t token = 0; token < p->sizes.tokens; token++)
            for (int64_t i = 0; slot_of(p, token) >= 0 && i < n; i++)
                at_assert_same(got.eval.value[AT_ROPE_KV_WRITE_K_CACHE][slot_of(p, token) * n + i],
                               rope.eval.value[AT_ROPE_K_OUT][token * n + i]);
        for (int64_t i = 0; i < at_test_count(p, AT_ROPE_KV_WRITE_V_CACHE); i++)
            at_assert_same(got.eval.value[AT_ROPE_KV_WRITE_V_CACHE][i], right.eval.value[AT_ROPE_KV_WRITE_V_CACHE][i]);
        at_test_eval_release(&rope);
        at_test_eval_release(&got);
    }
    at_test_eval_release(&right);
    at_drop_case(&built);
}

static void test_slot_decoys(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE), other = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    struct at_problem *w = &other.data.problem;
    int32_t *slots = w->tensors[AT_ROPE_KV_WRITE_SLOT_MAPPING].data;
    const int64_t tokens = p->sizes.tokens, n = p->sizes.hk * p->sizes.d;
    for (int64_t i = 0; i < tokens; i++)
        slots[i] = -1;
    assert_like(p, AT_ROPE_KV_WRITE_OF_CACHE + AT_CACHE_NOT_WRITTEN, w);
    for (int64_t i = 0; i < tokens; i++)
        slots[i] = (int32_t)(slot_of(p, i) < 0 ? -1 : (slot_of(p, i) + 1) % p->sizes.slots);
    assert_like(p, AT_ROPE_KV_WRITE_OF_CACHE + AT_CACHE_NEXT_SLOT, w);
    for (int64_t i = 0; i < tokens; i++) /* of those for the last slot the last token stays */
        slots[i] = (int32_t)(slot_of(p, i) == p->sizes.slots - 1 ? -1 : slot_of(p, i));
    assert_int_equal(slot_of(p, tokens - 1), -1);
    slots[tokens - 1] = (int32_t)p->sizes.slots - 1;
    assert_like(p, AT_ROPE_KV_WRITE_OF_CACHE + AT_CACHE_PADDING_WRITTEN, w);
    for (int64_t i = 0; i < tokens; i++) /* the first one's slot is the second's; of padding, none after the first */
        slots[i] = (int32_t)(i == 0 ? -1 : slot_of(p, i - 1));
    assert_like(p, AT_ROPE_KV_WRITE_SLOT_BEFORE, w);
    /* the last of each page's tokens is at its start */
    struct at_test_eval start = evaluate(p, NULL, AT_ROPE_KV_WRITE_OF_CACHE + AT_CACHE_PAGE_START),
                        right = evaluate(p, NULL, -1);
    assert_int_equal(slot_of(p, 1) % 16, 15);
    for (int64_t i = 0; i < n; i++) {
        const int64_t to = (slot_of(p, 1) - 15) * n + i, from = slot_of(p, 1) * n + i;
        at_assert_same(start.eval.value[AT_ROPE_KV_WRITE_K_CACHE][to],
                       right.eval.value[AT_ROPE_KV_WRITE_K_CACHE][from]);
        at_assert_same(start.eval.value[AT_ROPE_KV_WRITE_K_CACHE][from],
                       at_tensor_get(&p->tensors[AT_ROPE_KV_WRITE_K_CACHE], from));
    }
    at_test_eval_release(&start);
    at_test_eval_release(&right);
    at_drop_case(&built);
    at_drop_case(&other);
}

static void test_value_decoys(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE), other = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    struct at_problem *w = &other.data.problem;
    struct at_test_eval right = evaluate(p, NULL, -1),
                        swapped = evaluate(p, NULL, AT_ROPE_KV_WRITE_OF_CACHE + AT_CACHE_K_AND_V_SWAPPED),
                        rotated = evaluate(p, NULL, AT_ROPE_KV_WRITE_V_ROTATED),
                        only = evaluate(p, NULL, AT_ROPE_KV_WRITE_ONLY_WRITTEN);
    const int64_t n = p->sizes.hk * p->sizes.d, of_q = p->sizes.h * p->sizes.d;
    /* v as keys */
    memcpy(w->tensors[AT_ROPE_KV_WRITE_K].data, p->tensors[AT_ROPE_KV_WRITE_V].data,
           (size_t)at_tensor_bytes(&p->tensors[AT_ROPE_KV_WRITE_V]));
    struct at_test_eval as_keys = evaluate(w, NULL, -1);
    for (int64_t token = 0; token < p->sizes.tokens; token++) {
        const int64_t slot = slot_of(p, token);
        for (int64_t i = 0; i < of_q; i++)
            at_assert_same(only.eval.value[AT_ROPE_KV_WRITE_Q_OUT][token * of_q + i],
                           slot < 0 ? 0 : right.eval.value[AT_ROPE_KV_WRITE_Q_OUT][token * of_q + i]);
        for (int64_t i = slot * n; slot >= 0 && i < slot * n + n; i++) {
            at_assert_same(swapped.eval.value[AT_ROPE_KV_WRITE_K_CACHE][i],
                           right.eval.value[AT_ROPE_KV_WRITE_V_CACHE][i]);
            at_assert_same(swapped.eval.value[AT_ROPE_KV_WRITE_V_CACHE][i],
                           right.eval.value[AT_ROPE_KV_WRITE_K_CACHE][i]);
            at_assert_same(rotated.eval.value[AT_ROPE_KV_WRITE_V_CACHE][i],
                           as_keys.eval.value[AT_ROPE_KV_WRITE_K_CACHE][i]);
            at_assert_same(rotated.eval.value[AT_ROPE_KV_WRITE_K_CACHE][i],
                           right.eval.value[AT_ROPE_KV_WRITE_K_CACHE][i]);
        }
    }
    struct at_test_eval *all[] = { &right, &swapped, &rotated, &only, &as_keys };
    for (int i = 0; i < 5; i++)
        at_test_eval_release(all[i]);
    at_drop_case(&built);
    at_drop_case(&other);
}

/* ---- bits, refusals, parts ---- */

static void test_bits_and_bytes(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(
        "rope_kv_write b=2 sq=3/2 prefix=4/5 h=2 hk=1 d=12 rot=8 page=4 padding=1 dtype=f16 data=any_bits");
    const struct at_problem *p = &built.data.problem;
    const int64_t slots = at_test_count(p, AT_ROPE_KV_WRITE_K_CACHE) / 12;
    uint16_t *codes = calloc((size_t)slots * 24, sizeof *codes);
    for (int t = AT_ROPE_KV_WRITE_Q_OUT; t <= AT_ROPE_KV_WRITE_V_CACHE; t++) {
        unsigned char *computed = calloc((size_t)at_test_count(p, t) + 1, 1);
        assert_true(codes && computed);
        p->op->bits(p, t, codes, computed);
        for (int64_t i = 0; i < at_test_count(p, t); i++) {
            int64_t writer = t == AT_ROPE_KV_WRITE_Q_OUT ? i / 24 : -1;
            for (int64_t token = 0; t != AT_ROPE_KV_WRITE_Q_OUT && token < p->sizes.tokens; token++)
                writer = slot_of(p, token) == i / 12 ? token : writer;
            const int from = t == AT_ROPE_KV_WRITE_Q_OUT     ? AT_ROPE_KV_WRITE_Q
                             : writer < 0                    ? t
                             : t == AT_ROPE_KV_WRITE_K_CACHE ? AT_ROPE_KV_WRITE_K
                                                             : AT_ROPE_KV_WRITE_V;
            const int64_t n = t == AT_ROPE_KV_WRITE_Q_OUT ? 24 : 12, at = writer < 0 ? i : writer * n + i % n;
            assert_int_equal(computed[i], writer >= 0 && t != AT_ROPE_KV_WRITE_V_CACHE && i % 12 < 8);
            if (!computed[i])
                assert_int_equal(codes[i], at_load_code(AT_F16, p->tensors[from].data, (size_t)at));
        }
        free(computed);
    }
    free(codes);
    assert_int_equal(p->op->moved(p, AT_ROPE_KV_WRITE_COS_SIN), 4 * 8); /* positions 4, 5, 6; 5, 6; 0 of the padding */
    assert_int_equal(p->op->moved(p, AT_ROPE_KV_WRITE_Q), 6 * 2 * 12);
    assert_int_equal(p->op->moved(p, AT_ROPE_KV_WRITE_V_CACHE), 6 * 12);
    at_drop_case(&built);
}

static void refused(struct at_problem *p, const char *text) { at_assert_fails(p->op->check(p), AT_USAGE, text); }

static void test_refused(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    struct at_problem *p = &built.data.problem, whole = *p;
    int32_t *slots = p->tensors[AT_ROPE_KV_WRITE_SLOT_MAPPING].data;
    int32_t *positions = p->tensors[AT_ROPE_KV_WRITE_POSITIONS].data;
    const int32_t slot = slots[0], position = positions[0];
    const struct at_rope_own right = at_rope_own_of(p);
    struct at_rope_own own = right;
    at_assert_ok(p->op->check(p));
    slots[0] = slots[5];
    refused(p, "rope_kv_write: slot_mapping[5] is");
    slots[0] = -2;
    refused(p, "slot_mapping[0] is -2, wanted -1 to");
    slots[0] = slot;
    positions[0] = (int32_t)own.max_position;
    refused(p, "rope_kv_write: positions[0] is");
    positions[0] = position;
    own.rot = 7;
    at_rope_own_set(p, &own);
    refused(p, "rope_kv_write: rot is 7, wanted an even number");
    at_rope_own_set(p, &right);
    p->sizes.h = 0;
    refused(p, "h, hk, d are 0, 2, 12");
    *p = whole;
    p->sizes.page = 7;
    refused(p, "not whole pages of 7");
    *p = whole;
    p->sizes.tokens = -1;
    refused(p, "tokens, slots, page are -1");
    *p = whole;
    p->tensors[AT_ROPE_KV_WRITE_V_CACHE].data = NULL;
    refused(p, "tensor v_cache has no data");
    *p = whole;
    at_drop_case(&built);
    struct at_case_list list = { 0 };
    at_assert_fails(at_case_parse("rope_kv_write b=1 sq=5 sk=4", "t", "here", &list), AT_USAGE,
                    "wanted at least as many");
    at_case_list_release(&list);
}

/* Some tokens in another order: each has its queries and writes its own slot; a token of padding has queries alone. */
static void test_parts(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(LINE);
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval whole = evaluate(p, NULL, -1);
    const int64_t units[] = { 26, 20, 0 };
    struct at_batch_part part;
    assert_int_equal(at_batch_units(p), 27);
    at_assert_ok(at_batch_gather(p, units, 3, &part));
    struct at_test_eval some = evaluate(&part.problem, NULL, -1);
    for (int64_t u = 0; u < 3; u++)
        for (int t = AT_ROPE_KV_WRITE_Q_OUT; t <= AT_ROPE_KV_WRITE_V_CACHE; t++) {
            int64_t first, count, part_first, part_count, row, rows, part_row;
            at_batch_rows(p, units[u], &row, &rows);
            at_batch_rows(&part.problem, u, &part_row, &rows);
            assert_int_equal(rows, 1);
            p->op->row_span(p, t, row, &first, &count);
            p->op->row_span(&part.problem, t, part_row, &part_first, &part_count);
            assert_int_equal(count, part_count);
            assert_int_equal(count, t == AT_ROPE_KV_WRITE_Q_OUT ? 48 : u == 0 ? 0 : 24);
            for (int64_t i = 0; i < count; i++)
                at_assert_same(some.eval.value[t][part_first + i], whole.eval.value[t][first + i]);
        }
    at_test_eval_release(&some);
    at_test_eval_release(&whole);
    at_batch_release(&part);
    at_drop_case(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),           cmocka_unit_test(test_as_both),
        cmocka_unit_test(test_oracle),         cmocka_unit_test(test_rotation_decoys),
        cmocka_unit_test(test_slot_decoys),    cmocka_unit_test(test_value_decoys),
        cmocka_unit_test(test_bits_and_bytes), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
