/* Poison and guarded launches: what stands in the rows that nobody owns, and what a launch may not do.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started with --serve, this program is itself a runner of kernels that misbehave. */
#include "tests/at_test.h"

#include <float.h>

#include "attest/attention.h"
#include "tests/support/built_case.h"
#include "tests/support/launch_kernels.h"
#include "verify/runner/launch.h"

/* ---- poison, without a runner ---- */

struct copy {
    struct at_problem problem;
    void *k, *v;
};

/* The problem with k and v of its own. */
static struct copy copy_of(const struct at_problem *problem) {
    struct copy c = { .problem = *problem };
    struct at_tensor *k = &c.problem.tensors[AT_ATTN_K], *v = &c.problem.tensors[AT_ATTN_V];
    c.k = malloc((size_t)at_tensor_bytes(k) + 1);
    c.v = malloc((size_t)at_tensor_bytes(v) + 1);
    assert_true(c.k && c.v);
    memcpy(c.k, k->data, (size_t)at_tensor_bytes(k));
    memcpy(c.v, v->data, (size_t)at_tensor_bytes(v));
    k->data = c.k;
    v->data = c.v;
    return c;
}

static void drop_copy(struct copy *c) {
    free(c->k);
    free(c->v);
}

/* Slots that a request's table maps to one of its keys, found the long way round. */
static int is_owned(const struct at_problem *p, int64_t slot) {
    for (int64_t r = 0; r < p->sizes.b; r++)
        for (int64_t t = 0; t < at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r); t++) {
            const int64_t page =
                at_tensor_i32(&p->tensors[AT_ATTN_BLOCK_TABLE], r * p->sizes.max_pages + t / p->sizes.page);
            if (page * p->sizes.page + t % p->sizes.page == slot)
                return 1;
        }
    return 0;
}

enum what { KEPT, IS_NAN, NEAR_1024, HUGE_VALUES };

static void assert_element(const struct at_tensor *x, const struct at_tensor *before, int64_t i, enum what want) {
    const double value = at_tensor_get(x, i);
    switch (want) {
    case KEPT:
        at_assert_true(at_load_code(x->format, x->data, (size_t)i) == at_load_code(x->format, before->data, (size_t)i),
                       "element %lld of a key changed", (long long)i);
        break;
    case IS_NAN:
        at_assert_true(isnan(value), "element %lld is %g, wanted NaN", (long long)i, value);
        break;
    case NEAR_1024:
        at_assert_true(fabs(value) >= 512 && fabs(value) <= 1024, "element %lld is %g", (long long)i, value);
        break;
    case HUGE_VALUES:
        at_assert_same(fabs(value), at_format_info(x->format)->max / 2);
        break;
    }
}

/* Poisons a copy and looks at every element of k and v; returns how many rows had no owner. */
static int64_t assert_poison(const struct at_problem *problem, enum at_tail tail, enum at_poison_turn turn, enum what k,
                             enum what v) {
    struct copy c = copy_of(problem);
    const int64_t row = problem->sizes.hk * problem->sizes.d;
    int64_t unowned = 0, negative = 0;
    for (int64_t i = 0; i < problem->sizes.slots * row; i++) /* a case may be made with poison there */
        if (!is_owned(problem, i / row)) {
            at_store(problem->dtype, c.k, (size_t)i, 1);
            at_store(problem->dtype, c.v, (size_t)i, 1);
        }
    at_assert_ok(at_poison_unowned(&c.problem, tail, turn, 11));
    for (int64_t slot = 0; slot < problem->sizes.slots; slot++) {
        const int owned = is_owned(problem, slot);
        unowned += !owned;
        for (int64_t i = slot * row; i < (slot + 1) * row; i++) {
            assert_element(&c.problem.tensors[AT_ATTN_K], &problem->tensors[AT_ATTN_K], i, owned ? KEPT : k);
            assert_element(&c.problem.tensors[AT_ATTN_V], &problem->tensors[AT_ATTN_V], i, owned ? KEPT : v);
            negative += !owned && at_tensor_get(&c.problem.tensors[AT_ATTN_K], i) < 0;
        }
    }
    if (k != IS_NAN) /* both signs, or a key taken for real could never pass a gate */
        at_assert_true(negative > unowned * row / 8 && negative < unowned * row * 7 / 8, "%lld of %lld are negative",
                       (long long)negative, (long long)(unowned * row));
    drop_copy(&c);
    return unowned;
}

