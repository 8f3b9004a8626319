/* Each decoy of AsyncT attention is the fault that its name says: it equals a right evaluation of the
 * correspondingly changed problem, differs from the reference where it should, and nowhere else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/asynct_parameters.h"

enum { HEADS = 2, D = 4, TAPS = 4, WIDTH = HEADS * D };

/* Two requests of 3 queries over 40 and 9 keys, given taps of which the last is 0 unless a test sets it. */
static void make(struct at_test_problem *made, int causal, int last_tap) {
    static const int sq[] = { 3, 3 }, sk[] = { 40, 9 };
    struct at_test_shape shape = {
        .b = 2, .h = HEADS, .d = D, .sq = sq, .sk = sk, .taps = TAPS, .causal = causal, .dtype = AT_F32
    };
    at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, 11, made));
    made->problem.params.fir_form = AT_FIR_TAPS;
    for (int i = 0; i < HEADS * TAPS; i++)
        at_test_set(&made->problem, "taps", i, i % TAPS == TAPS - 1 ? 0.5 * last_tap : 0.75 - 0.25 * (i % TAPS));
    at_test_set_all(&made->problem, "gamma", 1.5);
    at_assert_ok(made->problem.op->check(&made->problem));
}

/* All outputs, right (decoy -1) or wrong. The caller frees. */
static double *run(const struct at_problem *problem, int decoy, const struct at_numerics *numerics) {
    struct at_test_eval eval;
    at_assert_ok(at_test_eval_init(problem, 0, &eval));
    const int64_t rows = problem->op->rows(problem), n = at_test_count(problem, AT_ASYNCT_O);
    /* two calls with a cut inside a request: rows are independent */
    for (int64_t row = 0, end = rows < 5 ? rows : 5; row < rows; row = end, end = rows) {
        if (decoy < 0)
            at_assert_ok(problem->op->evaluate(problem, numerics, row, end, &eval.eval));
        else
            at_assert_ok(problem->op->decoy(problem, numerics, decoy, row, end, &eval.eval));
    }
    double *o = malloc((size_t)n * sizeof *o);
    assert_non_null(o);
    memcpy(o, eval.eval.value[AT_ASYNCT_O], (size_t)n * sizeof *o);
    at_test_eval_release(&eval);
    return o;
}

static void assert_equal(const double *got, const double *want, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        at_assert_same(got[i], want[i]);
}

static int64_t differing(const double *a, const double *b, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += a[i] != b[i];
    return count;
}

/* With one query for all tokens, a key more or less is the next or previous token's row. */
static void test_keys_dropped_and_added(void **state) {
    (void)state;
    struct at_test_problem made;
    make(&made, 1, 0);
    for (int i = 0; i < 6 * WIDTH; i++)
        at_test_set(&made.problem, "q", i, at_test_get(&made.problem, "q", i % WIDTH));
    double *right = run(&made.problem, -1, NULL);
    double *dropped = run(&made.problem, AT_ASYNCT_LAST_KEY_DROPPED, NULL);
    double *added = run(&made.problem, AT_ASYNCT_HIDDEN_KEY_ADDED, NULL);
    for (int request = 0; request < 2; request++) {
        const int first = 3 * WIDTH * request;
        assert_equal(dropped + first + WIDTH, right + first, 2 * WIDTH);
        assert_equal(added + first, right + first + WIDTH, 2 * WIDTH);
        assert_equal(added + first + 2 * WIDTH, right + first + 2 * WIDTH, WIDTH); /* nothing is hidden */
    }
    assert_true(differing(dropped, right, 6 * WIDTH) > 0 && differing(added, right, 6 * WIDTH) > 0);
    free(right);
    free(dropped);
    free(added);
    at_test_problem_release(&made);
}

/* No mask; and one of as many keys as there are queries, which begins where the request does. */
static void test_masks(void **state) {
    (void)state;
    struct at_test_problem made, twin;
    make(&made, 1, 0);
    make(&twin, 0, 0);
    double *right = run(&made.problem, -1, NULL), *all = run(&twin.problem, -1, NULL);
    double *missing = run(&made.problem, AT_ASYNCT_MASK_MISSING, NULL);
    double *top_left = run(&made.problem, AT_ASYNCT_MASK_TOP_LEFT, NULL);
    double *unmasked = run(&twin.problem, AT_ASYNCT_MASK_TOP_LEFT, NULL);
    assert_equal(missing, all, 6 * WIDTH);
    assert_equal(unmasked, all, 6 * WIDTH);
    for (int request = 0; request < 2; request++)
        ((int32_t *)made.problem.tensors[AT_ATTN_SEQ_LENS].data)[request] = 3;
    double *few = run(&made.problem, -1, NULL);
    assert_equal(top_left, few, 6 * WIDTH);
    assert_true(differing(missing, right, 6 * WIDTH) > WIDTH && differing(top_left, right, 6 * WIDTH) > 3 * WIDTH);
    free(right);
    free(all);
    free(missing);
    free(top_left);
    free(unmasked);
    free(few);
    at_test_problem_release(&made);
    at_test_problem_release(&twin);
}

