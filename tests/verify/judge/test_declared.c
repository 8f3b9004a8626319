/* Neighbours of declarations, which fields a case tests, and that operators say truly which fields their models read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/built_case.h"
#include "verify/judge/declared.h"

static const double ALL_ROWS = 1e12;

static struct at_numerics numerics(const char *text) {
    struct at_numerics n;
    at_assert_ok(at_numerics_parse(text, &n));
    at_assert_ok(at_numerics_check(&n));
    return n;
}

static struct at_declared_test tried(const char *line, const char *declared, double work) {
    const struct at_numerics n = numerics(declared);
    struct at_built_case built = at_build_line(line);
    struct at_declared_test test;
    at_assert_ok(at_declared_try(&built.data.problem, &n, ~UINT64_C(0), work, &test));
    at_drop_case(&built);
    return test;
}

static int tests(const struct at_declared_test *test, int field) { return test->tested >> field & 1; }

/* ---- neighbours ---- */

static const char *const some[] = {
    "",
    "qk_unit=tc_f32 p=bf16 pv_unit=tc_f32 pv_chunk=16 split=256 block=32",
    "qk_unit=tc_f16 p=f16 pv_unit=tc_f16 pv_chunk=16 guard=isinf",
    "qk_lanes=8 qk_tree=butterfly qk_run=4 pv_zero=skipped",
    "qk_unit=tc_fp8 split=128",
    "exp=ex2_approx batch_invariant=1 tail=finite free_order=1",
    "block=32 rescale=f16 divide=reciprocal_f16 split=64 splits=4",
};

static void test_neighbours_have_a_meaning(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof some / sizeof *some; s++) {
        const struct at_numerics n = numerics(some[s]);
        for (int f = 0; f < AT_FIELD_COUNT; f++) {
            struct at_neighbours near;
            at_neighbours(&n, f, &near);
            at_assert_true(near.n <= AT_MAX_NEIGHBOURS, "%s: field %d has no room", some[s], f);
            for (int i = 0; i < near.n; i++) {
                at_assert_ok(at_numerics_check(&near.of[i]));
                assert_true(at_numerics_get(&near.of[i], f) != at_numerics_get(&n, f));
                for (int k = 0; k < i; k++)
                    assert_true(memcmp(&near.of[i], &near.of[k], sizeof n) != 0);
            }
        }
    }
}

static int has_neighbour(const char *declared, int field, const char *wanted) {
    const struct at_numerics n = numerics(declared), want = numerics(wanted);
    struct at_neighbours near;
    int found = 0;
    at_neighbours(&n, field, &near);
    for (int i = 0; i < near.n; i++)
        found |= memcmp(&near.of[i], &want, sizeof want) == 0;
    return found;
}

static void test_neighbours_named(void **state) {
    (void)state;
    const int split = AT_FIELD_split;
    assert_true(has_neighbour("split=256", split, "split=128"));
    assert_true(has_neighbour("split=256", split, "split=512"));
    assert_true(has_neighbour("split=256", split, "split=255"));
    assert_true(has_neighbour("split=256", split, "split=0"));
    assert_true(has_neighbour("", split, "split=256"));
    assert_true(
        has_neighbour("pv_unit=tc_f32 p=bf16 pv_chunk=16", AT_FIELD_pv_chunk, "pv_unit=tc_f32 p=bf16 pv_chunk=8"));
    assert_true(has_neighbour("split=16 splits=4", AT_FIELD_splits, "split=16 splits=8"));
    assert_true(has_neighbour("block=16", AT_FIELD_rescale, "block=16 rescale=f16"));
    assert_false(has_neighbour("", AT_FIELD_rescale, "")); /* without steps nothing is rescaled */
    /* a unit takes with it what it governs */
    assert_true(has_neighbour("pv_unit=tc_f32 p=bf16 pv_chunk=16", AT_FIELD_pv_unit, "pv_unit=f32_fma p=bf16"));
    assert_true(has_neighbour("qk_lanes=8 qk_tree=butterfly", AT_FIELD_qk_unit, "qk_unit=tc_f32"));
    /* one lane, or two, are joined in one way */
    assert_false(has_neighbour("", AT_FIELD_qk_tree, "qk_tree=butterfly"));
    assert_false(has_neighbour("qk_lanes=2", AT_FIELD_qk_tree, "qk_lanes=2 qk_tree=butterfly"));
    assert_true(has_neighbour("qk_lanes=4", AT_FIELD_qk_tree, "qk_lanes=4 qk_tree=butterfly"));
}