static void poison_lies_where_nobody_owns(void **state) {
    (void)state;
    static const char *const formats[] = { "f32", "f16", "bf16" };
    for (size_t f = 0; f < 3; f++) {
        char line[160];
        snprintf(line, sizeof line, "asynct_prefill b=4 h=4 hk=2 sq=1 sk=5/0/16/9 d=16 page=4 dtype=%s", formats[f]);
        struct at_built_case built = at_build_line(line);
        const struct at_problem *p = &built.data.problem;
        assert_true(at_has_unowned(p));
        const int64_t unowned = assert_poison(p, AT_TAIL_UNREAD, AT_POISON_JUDGED, NEAR_1024, IS_NAN);
        assert_int_equal(unowned, p->sizes.slots - (5 + 16 + 9));
        at_assert_true(unowned >= 3 + 3 + p->sizes.page, "%lld rows without an owner: no spare page",
                       (long long)unowned);
        assert_int_equal(assert_poison(p, AT_TAIL_UNREAD, AT_POISON_AGAIN, IS_NAN, IS_NAN), unowned);
        assert_int_equal(assert_poison(p, AT_TAIL_FINITE, AT_POISON_JUDGED, HUGE_VALUES, HUGE_VALUES), unowned);
        assert_int_equal(assert_poison(p, AT_TAIL_FINITE, AT_POISON_AGAIN, HUGE_VALUES, HUGE_VALUES), unowned);
        at_drop_case(&built);
    }
}

static void poison_follows_the_seed(void **state) {
    (void)state;
    struct at_built_case built = at_build_line(AT_LAUNCH_LINE);
    struct copy a = copy_of(&built.data.problem), b = copy_of(&built.data.problem), c = copy_of(&built.data.problem);
    const size_t bytes = (size_t)at_tensor_bytes(&a.problem.tensors[AT_ATTN_K]);
    for (int tail = AT_TAIL_UNREAD; tail <= AT_TAIL_FINITE; tail++) {
        at_assert_ok(at_poison_unowned(&a.problem, (enum at_tail)tail, AT_POISON_JUDGED, 1));
        at_assert_ok(at_poison_unowned(&b.problem, (enum at_tail)tail, AT_POISON_JUDGED, 1));
        at_assert_ok(at_poison_unowned(&c.problem, (enum at_tail)tail, AT_POISON_JUDGED, 2));
        assert_memory_equal(a.k, b.k, bytes);
        assert_memory_equal(a.v, b.v, bytes);
        assert_memory_not_equal(a.k, c.k, bytes);
    }
    assert_memory_not_equal(a.k, a.v, bytes);
    drop_copy(&a);
    drop_copy(&b);
    drop_copy(&c);
    at_drop_case(&built);
}

static void contiguous_keys_and_norms_have_owners(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("asynct_prefill b=3 h=2 hk=1 sq=2/0/3 sk=5/0/9 d=8 dtype=f32");
    assert_int_equal(at_has_unowned(&built.data.problem), 0);
    struct copy c = copy_of(&built.data.problem);
    at_assert_ok(at_poison_unowned(&c.problem, AT_TAIL_UNREAD, AT_POISON_JUDGED, 1));
    assert_memory_equal(c.k, built.data.problem.tensors[AT_ATTN_K].data,
                        (size_t)at_tensor_bytes(&c.problem.tensors[AT_ATTN_K]));
    drop_copy(&c);
    at_drop_case(&built);
    built = at_build_line("qk_uclip_norm tokens=5 h=2 hk=1 d=8 dtype=f32");
    assert_int_equal(at_has_unowned(&built.data.problem), 0);
    at_assert_ok(at_poison_unowned(&built.data.problem, AT_TAIL_UNREAD, AT_POISON_JUDGED, 1));
    at_drop_case(&built);
}