static void test_no_scale(void **state) {
    (void)state;
    struct at_test_problem made;
    make(&made, 0, 0);
    double *right = run(&made.problem, -1, NULL), *wrong = run(&made.problem, AT_ASYNCT_NO_SCALE, NULL);
    made.problem.params.scale = 1;
    double *same = run(&made.problem, -1, NULL);
    assert_equal(wrong, same, 6 * WIDTH);
    assert_true(differing(wrong, right, 6 * WIDTH) > 3 * WIDTH);
    free(right);
    free(wrong);
    free(same);
    at_test_problem_release(&made);
}

/* Dropping the last tap is having 0 there; shifting is having each tap one later. */
static void test_fir(void **state) {
    (void)state;
    struct at_test_problem with, without;
    make(&with, 1, 1);
    make(&without, 1, 0);
    double *right = run(&with.problem, -1, NULL), *wrong = run(&with.problem, AT_ASYNCT_TAP_DROPPED, NULL);
    double *same = run(&without.problem, -1, NULL);
    for (int i = 0; i < 6 * WIDTH; i++)
        at_assert_within(wrong[i], same[i], 1e-14);
    assert_true(differing(wrong, right, 6 * WIDTH) > 3 * WIDTH);
    double *shifted = run(&without.problem, AT_ASYNCT_FIR_SHIFTED, NULL);
    for (int i = HEADS * TAPS - 1; i >= 0; i--)
        at_test_set(&with.problem, "taps", i, i % TAPS ? at_test_get(&without.problem, "taps", i - 1) : 0);
    double *late = run(&with.problem, -1, NULL);
    assert_equal(shifted, late, 6 * WIDTH);
    assert_true(differing(shifted, same, 6 * WIDTH) > 3 * WIDTH);
    free(right);
    free(wrong);
    free(same);
    free(shifted);
    free(late);
    at_test_problem_release(&with);
    at_test_problem_release(&without);
}

/* Pooled: the weight of the last tap is sigma/K also at a shrinking edge, where it has not come in yet; a
 * filter of one tap has none to drop. */
static void test_pooled_tap(void **state) {
    (void)state;
    static const int one[] = { 1 }, three[] = { 3 };
    struct at_test_shape shape = { .b = 1, .d = 1, .sq = one, .sk = three, .dtype = AT_F32 };
    struct at_test_problem made;
    at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, 1, &made));
    made.problem.params.edge = AT_EDGE_SHRINK;
    made.problem.params.clip_max = 100;
    at_test_set(&made.problem, "q", 0, 1);
    for (int t = 0; t < 3; t++) {
        at_test_set(&made.problem, "k", t, 1 << t);
        at_test_set(&made.problem, "v", t, 1);
    }
    double *right = run(&made.problem, -1, NULL), *wrong = run(&made.problem, AT_ASYNCT_TAP_DROPPED, NULL);
    /* z = 0, 2 - 3/2, 4 - 7/3; without the last tap 4 - 6/3 */
    at_assert_within(right[0], 0.5 + 5.0 / 3, 1e-14);
    at_assert_within(wrong[0], 0.5 + 2.0, 1e-14);
    free(right);
    free(wrong);
    at_test_problem_release(&made);
    shape.taps = 1;
    at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, 1, &made));
    at_test_asynct_sigma(&made.problem, 0.25);
    for (int t = 0; t < 3; t++)
        at_test_set(&made.problem, "k", t, at_test_get(&made.problem, "q", 0));
    right = run(&made.problem, -1, NULL);
    wrong = run(&made.problem, AT_ASYNCT_TAP_DROPPED, NULL);
    assert_true(right[0] != 0);
    assert_equal(wrong, right, 1);
    free(right);
    free(wrong);
    at_test_problem_release(&made);
}

static void test_v_swapped(void **state) {
    (void)state;
    struct at_test_problem made;
    make(&made, 0, 0);
    double *right = run(&made.problem, -1, NULL), *wrong = run(&made.problem, AT_ASYNCT_V_SWAPPED, NULL);
    for (int t = 0; t < 48; t += 2) /* 40 keys in pairs, then 9: the last stays */
        for (int i = 0; i < WIDTH; i++) {
            double x = at_test_get(&made.problem, "v", t * WIDTH + i);
            at_test_set(&made.problem, "v", t * WIDTH + i, at_test_get(&made.problem, "v", (t + 1) * WIDTH + i));
            at_test_set(&made.problem, "v", (t + 1) * WIDTH + i, x);
        }
    double *same = run(&made.problem, -1, NULL);
    assert_equal(wrong, same, 6 * WIDTH);
    assert_true(differing(wrong, right, 6 * WIDTH) > 3 * WIDTH);
    free(right);
    free(wrong);
    free(same);
    at_test_problem_release(&made);
}

/* Scores and gate inputs of row 0, from the trace. */
struct row {
    double scaled[64], gate_in[64];
};

static void keep(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values) {
    struct row *kept = context;
    for (int64_t t = 0; row == 0 && t < n; t++) {
        if (stage == AT_STAGE_scaled)
            kept->scaled[t] = values[t];
        if (stage == AT_STAGE_gate_in)
            kept->gate_in[t] = values[t];
    }
}