/* ---- what a case tests ---- */

static void test_split(void **state) {
    (void)state;
    static const char declared[] = "split=256 p=f32";
    struct at_declared_test t = tried("asynct_decode h=1 hk=1 sk=20 d=16 data=swamped sigma=0.5", declared, ALL_ROWS);
    assert_false(tests(&t, AT_FIELD_split)); /* one range, however it is declared */
    t = tried("asynct_decode h=1 hk=1 sk=600 d=16 data=swamped sigma=0.5", declared, ALL_ROWS);
    assert_true(tests(&t, AT_FIELD_split));
    assert_true(tests(&t, AT_FIELD_pv_unit));
    t = tried("asynct_decode h=1 hk=1 sk=600 d=16 data=exact", declared, ALL_ROWS);
    assert_false(tests(&t, AT_FIELD_split)); /* every order gives the same */
    assert_false(tests(&t, AT_FIELD_pv_unit));
}

/* Only rows that fit the work are looked at, those that end requests first, from the last. */
static void test_work(void **state) {
    (void)state;
    static const char line[] = "asynct_decode b=2 h=1 hk=1 sk=600/20 d=16 data=swamped sigma=0.5";
    struct at_declared_test t = tried(line, "split=256", 1);
    assert_false(tests(&t, AT_FIELD_split));
    t = tried(line, "split=256", ALL_ROWS);
    assert_true(tests(&t, AT_FIELD_split));
}

static void test_launches(void **state) {
    (void)state;
    static const char declared[] = "split=256 batch_invariant=1";
    struct at_declared_test t =
        tried("asynct_decode b=1 h=1 hk=1 sk=600 d=16 data=swamped sigma=0.5", declared, ALL_ROWS);
    assert_true(tests(&t, AT_FIELD_repeats));
    assert_false(tests(&t, AT_FIELD_batch_invariant)); /* nobody else in the batch */
    assert_false(tests(&t, AT_FIELD_tail));            /* no row without an owner */
    assert_false(t.modelled >> AT_FIELD_tail & 1);
    t = tried("asynct_decode b=2 h=1 hk=1 sk=600 d=16 page=16 data=swamped sigma=0.5", declared, ALL_ROWS);
    assert_true(tests(&t, AT_FIELD_batch_invariant));
    assert_true(tests(&t, AT_FIELD_tail));
    /* where every order gives the same bits, one that changes from launch to launch does too */
    t = tried("asynct_decode b=2 h=1 hk=1 sk=600 d=16 page=16 data=exact", declared, ALL_ROWS);
    assert_false(tests(&t, AT_FIELD_repeats));
    assert_false(tests(&t, AT_FIELD_batch_invariant));
    assert_true(tests(&t, AT_FIELD_tail));
}

/* Without an order a limit judges: a narrower P shows, an order does not count, and what is no worse is no neighbour. */
static void test_free_order(void **state) {
    (void)state;
    const struct at_declared_test t =
        tried("asynct_decode b=2 h=1 hk=1 sk=40 d=16 dtype=f32", "free_order=1 qk_unit=f32 pv_unit=f32", ALL_ROWS);
    struct at_neighbours near;
    const struct at_numerics n = numerics("free_order=1 qk_unit=f32 pv_unit=f32");
    assert_true(tests(&t, AT_FIELD_p));
    assert_false(tests(&t, AT_FIELD_split));
    assert_false(t.modelled >> AT_FIELD_split & 1);
    at_neighbours(&n, AT_FIELD_pv_unit, &near);
    for (int i = 0; i < near.n; i++)
        if (near.of[i].pv_unit == AT_UNIT_F64)
            assert_false(t.has_model[AT_FIELD_pv_unit] >> i & 1);
}

/* No rows: nothing is tested, and nothing could be. */
static void test_nothing(void **state) {
    (void)state;
    const struct at_declared_test t = tried("asynct_decode b=1 h=1 hk=1 sq=0 sk=10 d=16", "fir_fma=1", ALL_ROWS);
    assert_int_equal(t.tested, 0);
    assert_false(t.modelled >> AT_FIELD_fir_fma & 1);
}