/* ---- launches ---- */

static struct at_runner *runner;
static struct at_built_case built;

static int open_runner(void **state) {
    (void)state;
    built = at_build_line(AT_LAUNCH_LINE);
    return at_rig_open_self(&runner) == AT_OK ? 0 : -1;
}

static int close_runner(void **state) {
    (void)state;
    at_drop_case(&built);
    at_runner_close(runner);
    return 0;
}

static void launch(enum at_launch_kernel kernel, enum at_poison_turn turn, uint64_t seed, struct at_outputs *out) {
    struct at_run_reply reply;
    const int variant = at_launch_variant(runner, kernel);
    assert_true(variant >= 0);
    at_assert_ok(at_guarded_launch(runner, variant, &built.data.problem, turn, NULL, seed, 20, &reply, out));
    at_assert_true(reply.outcome == AT_RAN, "outcome %d: %s", (int)reply.outcome, reply.reason);
}

static int index_of(const char *tensor) { return at_op_tensor_index(built.data.problem.op, tensor); }

/* One finding, of this tensor, in these words; "" for a clean launch. */
static void expect_dirt(enum at_launch_kernel kernel, const char *tensor, const char *says) {
    struct at_outputs out;
    launch(kernel, AT_POISON_JUDGED, 5, &out);
    for (int t = 0; t < built.data.problem.op->n_tensors; t++) {
        const char *want = tensor && t == index_of(tensor) ? says : "";
        at_assert_true(strcmp(out.dirty[t], want) == 0, "%s: %s is \"%s\", wanted \"%s\"", at_launch_name(kernel),
                       built.data.problem.op->tensors[t].name, out.dirty[t], want);
    }
    assert_int_equal(out.is_dirty, tensor != NULL);
    at_outputs_release(&out);
}

static void hygiene_names_tensor_and_place(void **state) {
    (void)state;
    expect_dirt(AT_LK_ZEROS, NULL, ""); /* above all: the poison is no change of an input */
    expect_dirt(AT_LK_UNWRITTEN, "o", "left 2 of 80 elements of o unwritten, the first at index 5");
    expect_dirt(AT_LK_PAST, "o", "wrote past tensor o: byte 8 past its end (element +2)");
    expect_dirt(AT_LK_BEFORE, "o", "wrote before tensor o: byte 1 before its start (element +0)");
    expect_dirt(AT_LK_BEFORE_INPUT, "v", "wrote before tensor v: byte 1 before its start (element +0)");
    expect_dirt(AT_LK_CHANGES_INPUT, "q", "changed its input q");
    expect_dirt(AT_LK_ZEROS, NULL, ""); /* nothing is left of it */
}

static void outputs_are_what_was_written(void **state) {
    (void)state;
    struct at_outputs out;
    launch(AT_LK_ZEROS, AT_POISON_JUDGED, 5, &out);
    const struct at_tensor *o = &out.tensors[index_of("o")];
    assert_int_equal(at_tensor_count(o), AT_LAUNCH_ELEMENTS);
    for (int64_t i = 0; i < AT_LAUNCH_ELEMENTS; i++)
        at_assert_same(at_tensor_get(o, i), 0);
    assert_null(out.tensors[AT_ATTN_Q].data);
    at_outputs_release(&out);
    launch(AT_LK_UNWRITTEN, AT_POISON_JUDGED, 5, &out);
    assert_true(isnan(at_tensor_get(&out.tensors[index_of("o")], 7)));
    at_outputs_release(&out);
    assert_null(out.tensors[index_of("o")].data);
}