static struct row traced(const struct at_problem *problem) {
    struct row kept = { 0 };
    struct at_eval eval = { .trace = keep, .trace_context = &kept };
    at_assert_ok(problem->op->evaluate(problem, NULL, 0, 1, &eval));
    return kept;
}

static void test_gate_unclamped(void **state) {
    (void)state;
    struct at_test_problem made;
    make(&made, 0, 0);
    struct row row = traced(&made.problem);
    double *wrong = run(&made.problem, AT_ASYNCT_GATE_UNCLAMPED, NULL), *right = run(&made.problem, -1, NULL);
    for (int c = 0; c < D; c++) {
        double want = 0;
        for (int t = 0; t < 40; t++)
            want += 1.5 * row.gate_in[t] * at_test_get(&made.problem, "v", t * WIDTH + c);
        at_assert_within(wrong[c], want, 1e-13);
        assert_true(fabs(wrong[c] - right[c]) > 1e-3);
    }
    made.problem.params.clip_max = INFINITY; /* with a gate that never acts the two are equal */
    at_test_set_all(&made.problem, "taps", 0.25);
    double *open = run(&made.problem, AT_ASYNCT_GATE_UNCLAMPED, NULL), *same = run(&made.problem, -1, NULL);
    assert_equal(open, same, 6 * WIDTH);
    free(wrong);
    free(right);
    free(open);
    free(same);
    at_test_problem_release(&made);
}

/* o of row 0, channel c, when the filter starts anew every `split` keys. */
static double without_halo(const struct at_problem *problem, const struct row *row, int split, int c) {
    double o = 0;
    for (int t = 0; t < 40; t++) {
        double z = 0;
        for (int j = 0; j < TAPS && j <= t % split; j++)
            z += at_test_get(problem, "taps", j) * fmax(row->scaled[t - j], 0);
        o += 1.5 * fmin(fmax(z, 0), 1) * at_test_get(problem, "v", t * WIDTH + c);
    }
    return o;
}

static void test_halo_forgotten(void **state) {
    (void)state;
    struct at_test_problem made;
    struct at_numerics numerics = at_numerics_default();
    make(&made, 0, 1);
    made.problem.params.scale /= 8; /* positive scores inside the gate: every halo matters */
    for (int i = 0; i < 6 * WIDTH; i++)
        at_test_set(&made.problem, "q", i, fabs(at_test_get(&made.problem, "q", i)));
    for (int i = 0; i < 49 * WIDTH; i++)
        at_test_set(&made.problem, "k", i, fabs(at_test_get(&made.problem, "k", i)));
    struct row row = traced(&made.problem);
    double *right = run(&made.problem, -1, NULL);
    numerics.split = 8;
    double *eight = run(&made.problem, AT_ASYNCT_HALO_FORGOTTEN, &numerics);
    numerics.split = 4;
    numerics.splits = 5; /* of 40 keys 8, too */
    double *fifths = run(&made.problem, AT_ASYNCT_HALO_FORGOTTEN, &numerics);
    assert_equal(fifths, eight, 3 * WIDTH);
    free(fifths);
    numerics.splits = 0;
    numerics.split = 0; /* half of 40 in whole tiles: 32 */
    double *half = run(&made.problem, AT_ASYNCT_HALO_FORGOTTEN, &numerics);
    double *undeclared = run(&made.problem, AT_ASYNCT_HALO_FORGOTTEN, NULL);
    assert_true(fabs(without_halo(&made.problem, &row, 16, 0) - without_halo(&made.problem, &row, 32, 0)) > 1e-3);
    for (int c = 0; c < D; c++) {
        at_assert_within(eight[c], without_halo(&made.problem, &row, 8, c), 1e-13);
        at_assert_within(half[c], without_halo(&made.problem, &row, 32, c), 1e-13);
    }
    assert_equal(undeclared, half, 6 * WIDTH);
    assert_true(differing(eight, right, 3 * WIDTH) > WIDTH && differing(half, right, 3 * WIDTH) > WIDTH);
    assert_equal(half + 3 * WIDTH, right + 3 * WIDTH, 3 * WIDTH); /* 9 keys: one split */
    free(right);
    free(eight);
    free(half);
    free(undeclared);
    at_test_problem_release(&made);
}

static void test_unknown_decoy(void **state) {
    (void)state;
    struct at_test_problem made;
    struct at_eval eval = { 0 };
    make(&made, 0, 0);
    at_assert_fails(at_asynct_decoy(&made.problem, NULL, AT_ASYNCT_DECOYS, 0, 1, &eval), AT_BUG, "decoy");
    for (int i = 0; i < AT_ASYNCT_DECOYS; i++)
        assert_non_null(at_op_asynct_attention.decoys[i].name);
    at_test_problem_release(&made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_dropped_and_added),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_no_scale),
        cmocka_unit_test(test_fir),
        cmocka_unit_test(test_pooled_tap),
        cmocka_unit_test(test_v_swapped),
        cmocka_unit_test(test_gate_unclamped),
        cmocka_unit_test(test_halo_forgotten),
        cmocka_unit_test(test_unknown_decoy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