static void test_unfit(void **state) {
    (void)state;
    const struct at_numerics n = numerics("qk_unit=tc_f32");
    struct at_built_case built = at_build_line("asynct_decode h=1 hk=1 sk=20 d=16 dtype=f32");
    struct at_declared_test t;
    at_assert_fails(at_declared_try(&built.data.problem, &n, ~UINT64_C(0), ALL_ROWS, &t), AT_UNSUPPORTED, "qk_unit");
    at_drop_case(&built);
}

/* ---- operators say which fields their models read ---- */

static const struct {
    const char *line, *declared;
} reads[] = {
    { "asynct_decode b=2 h=2 hk=1 sk=70 d=16 data=swamped gamma=0.7 dtype=f16", "split=64" },
    { "asynct_decode b=2 h=2 hk=1 sk=270 d=16 dtype=f32", "split=16 splits=4" },
    { "asynct_decode b=2 h=2 hk=1 sk=70 d=64 scale=0.3 dtype=f32", "qk_lanes=4 qk_run=2" },
    { "asynct_decode b=2 h=2 hk=1 sk=70 d=64 data=swamped dtype=f16", "qk_unit=tc_f32 qk_run=8" },
    { "asynct_decode b=2 h=2 hk=1 sk=70 d=64 scale=0.3 gamma=0.7 dtype=f32", "qk_lanes=4 qk_run=2 p=f16" },
    { "asynct_decode b=2 h=2 hk=1 sk=70 d=16 data=nonfinite dtype=f16", "qk_lanes=4 pv_zero=skipped" },
    { "asynct_decode b=2 h=2 hk=1 sk=70 d=64 data=random_bits dtype=f16",
      "qk_unit=tc_f16 pv_unit=tc_f16 p=f16 pv_chunk=16" },
    { "asynct_decode b=2 h=2 hk=1 sk=270 d=32 data=swamped dtype=f16", "p=f16 pv_unit=tc_f32 pv_chunk=16" },
    { "softmax_decode b=2 h=2 hk=1 sk=270 d=16 data=swamped dtype=f16", "qk_lanes=4 split=64 block=32" },
    { "softmax_decode b=2 h=2 hk=1 sk=70 d=64 scale=0.3 dtype=f32", "qk_lanes=4 qk_run=2" },
    { "softmax_decode b=2 h=2 hk=1 sk=70 d=64 scale=0.3 dtype=f32",
      "exp=ex2_approx exp_arg=fma ex2_poly3=8 l_lanes=4 l_run=2 l_tree=butterfly divide=rcp_approx lse=lg2_approx" },
    { "softmax_decode b=2 h=2 hk=1 sk=70 d=64 scale=0.3 dtype=f32", "exp=ex2_approx l_lanes=1 l_run=1 lse=lg2_approx" },
    { "softmax_decode b=2 h=2 hk=1 sk=70 d=64 data=random_bits scale=1e-8 dtype=f16",
      "qk_unit=tc_f16 pv_unit=tc_f16 p=f16 pv_chunk=16 block=16" },
    { "softmax_decode b=2 h=2 hk=1 sk=70 d=32 dtype=f16", "p=f16 block=16" },
    { "softmax_decode b=2 h=2 hk=1 sk=70 d=32 dtype=f32 softcap=2", "tanh=tanh_approx" },
    { "softmax_decode b=8 h=8 hk=8 sk=40/70 d=64 scale=8 alibi=5.3 dtype=f32", "exp=ex2_approx l_lanes=1 l_run=1" },
    { "softmax_decode b=2 h=2 hk=1 sk=270 d=16 data=swamped dtype=f16", "split=16 splits=4" },
    { "softmax_decode b=2 h=2 hk=1 sk=270 d=32 data=swamped dtype=f16", "p=f16 pv_unit=tc_f32 pv_chunk=16" },
    { "softmax_decode b=1 h=2 hk=1 sk=40 d=32 data=nonfinite scale=40 seed=3", "pv_zero=skipped" },
    { "softmax_decode b=8 h=8 hk=8 sk=2 d=64 data=random_bits scale=1e-8 dtype=f16 seed=6", "" },
    { "gemm m=9 n=20 k=200 dtype=f16 out=f32", "qk_unit=f32_fma qk_lanes=4 qk_run=2" },
    { "gemm m=9 n=20 k=200 dtype=f16 out=f16 data=overflow", "qk_unit=tc_f16" },
    { "rms_norm tokens=9 channels=200 dtype=f32", "qk_lanes=4 qk_run=2" },
    { "add_rms_norm tokens=9 channels=200 dtype=f32", "qk_lanes=4 qk_run=2" },
    { "uclip_norm tokens=20 channels=64 dtype=f32 data=nonfinite seed=2", "fir_fma=1" },
    { "add_uclip_norm tokens=20 channels=64 dtype=f32 data=nonfinite seed=2", "fir_fma=1" },
    { "qk_uclip_norm tokens=20 h=4 hk=2 d=64 dtype=f32 data=nonfinite seed=2", "fir_fma=1" },
    { "post_attn_pre_mlp_uclip tokens=20 channels=64 dtype=f32 data=nonfinite seed=2", "fir_fma=1" },
    { "post_attn_pre_mlp_uclip_in_place tokens=20 channels=64 dtype=f32 data=nonfinite seed=2", "fir_fma=1" },
    { "lightning_decode b=2 h=2 d=20 e=8 slope=-3 dtype=f32", "qk_lanes=4 qk_run=2 exp=ex2_approx" },
    { "exp2 n=2000 data=subnormal", "exp=ex2_approx" },
    { "silu_mul tokens=20 channels=64 data=random_bits dtype=f32", "exp=ex2_approx divide=rcp_approx" },
    { "reglu tokens=20 channels=64 halves=together dtype=f32 data=nonfinite seed=2", "" },
    { "kv_write b=2 sq=3 prefix=4 hk=1 d=16 page=16", "" },
    { "slot_mapping b=2 sq=3 prefix=4 page=16", "" },
    { "argmax tokens=5 vocabulary=100 data=specials", "" },
    { "top_k tokens=9 vocabulary=100 k=20 dtype=f32", "exp=ex2_approx" },
    { "rope b=2 sq=3 prefix=4 h=2 hk=1 d=16 dtype=f32", "fir_fma=1" },
    { "rope_kv_write b=2 sq=3 prefix=4 h=2 hk=1 d=16 page=16 dtype=f32", "fir_fma=1" },
    { "tensor_core instruction=hopper_mma_k16_f16_f32 tokens=50", "" },
    { "score_counts h=1 sq=20 sk=30 d=16 dtype=f16 what=raw:p", "" },
};