/* What a kernel finds: marked outputs, its keys as they are, and the poison that its `tail` and the turn ask for. */
static void expect_sight(enum at_launch_kernel kernel, enum at_poison_turn turn, const double *want) {
    struct at_outputs out;
    launch(kernel, turn, 5, &out);
    assert_int_equal(out.is_dirty, 0);
    for (int i = 0; i < AT_SEEN_COUNT; i++) {
        const double got = at_tensor_get(&out.tensors[index_of("o")], i);
        at_assert_true(got == want[i], "%s: sight %d is %g, wanted %g", at_launch_name(kernel), i, got, want[i]);
    }
    at_outputs_release(&out);
}

static void kernels_see_poison_and_marks(void **state) {
    (void)state;
    const double slots = (double)built.data.problem.sizes.slots, bad = slots - 14;
    assert_true(bad > 0);
    double want[AT_SEEN_COUNT] = { [AT_SEEN_SLOTS] = slots };
    want[AT_SEEN_K_1024] = want[AT_SEEN_V_NAN] = bad;
    want[AT_SEEN_SIGNS] = 1;
    expect_sight(AT_LK_SEES, AT_POISON_JUDGED, want);
    want[AT_SEEN_K_1024] = want[AT_SEEN_SIGNS] = 0;
    want[AT_SEEN_K_NAN] = bad;
    expect_sight(AT_LK_SEES, AT_POISON_AGAIN, want);
    want[AT_SEEN_K_NAN] = want[AT_SEEN_V_NAN] = 0;
    want[AT_SEEN_K_HUGE] = want[AT_SEEN_V_HUGE] = bad;
    want[AT_SEEN_SIGNS] = 1;
    expect_sight(AT_LK_SEES_FINITE, AT_POISON_JUDGED, want);
    expect_sight(AT_LK_SEES_FINITE, AT_POISON_AGAIN, want);
    /* the case's own tensors are as they were */
    struct at_built_case again = at_build_line(AT_LAUNCH_LINE);
    assert_memory_equal(again.data.problem.tensors[AT_ATTN_V].data, built.data.problem.tensors[AT_ATTN_V].data,
                        (size_t)at_tensor_bytes(&built.data.problem.tensors[AT_ATTN_V]));
    at_drop_case(&again);
}

/* A mark left over from the last launch passes for written only where the seeds are the same. */
static void marks_follow_the_seed(void **state) {
    (void)state;
    struct at_outputs out;
    launch(AT_LK_ECHOES, AT_POISON_JUDGED, 5, &out);
    at_outputs_release(&out);
    launch(AT_LK_ECHOES, AT_POISON_JUDGED, 5, &out);
    assert_string_equal(out.dirty[index_of("o")], "left 80 of 80 elements of o unwritten, the first at index 0");
    at_outputs_release(&out);
    launch(AT_LK_ECHOES, AT_POISON_JUDGED, 6, &out);
    assert_int_equal(out.is_dirty, 0);
    assert_true(isnan(at_tensor_get(&out.tensors[index_of("o")], 0)));
    at_outputs_release(&out);
}