/* Each operator's model is asked about every field as if it read them all. Each field that a case tells apart must stand
 * in its table, and each field of the table must be told apart by some case. */
static void test_operators_declare_what_they_read(void **state) {
    (void)state;
    uint64_t told[64] = { 0 };
    assert_true(at_op_count() < 64);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        const struct at_numerics n = numerics(reads[i].declared);
        struct at_built_case built = at_build_line(reads[i].line);
        const struct at_op *op = built.data.problem.op;
        struct at_op curious = *op;
        struct at_declared_test t;
        curious.declares = ~UINT64_C(0);
        built.data.problem.op = &curious;
        at_assert_ok(at_declared_try(&built.data.problem, &n, ~UINT64_C(0), ALL_ROWS, &t));
        for (int f = 0; f < AT_FIELD_COUNT; f++) {
            const int is_read = at_declared_refuted(&curious, &n, f) == AT_REFUTED_MODEL && (t.tested >> f & 1);
            at_assert_true(!is_read || (op->declares >> f & 1), "%s reads %s, which its table does not have", op->name,
                           at_numerics_field_at(f).name);
            for (int o = 0; is_read && o < at_op_count(); o++)
                told[o] |= at_op_at(o) == op ? UINT64_C(1) << f : 0;
        }
        at_drop_case(&built);
    }
    for (int o = 0; o < at_op_count(); o++)
        for (int f = 0; f < AT_FIELD_COUNT; f++)
            /* norms have no f16 accumulator, and nothing else is guarded */
            at_assert_true(!(at_op_at(o)->declares >> f & 1) || (told[o] >> f & 1) ||
                               (f == AT_FIELD_guard && at_op_at(o)->kind == AT_KIND_ROWS),
                           "%s: its table has %s, which no case here shows", at_op_at(o)->name,
                           at_numerics_field_at(f).name);
}

int main(void) {
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_neighbours_have_a_meaning),
        cmocka_unit_test(test_neighbours_named),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_free_order),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_unfit),
        cmocka_unit_test(test_operators_declare_what_they_read),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