static void calls_that_fail(void **state) {
    (void)state;
    struct at_run_reply reply;
    struct at_outputs out;
    const struct at_problem *p = &built.data.problem;
    at_assert_ok(at_guarded_launch(runner, at_launch_variant(runner, AT_LK_FAILS), p, AT_POISON_JUDGED, NULL, 5, 20,
                                   &reply, &out));
    assert_int_equal(reply.outcome, AT_RUN_FAILED);
    at_assert_true(strstr(reply.reason, "7"), "\"%s\" does not say 7", reply.reason);
    assert_null(out.tensors[index_of("o")].data);
    assert_int_equal(out.is_dirty, 0); /* what a call that failed left unwritten is no finding */
    at_assert_ok(at_guarded_launch(runner, at_launch_variant(runner, AT_LK_DECLINES), p, AT_POISON_JUDGED, NULL, 5, 20,
                                   &reply, &out));
    assert_int_equal(reply.outcome, AT_RUN_UNSUPPORTED);
    assert_string_equal(reply.reason, "head size 8 is too small");
    at_assert_fails(at_guarded_launch(runner, at_launch_variant(runner, AT_LK_HANGS), p, AT_POISON_JUDGED, NULL, 5, 0.2,
                                      &reply, &out),
                    AT_HUNG, "");
    at_outputs_release(&out);
    expect_dirt(AT_LK_ZEROS, NULL, "");
}

/* A byte of the block changed as by a runner that goes on after its answer: `at` bytes into a payload, or before the end of
 * the block where that is -1. */
static void scribble(int payload, int64_t at) {
    const struct at_buffer *left = &at_runner_left(runner)->buffer;
    left->base[payload >= 0 ? left->placed[payload].offset + at : left->used - 1 - at] ^= 1;
}

static void writes_after_the_answer(void **state) {
    (void)state;
    const int variant = at_launch_variant(runner, AT_LK_ZEROS), o = index_of("o"), q = index_of("q");
    struct at_outputs out;
    char text[192] = "";
    launch(AT_LK_ZEROS, AT_POISON_JUDGED, 5, &out);
    at_outputs_release(&out);
    assert_int_equal(at_written_after_answer(runner, variant, text, sizeof text), 0);
    scribble(o, 3); /* it has been looked at: whose write that is nobody knows any more */
    assert_int_equal(at_written_after_answer(runner, variant, text, sizeof text), 0);
    launch(AT_LK_ZEROS, AT_POISON_JUDGED, 5, &out);
    at_outputs_release(&out);
    scribble(o, 3);
    assert_int_equal(at_written_after_answer(runner, variant, text, sizeof text), 1);
    assert_string_equal(text, "wrote to its outputs after its answer had been given");
    launch(AT_LK_ZEROS, AT_POISON_JUDGED, 5, &out);
    at_outputs_release(&out);
    scribble(-1, 0); /* the last byte of the fence */
    assert_int_equal(at_written_after_answer(runner, variant, text, sizeof text), 1);
    assert_string_equal(text, "wrote outside its tensors after its answer had been given");
    launch(AT_LK_ZEROS, AT_POISON_JUDGED, 5, &out);
    at_outputs_release(&out);
    scribble(q, 1); /* an input that nobody reads any more */
    assert_int_equal(at_written_after_answer(runner, variant, text, sizeof text), 0);
    /* the next launch finds it by itself, of the same variant alone */
    launch(AT_LK_ZEROS, AT_POISON_JUDGED, 5, &out);
    at_outputs_release(&out);
    scribble(o, 0);
    expect_dirt(AT_LK_ZEROS, "o", "wrote to its outputs after its answer had been given");
    launch(AT_LK_UNSTEADY, AT_POISON_JUDGED, 5, &out);
    at_outputs_release(&out);
    scribble(o, 0);
    expect_dirt(AT_LK_ZEROS, NULL, "");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--serve") == 0)
        return at_launch_serve();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poison_lies_where_nobody_owns),
        cmocka_unit_test(poison_follows_the_seed),
        cmocka_unit_test(contiguous_keys_and_norms_have_owners),
        cmocka_unit_test(hygiene_names_tensor_and_place),
        cmocka_unit_test(outputs_are_what_was_written),
        cmocka_unit_test(kernels_see_poison_and_marks),
        cmocka_unit_test(marks_follow_the_seed),
        cmocka_unit_test(writes_after_the_answer),
        cmocka_unit_test(calls_that_fail),
    };
    return cmocka_run_group_tests(tests, open_runner, close_runner);
}
